// --connect and --device real: grids go in the slices that the broker grants, each one launch of the kernel's sliced
// form. The real driver is a stand-in that records launches; that sliced forms compute what the originals do,
// tests/e2e/broker_test.py checks with the virtual GPU as the real driver.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <thread>

#include "scheduler/cli/listing.h"
#include "tests/interpose/fake_real_driver.h"
#include "tests/interpose/real_fixture.h"

namespace gridloom {
namespace {

constexpr char kScale[] = R"(
.version 7.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 data, .param .u32 factor)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [factor];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  mad.lo.u32 %r2, %r3, 1000, %r2;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)";

void Sliced(CUresult load, CUresult launch, int version = 90) {
  Fake<void(int, int, int)>("fake_set_sliced")(load, launch, version);
}
std::vector<FakeLaunch> TakeLaunches() {
  std::vector<FakeLaunch> launches;
  Fake<void(std::vector<FakeLaunch>*)>("fake_take_launches")(&launches);
  return launches;
}

struct Fixture : RealFixture {
  Fixture() {
    Sliced(CUDA_SUCCESS, CUDA_SUCCESS);
    TakeLaunches();
  }
  /// A kernel that was never launched.
  CUfunction Load(const std::string& text = kScale, const char* name = "scale") {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
    return function;
  }
  std::uint64_t data = 0x1122334455667788;
  std::uint32_t factor = 42;
  void* params[2] = {&data, &factor};
  CUresult Run(CUfunction function, unsigned x, unsigned y = 1, void** extra = nullptr) {
    return cuLaunchKernel(function, x, y, 1, 32, 1, 1, 0, reinterpret_cast<CUstream>(0x40),
                          extra == nullptr ? params : nullptr, extra);
  }
};

/// CTAs that the launches ran, in order: in slices, of a kernel whose parameters are its own two, then first x and y,
/// then the grid's.
void CheckSlices(const std::vector<FakeLaunch>& launches, unsigned x, unsigned y, std::uint32_t factor) {
  std::uint64_t done = 0;
  for (const FakeLaunch& launch : launches) {
    REQUIRE(launch.sliced);
    CHECK(launch.stream == reinterpret_cast<void*>(0x40));
    CHECK(launch.grid[1] == 1);
    CHECK(launch.grid[2] == 1);
    REQUIRE(launch.params.size() > 4);
    CHECK(launch.params[0] == 0x55667788);
    CHECK(launch.params[1] == factor);
    CHECK(launch.params[2] == done % x);
    CHECK(launch.params[3] == done / x);
    done += launch.grid[0];
  }
  CHECK(done == std::uint64_t{x} * y);
}

TEST_CASE("RealSlices_OfAGrid_ComeInOrderWithTheirParameters") {
  Fixture f;
  const CUfunction scale = f.Load();
  const auto slices = f.Real()["slices"].get<int>(), launches = f.Real()["launches"].get<int>(),
             ctas = f.Real()["ctas"].get<int>();
  CHECK(f.Run(scale, 7, 9) == CUDA_SUCCESS);
  const auto recorded = TakeLaunches();
  CheckSlices(recorded, 7, 9, 42);
  CHECK(recorded.size() >= 8);  // the device has room for 8 of the 63 at a time
  CHECK(f.Eventually([&] { return f.Real()["launches"] == launches + 1; }));
  CHECK(f.Real()["ctas"] == ctas + 63);
  CHECK(f.Real()["slices"] >= slices + 8);
  CHECK(f.Real()["faults"] == 0);
}

