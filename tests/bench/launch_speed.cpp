// launch_speed: what the launch of a small kernel costs that is compiled already. 32 Ki launches of 128 threads, round
// robin over 32 streams, then one synchronisation; the same on OpenCL with PoCL where there is one (in-order queues for
// streams).
//   build/launch_speed [--launches N] [--streams N] [--runs N]
#include "tests/bench/launch_speed.h"

#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using bench::LaunchSizes;
using bench::LaunchTimes;

constexpr const char* kPtx = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a)
{
  .reg .b32 %r<2>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5]; fma.rn.f32 %f3, %f2, %f1, %f3; st.global.f32 [%rd5], %f3;
  ret;
}
)";

/// What is needed of the driver API.
template <typename... Args>
void Call(void* library, const char* name, Args... args) {
  auto* const function = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
  const int status = function != nullptr ? function(args...) : -1;
  if (status == 0) return;
  std::fprintf(stderr, "launch_speed: %s: %d\n", name, status);
  std::exit(1);
}

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);

LaunchTimes MeasureGridloom(const LaunchSizes& sizes) {
  void* const cuda = dlopen(BENCH_SHIM, RTLD_NOW | RTLD_LOCAL);
  if (cuda == nullptr) {
    std::fprintf(stderr, "launch_speed: %s\n", dlerror());
    std::exit(1);
  }
  void *context = nullptr, *module = nullptr, *function = nullptr;
  Call(cuda, "cuInit", 0u);
  Call(cuda, "cuDevicePrimaryCtxRetain", &context, 0);
  Call(cuda, "cuCtxSetCurrent", context);
  Call(cuda, "cuModuleLoadData", &module, static_cast<const void*>(kPtx));
  Call(cuda, "cuModuleGetFunction", &function, module, "saxpy");
  const std::size_t bytes = bench::kLaunchThreads * sizeof(float);
  const std::vector<float> ones(bench::kLaunchThreads, 1.0f);
  unsigned long long x = 0;
  Call(cuda, "cuMemAlloc_v2", &x, bytes);
  Call(cuda, "cuMemcpyHtoD_v2", x, static_cast<const void*>(ones.data()), bytes);
  std::vector<unsigned long long> y(sizes.streams);
  std::vector<void*> streams(sizes.streams);
  for (unsigned i = 0; i < sizes.streams; ++i) {
    Call(cuda, "cuStreamCreate", &streams[i], 1u);
    Call(cuda, "cuMemAlloc_v2", &y[i], bytes);
    Call(cuda, "cuMemsetD32_v2", y[i], 0u, bytes / 4);
  }
  Call(cuda, "cuCtxSynchronize");
  const auto launch = reinterpret_cast<Launch>(dlsym(cuda, "cuLaunchKernel"));
  const float a = 1;
  LaunchTimes times;
  for (unsigned run = 0; run <= sizes.runs; ++run) {  // the first builds the kernel
    const bench::LaunchClock clock;
    for (unsigned i = 0; i < sizes.launches; ++i) {
      const unsigned stream = i % sizes.streams;
      void* arguments[] = {&x, &y[stream], const_cast<float*>(&a)};
      if (launch(function, 1, 1, 1, bench::kLaunchThreads, 1, 1, 0, streams[stream], arguments, nullptr) != 0)
        std::exit(1);
    }
    const double launched = clock.us();
    Call(cuda, "cuCtxSynchronize");
    if (run > 0) times.Add(launched / sizes.launches, clock.us() / sizes.launches);
  }
  for (unsigned i = 0; i < sizes.streams; ++i) {
    std::vector<float> got(bench::kLaunchThreads);
    Call(cuda, "cuMemcpyDtoH_v2", static_cast<void*>(got.data()), y[i], bytes);
    bench::CheckLaunches(sizes, i, got);
  }
  return times;
}

void Print(const char* who, const LaunchTimes& times) {
  std::printf("%-10s %8.2f %18.2f %24.2f to %.2f\n", who, times.enqueue(), times.whole(), times.best(), times.worst());
}

}  // namespace

int main(int argc, char** argv) {
  LaunchSizes sizes;
  CLI::App app("Cost of the launch of a small kernel that is compiled already");
  app.add_option("--launches", sizes.launches, "launches of a run")->check(CLI::Range(1, 10'000'000));
  app.add_option("--streams", sizes.streams, "streams they go to in turn")->check(CLI::Range(1, 1024));
  app.add_option("--runs", sizes.runs, "runs; medians are printed")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  std::printf("%u launches of %u threads over %u streams, µs a launch\n", sizes.launches, bench::kLaunchThreads,
              sizes.streams);
  std::printf("%-10s %8s %18s %28s\n", "", "enqueue", "with their end", "range of that");
  Print("Gridloom", MeasureGridloom(sizes));
  LaunchTimes times;
  std::string reason;
  if (bench::MeasureOpenCl(sizes, times, reason)) Print("PoCL", times);
  else std::printf("skipped: PoCL: %s\n", reason.c_str());
  return 0;
}
