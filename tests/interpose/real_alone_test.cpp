// --device real with --slice and no broker: grids go in slices of the setting's size, one behind the other, and so do
// kernels that have no PTX where --slice-machine-code asks for it. The real driver is a stand-in (fake_real_driver.h).
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "api_exports.h"
#include "rewriter/machine/slice/slice_cubin.h"
#include "rewriter/passes/slice_range.h"
#include "tests/interpose/fake_real_driver.h"

namespace gridloom {
namespace {

constexpr std::uint64_t kSlice = 7;
constexpr char kAllAxes[] = "_Z7AllAxesPic", kBarrier[] = "_Z11GridBarrierPf", kForm[] = "$gridloom_slice";

template <typename Function>
Function* Fake(const char* name) {
  static void* const library = dlopen(FAKE_REAL_DRIVER, RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
void Sliced(CUresult load, CUresult launch) { Fake<void(int, int, int)>("fake_set_sliced")(load, launch, 90); }
std::vector<FakeLaunch> TakeLaunches() {
  std::vector<FakeLaunch> launches;
  Fake<void(std::vector<FakeLaunch>*)>("fake_take_launches")(&launches);
  return launches;
}

std::string Cubin() {
  std::ifstream file("tests/rewriter/machine/slices.sm_90.cubin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Fixture {
  Fixture() {
    setenv("GRIDLOOM_DEVICE", "real", 1);
    setenv("GRIDLOOM_REAL_DRIVER", FAKE_REAL_DRIVER, 1);
    setenv("GRIDLOOM_SLICE", std::to_string(kSlice).c_str(), 1);
    setenv("GRIDLOOM_SLICE_MACHINE_CODE", "1", 1);
    if (std::getenv("GRIDLOOM_LOG") == nullptr) setenv("GRIDLOOM_LOG", "off", 1);
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
    Sliced(CUDA_SUCCESS, CUDA_SUCCESS);
    TakeLaunches();
  }
  CUfunction Load(const std::string& image, const char* name) {
    REQUIRE(cuModuleLoadData(&module, image.data()) == CUDA_SUCCESS);
    CUfunction function = nullptr;
    REQUIRE(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
    return function;
  }
  CUmodule module = nullptr;
  std::uint64_t out = 0x1122334455667788;
  std::uint32_t tag = 42;
  void* params[2] = {&out, &tag};
  CUresult Run(CUfunction function, unsigned x, unsigned y, unsigned z) {
    return cuLaunchKernel(function, x, y, z, 32, 1, 1, 0, reinterpret_cast<CUstream>(0x40), params, nullptr);
  }
};

/// Launches of AllAxes' form that are all CTAs of the grid in order, with the parameters that its form wants.
void CheckSlices(const std::vector<FakeLaunch>& launches, const passes::GridShape& grid) {
  const std::string cubin = Cubin();
  const auto sliced = machine::SliceCubin(image::AsBytes(cubin));
  const auto kernel = std::ranges::find(sliced->kernels, kAllAxes, &machine::SlicedKernel::name);
  std::uint64_t done = 0;
  for (const FakeLaunch& launch : launches) {
    REQUIRE(launch.sliced);
    CHECK(launch.grid[0] <= kSlice);
    CHECK(launch.stream == reinterpret_cast<void*>(0x40));
    REQUIRE(launch.params.size() == 2 + kernel->hidden.size());
    CHECK(launch.params[0] == 0x55667788);
    CHECK((launch.params[1] & 0xFF) == 42);
    for (std::size_t number = 0; number < kernel->hidden.size(); ++number) {
      CHECK(launch.params[2 + number] ==
            static_cast<std::uint32_t>(passes::HiddenValue(kernel->hidden[number].role, grid, done, 0)));
    }
    done += launch.grid[0];
  }
  CHECK(done == grid.count());
}

void CheckWhole(Fixture& f, CUfunction function) {
  CHECK(f.Run(function, 20, 2, 1) == CUDA_SUCCESS);
  const auto launches = TakeLaunches();
  REQUIRE(launches.size() == 1);
  CHECK_FALSE(launches[0].sliced);
  CHECK(launches[0].grid == std::array<unsigned, 3>{20, 2, 1});
}

TEST_CASE("RealAlone_MachineCode_GoesInSlices") {
  Fixture f;
  const CUfunction kernel = f.Load(Cubin(), kAllAxes);
  for (const passes::GridShape grid : {passes::GridShape{20, 1, 1}, {3, 4, 5}, {1, 1, 1}, {1, 65535, 1}}) {
    CHECK(f.Run(kernel, grid.x, grid.y, grid.z) == CUDA_SUCCESS);
    CheckSlices(TakeLaunches(), grid);
  }
}

TEST_CASE("RealAlone_KernelThatIsRefused_GoesWhole") {
  Fixture f;
  CheckWhole(f, f.Load(Cubin(), kBarrier));
}

TEST_CASE("RealAlone_FormThatDoesNotLoadOrLaunch_GoesWhole") {
  Fixture f;
  Sliced(CUDA_ERROR_INVALID_IMAGE, CUDA_SUCCESS);
  CheckWhole(f, f.Load(Cubin(), kAllAxes));
  Sliced(CUDA_SUCCESS, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CheckWhole(f, f.Load(Cubin(), kAllAxes));
}

TEST_CASE("RealAlone_CutImages_AreTheDrivers") {
  Fixture f;
  std::string cubin = Cubin();
  std::memset(cubin.data() + cubin.size() / 2, 0xFF, cubin.size() / 4);
  CUmodule module = nullptr;
  CHECK(cuModuleLoadData(&module, cubin.data()) == CUDA_SUCCESS);  // as the stand-in answers
}

TEST_CASE("RealAlone_Enumeration_HasNoForms") {
  Fixture f;
  f.Load(Cubin(), kAllAxes);
  unsigned count = 0;
  REQUIRE(cuModuleGetFunctionCount(&count, f.module) == CUDA_SUCCESS);
  const std::string cubin = Cubin();
  CHECK(count == machine::SliceCubin(image::AsBytes(cubin))->kernels.size());
  std::vector<CUfunction> functions(count);
  REQUIRE(cuModuleEnumerateFunctions(functions.data(), count, f.module) == CUDA_SUCCESS);
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    REQUIRE(function != nullptr);
    REQUIRE(cuFuncGetName(&name, function) == CUDA_SUCCESS);
    CHECK_FALSE(std::string(name).ends_with(kForm));
  }
}

TEST_CASE("RealAlone_ImageThatHasForms_KeepsThem") {
  Fixture f;
  const std::string cubin = Cubin();
  const auto sliced = machine::SliceCubin(image::AsBytes(cubin));
  const CUfunction kernel = f.Load(std::string(image::AsText(sliced->bytes)), kAllAxes);
  CHECK(f.Run(kernel, 20, 2, 1) == CUDA_SUCCESS);
  CheckSlices(TakeLaunches(), {20, 2, 1});
}

}  // namespace
}  // namespace gridloom
