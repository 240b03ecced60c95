// --device real: calls reach the real driver untouched, launches are counted on the way. The real driver is a stand-in.
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "api_exports.h"
#include "interpose/api/driver_api.h"

namespace {

const bool g_ready = [] {
  setenv("GRIDLOOM_DEVICE", "real", 1);
  setenv("GRIDLOOM_REAL_DRIVER", FAKE_REAL_DRIVER, 1);
  if (std::getenv("GRIDLOOM_LOG") == nullptr) setenv("GRIDLOOM_LOG", "off", 1);
  return true;
}();

void* Fake(const char* name) {
  static void* const library = dlopen(FAKE_REAL_DRIVER, RTLD_NOW);
  return dlsym(library, name);
}
unsigned long FakeLaunches() { return reinterpret_cast<unsigned long (*)()>(Fake("fake_launches"))(); }

using LaunchFunction = decltype(&cuLaunchKernel);

constexpr int kCalls = 200000, kRuns = 9;

/// Nanoseconds per call, the median of several runs.
double CostOf(LaunchFunction launch) {
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    runs.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls);
  }
  std::ranges::nth_element(runs, runs.begin() + kRuns / 2);
  return runs[kRuns / 2];
}

}  // namespace

extern "C" {
int nvmlInit_v2();
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlDeviceGetTopologyCommonAncestor(long, long, long, long, long, long);
int nvmlDeviceGetName(void*, char*, unsigned);
}

TEST_CASE("RealDriver_ItsManagementLibraryAnswers", "[real]") {
  unsigned count = 0;
  CHECK(nvmlDeviceGetTopologyCommonAncestor(1, 2, 3, 4, 5, 6) ==
        1 + 4 + 9 + 16 + 25 + 36);  // the first call: it fills the table
  CHECK(nvmlInit_v2() == 0);
  CHECK(nvmlDeviceGetCount_v2(&count) == 0);
  CHECK(count == 3);
  CHECK(nvmlDeviceGetName(nullptr, nullptr, 0) == 13);  // NVML_ERROR_FUNCTION_NOT_FOUND: the stand-in has none
}

TEST_CASE("RealDriver_AnswersForItself", "[real]") {
  static_cast<void>(g_ready);
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  int value = 0;
  CHECK(cuDriverGetVersion(&value) == CUDA_SUCCESS);
  CHECK(value == 12040);
  CHECK(cuDeviceGetCount(&value) == CUDA_SUCCESS);
  CHECK(value == 3);
  CHECK(static_cast<int>(cuLaunchKernel_ptsz(nullptr, 42, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)) == 42);
  CHECK(cuMemHostUnregister(nullptr) == CUDA_ERROR_NOT_SUPPORTED);  // the stand-in has no such function
  CHECK(cuIpcGetMemHandle(nullptr, 0) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("RealDriver_LookUpGivesWhatDlsymFindsWhereWeHaveIt", "[real]") {
  void* address = nullptr;
  CHECK(cuGetProcAddress_v2("cuLaunchKernel", &address, 12000, 0, nullptr) == CUDA_SUCCESS);
  CHECK(address == reinterpret_cast<void*>(&cuLaunchKernel));
  CHECK(cuGetProcAddress_v2("cuLaunchKernel", &address, 12000, 2, nullptr) == CUDA_SUCCESS);
  CHECK(address == reinterpret_cast<void*>(&cuLaunchKernel_ptsz));
  CHECK(cuGetProcAddress_v2("cuInit", &address, 12000, 0, nullptr) == CUDA_SUCCESS);
  CHECK(address == reinterpret_cast<void*>(&cuInit));
  CHECK(cuGetProcAddress_v2("cuSomethingNewer", &address, 12000, 0, nullptr) ==
        CUDA_SUCCESS);  // unknown to us, passed through
  CHECK(address == Fake("cuSomethingNewer"));
  CHECK(cuGetProcAddress_v2("cuNothing", &address, 12000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
}

// The cost is reported, not asserted: a busy machine adds what it likes (aim: 200 ns).
TEST_CASE("RealDriver_EachLaunchArrivesOnce", "[real][bench]") {
  const unsigned long before = FakeLaunches();
  const double direct = CostOf(reinterpret_cast<LaunchFunction>(Fake("cuLaunchKernel")));
  const double through = CostOf(&cuLaunchKernel);
  CHECK(FakeLaunches() - before == 2UL * kRuns * kCalls);
  WARN("launch through the shim: " << through << " ns, direct: " << direct << " ns, added: " << through - direct
                                   << " ns");
}