TEST_CASE("RealSlices_OneComesWhenTheLastOneHasRun") {
  Fixture f;
  const CUfunction scale = f.Load();
  Kernels(CUDA_ERROR_NOT_READY);
  auto launches = std::async(std::launch::async, [&] { return f.Run(scale, 20); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto first = TakeLaunches();
  REQUIRE(first.size() == 1);
  CHECK(first[0].grid[0] == 8);
  Kernels(CUDA_SUCCESS);
  CHECK(launches.get() == CUDA_SUCCESS);
  CHECK(TakeLaunches().size() == 2);
}

/// CTAs of the kernel that runs which the broker knows to have run.
std::uint64_t KnownDone(Fixture& f) {
  const auto state = f.State();
  for (const auto& session : state["sessions"]) {
    if (session["tenant"] == "real") return session["kernel_done"].get<std::uint64_t>();
  }
  return 0;
}

TEST_CASE("RealSlices_OfMachineCode_TellWhatHasRunWhileTheyRun") {
  constexpr unsigned kThreads = 32, kCtas = 20;
  Fixture f;
  std::ifstream file("tests/rewriter/machine/slices.sm_90.cubin", std::ios::binary);
  const std::string cubin{std::istreambuf_iterator<char>(file), {}};
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  REQUIRE(cuModuleLoadData(&module, cubin.data()) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&kernel, module, "_Z7AllAxesPic") == CUDA_SUCCESS);
  Kernels(CUDA_ERROR_NOT_READY);
  auto launches = std::async(std::launch::async, [&] { return f.Run(kernel, kCtas); });
  std::vector<FakeLaunch> first;
  REQUIRE(f.Eventually([&] { return !(first = TakeLaunches()).empty(); }));
  REQUIRE(first[0].sliced);
  REQUIRE(first[0].grid[0] == 8);
  const std::uint32_t table = first[0].params[first[0].params.size() - 2];
  REQUIRE(table != 0);
  CHECK(first[0].params.back() == 0);  // a count for each CTA
  const auto end = Fake<void(std::uint32_t, std::uint32_t, std::uint32_t)>("fake_end_threads");
  for (const std::uint32_t cta : {0U, 1U, 2U, 5U, 7U}) end(table, cta, kThreads);
  end(table, 3, kThreads - 1);  // one of its threads still runs
  CHECK(f.Eventually([&] { return KnownDone(f) == 5; }));
  CHECK(broker::Listing(f.State()).find("AllAxesPic 25%") != std::string::npos);
  end(table, 3, 1);
  CHECK(f.Eventually([&] { return KnownDone(f) == 6; }));
  for (const std::uint32_t cta : {4U, 6U}) end(table, cta, kThreads);
  CHECK(f.Eventually([&] { return KnownDone(f) == 7; }));  // the slice has not ended, as the driver says
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  CHECK(KnownDone(f) == 7);
  const auto ctas = f.Real()["ctas"].get<int>();
  Kernels(CUDA_SUCCESS);
  CHECK(launches.get() == CUDA_SUCCESS);
  CHECK(f.Eventually([&] { return f.Real()["ctas"] == ctas + 13; }));
  CHECK(f.Real()["faults"] == 0);
}

TEST_CASE("RealSlices_TakeTurnsWithAnotherTenant") {
  Fixture f;
  const CUfunction scale = f.Load();
  const auto other = f.Join("other");
  protocol::Client::Ticket ticket;
  std::uint64_t granted = 0;
  REQUIRE(other->Announce(broker::LaunchOf(6, false), &ticket) == protocol::Verdict::kGranted);
  REQUIRE(other->Wait(ticket, 0, &granted) == protocol::Verdict::kGranted);
  auto launches = std::async(std::launch::async, [&] { return f.Run(scale, 12); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(f.Real()["in_flight"] == 0);  // slices fit beside what the other one has, and have run
  other->End(ticket, 6, false);
  CHECK(launches.get() == CUDA_SUCCESS);
  const auto recorded = TakeLaunches();
  REQUIRE(!recorded.empty());
  CHECK(recorded[0].grid[0] == 2);
  CheckSlices(recorded, 12, 1, 42);
}

TEST_CASE("RealSlices_OfABufferOfParameters") {
  Fixture f;
  const CUfunction scale = f.Load();
  std::byte buffer[12] = {};
  std::memcpy(buffer, &f.data, 8);
  std::memcpy(buffer + 8, &f.factor, 4);
  std::size_t bytes = sizeof buffer;
  void* extra[] = {reinterpret_cast<void*>(1), buffer, reinterpret_cast<void*>(2), &bytes, nullptr};
  CHECK(f.Run(scale, 20, 1, extra) == CUDA_SUCCESS);
  const auto recorded = TakeLaunches();
  REQUIRE(recorded.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(recorded[i].sliced);
    REQUIRE(recorded[i].buffer.size() > 4);
    CHECK(recorded[i].buffer[0] == 0x55667788);
    CHECK(recorded[i].buffer[2] == 42);
    CHECK(recorded[i].buffer[3] == 8 * i);
  }
  bytes = 8;  // too few for the kernel: for the driver to say so
  CHECK(f.Run(scale, 20, 1, extra) == CUDA_SUCCESS);
  const auto whole = TakeLaunches();
  REQUIRE(whole.size() == 1);
  CHECK(!whole[0].sliced);
}

TEST_CASE("RealSlices_OfLaunchKernelEx_GoWholeWhereAnAttributeIsTheWholeGrids") {
  Fixture f;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  const CUlaunchConfig config{.grid_dim_x = 20,
                              .grid_dim_y = 1,
                              .grid_dim_z = 1,
                              .block_dim_x = 32,
                              .block_dim_y = 1,
                              .block_dim_z = 1,
                              .shared_mem_bytes = 0,
                              .stream = reinterpret_cast<CUstream>(0x40),
                              .attrs = &attribute,
                              .num_attrs = 1};
  const CUfunction scale = f.Load();
  CHECK(cuLaunchKernelEx(&config, scale, f.params, nullptr) == CUDA_SUCCESS);
  CheckSlices(TakeLaunches(), 20, 1, 42);
  attribute.value.cooperative = 1;
  CHECK(cuLaunchKernelEx(&config, scale, f.params, nullptr) == CUDA_SUCCESS);
  const auto whole = TakeLaunches();
  REQUIRE(whole.size() == 1);
  CHECK(!whole[0].sliced);
  CHECK(whole[0].grid[0] == 20);
}

/// The launch goes as the program made it, once.
void CheckWhole(Fixture& f, CUfunction function) {
  const auto launches = f.Real()["launches"].get<int>();
  CHECK(f.Run(function, 20) == CUDA_SUCCESS);
  const auto recorded = TakeLaunches();
  REQUIRE(recorded.size() == 1);
  CHECK(!recorded[0].sliced);
  CHECK(recorded[0].grid[0] == 20);
  CHECK(recorded[0].params == std::vector<std::uint32_t>{0x55667788, 42});
  CHECK(f.Eventually([&] { return f.Real()["launches"] > launches && f.Real()["in_flight"] == 0; }));
  CHECK(f.Real()["faults"] == 0);
}

TEST_CASE("RealSlices_WhoseFormDoesNotLoad_GoWhole") {
  Fixture f;
  Sliced(CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS);
  const CUfunction scale = f.Load();
  CheckWhole(f, scale);
  CheckWhole(f, scale);
}

TEST_CASE("RealSlices_WhoseFormDoesNotLaunch_GoWhole") {
  Fixture f;
  Sliced(CUDA_SUCCESS, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  const CUfunction scale = f.Load();
  CheckWhole(f, scale);
  Sliced(CUDA_SUCCESS, CUDA_SUCCESS);
  CheckWhole(f, scale);  // it is not tried again
}

TEST_CASE("RealSlices_WhosePtxIsOfOtherSourceThanTheMachineCode_GoWhole") {
  Fixture f;
  Sliced(CUDA_SUCCESS, CUDA_SUCCESS, 75);
  CheckWhole(f, f.Load());
}

TEST_CASE("RealSlices_OfAKernelThatTheDriverUnloaded_AreForgotten") {
  Fixture f;
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  REQUIRE(cuModuleLoadFatBinary(&module, kScale) == CUDA_ERROR_NOT_SUPPORTED);  // the stand-in has no such function
  REQUIRE(cuModuleLoadDataEx(&module, kScale, 0, nullptr, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&scale, module, "scale") == CUDA_SUCCESS);
  CHECK(f.Run(scale, 20) == CUDA_SUCCESS);
  CHECK(TakeLaunches().size() == 3);
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(f.Run(scale, 20) == CUDA_SUCCESS);
  CHECK(TakeLaunches().size() == 1);
}

TEST_CASE("RealSlices_OfAVariableWithoutAnAddress_GoWhole_OthersUseTheOriginals") {
  Fixture f;
  std::string text = kScale;
  text.replace(text.find(".visible"), 0, ".visible .global .u32 hidden_away;\n.visible .global .u32 seen;\n");
  const auto use = [&](const char* variable) {
    std::string other = text;
    other.replace(other.find("  ret;"), 0, "  st.global.u32 [" + std::string(variable) + "], %r1;\n");
    return other;
  };
  CheckWhole(f, f.Load(use("hidden_away")));
  CHECK(f.Run(f.Load(use("seen")), 20) == CUDA_SUCCESS);
  CheckSlices(TakeLaunches(), 20, 1, 42);
}

TEST_CASE("RealSlices_OfAGridThatFits_GoWhole") {
  Fixture f;
  const CUfunction scale = f.Load();
  CHECK(f.Run(scale, 4) == CUDA_SUCCESS);
  const auto recorded = TakeLaunches();
  REQUIRE(recorded.size() == 1);
  CHECK(!recorded[0].sliced);
}

TEST_CASE("RealSlices_WhenTheBrokerGoes_TheRestRuns") {
  Fixture f;
  const CUfunction scale = f.Load();
  Kernels(CUDA_ERROR_NOT_READY);
  auto launches = std::async(std::launch::async, [&] { return f.Run(scale, 40); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  f.Stop();
  Kernels(CUDA_SUCCESS);
  CHECK(launches.get() == CUDA_SUCCESS);
  CheckSlices(TakeLaunches(), 40, 1, 42);
  f.Start();
  CHECK(f.Eventually([&] { return !f.State()["sessions"].empty(); }));
}

TEST_CASE("RealSlices_AfterAFault_NoMoreCome") {
  Fixture f;
  const CUfunction scale = f.Load();
  const auto faults = f.Real()["faults"].get<int>();
  Kernels(CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(f.Run(scale, 40) == CUDA_SUCCESS);
  CHECK(TakeLaunches().size() == 1);
  CHECK(f.Eventually([&] { return f.Real()["faults"] == faults + 1; }));
}

}  // namespace
}  // namespace gridloom
