// When launches wait in their stream for others (GRIDLOOM_REORDER), and what makes them run. The engine records; the
// kernels of the fixture touch nothing, so that any of their CTAs may run at any time.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "interpose/launch/reordering.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;
using test::FakeEngine;

namespace {

/// Before the first call that reads the settings.
const int g_set = setenv("GRIDLOOM_REORDER", "5", 1);

/// CTAs that ran, of all kernels but profilers.
std::atomic<std::uint64_t> g_ran{0};

struct Recorder {
  Recorder() {
    g_ran = 0;
    FakeEngine::Get().set_body([](const exec::LaunchParams& launch) {
      if (!launch.kernel->name.ends_with("__profile"))
        g_ran += launch.ctas.empty() ? launch.grid.count() : launch.ctas.size();
      return exec::LaunchFault{};
    });
  }
  static std::uint64_t Ctas() { return g_ran; }
  /// So many, soon, without a call that waits.
  static bool Comes(std::uint64_t ctas) {
    for (int i = 0; i < 4000 && Ctas() != ctas; ++i) std::this_thread::sleep_for(std::chrono::microseconds(500));
    return Ctas() == ctas;
  }
  /// As many as before, after a time in which more would have come.
  static bool Stays(std::uint64_t ctas) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return Ctas() == ctas;
  }
};

void Launch(CUfunction function, CUstream stream, unsigned grid) {
  CU_OK(cuLaunchKernel(function, grid, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
}

struct Streams {
  explicit Streams(unsigned flags = 0) {
    CU_OK(cuStreamCreate(&a, flags));
    CU_OK(cuStreamCreate(&b, flags));
  }
  ~Streams() {
    cuStreamDestroy_v2(a);
    cuStreamDestroy_v2(b);
  }
  CUstream a, b;
};

}  // namespace

TEST_CASE("Reorder_Launches_WaitUntilTheHostAsks", "[reorder]") {
  const test::Fixture fixture;
  const Recorder recorder;
  const Streams streams;
  const CUfunction nothing = fixture.Function("nothing"), bounded = fixture.Function("bounded");
  Launch(nothing, streams.a, 7);
  Launch(bounded, streams.a, 8);
  CHECK(recorder.Stays(0));
  cuStreamQuery(streams.a);
  CHECK(recorder.Comes(15));
  Launch(nothing, streams.a, 3);
  CU_OK(cuStreamSynchronize(streams.a));
  CHECK(recorder.Ctas() == 18);
  Launch(nothing, streams.a, 2);
  CU_OK(cuStreamSynchronize(streams.b));  // it may wait for the other stream through memory
  CHECK(recorder.Comes(20));
  Launch(nothing, streams.a, 1);
  CU_OK(cuCtxSynchronize());
  CHECK(recorder.Ctas() == 21);
}

TEST_CASE("Reorder_Sixteen_AreEnough", "[reorder]") {
  const test::Fixture fixture;
  const Recorder recorder;
  const Streams streams;
  for (std::size_t i = 0; i < session::LaunchBatch::kMost; ++i) {
    CHECK(recorder.Stays(0));
    Launch(fixture.Function("nothing"), streams.a, 10);
  }
  CHECK(recorder.Comes(160));
  Launch(fixture.Function("nothing"), streams.a, 10);  // the first one of the next batch
  CHECK(recorder.Stays(160));
  CU_OK(cuStreamSynchronize(streams.a));
  CHECK(recorder.Ctas() == 170);
}

TEST_CASE("Reorder_OtherOperationsOfTheStream_ComeBehind", "[reorder]") {
  const test::Fixture fixture;
  const Recorder recorder;
  const Streams streams;
  CUdeviceptr memory = 0;
  CU_OK(cuMemAlloc_v2(&memory, 4096));
  CUevent event = nullptr;
  CU_OK(cuEventCreate(&event, 0));
  std::uint64_t expected = 0;
  const auto launch = [&] {
    Launch(fixture.Function("nothing"), streams.a, 5);
    CHECK(recorder.Stays(expected));
    expected += 5;
  };
  launch();
  CU_OK(cuMemsetD8Async(memory, 1, 4096, streams.a));
  CHECK(recorder.Comes(expected));
  launch();
  CU_OK(cuEventRecord(event, streams.a));
  CHECK(recorder.Comes(expected));
  launch();
  CU_OK(cuEventSynchronize(event));
  CHECK(recorder.Comes(expected));
  launch();
  CU_OK(cuMemFree_v2(memory));
  CHECK(recorder.Ctas() == expected);
  launch();
  std::uint64_t seen = 0;
  const auto look = [](void* data) { *static_cast<std::uint64_t*>(data) = Recorder::Ctas(); };
  CU_OK(cuLaunchHostFunc(streams.a, look, &seen));
  CU_OK(cuStreamSynchronize(streams.a));
  CHECK(seen == expected);
  CU_OK(cuEventDestroy_v2(event));
}

TEST_CASE("Reorder_LegacyAndBlockingStreams_KeepTheirOrder", "[reorder]") {
  const test::Fixture fixture;
  const Recorder recorder;
  const Streams blocking, free(CU_STREAM_NON_BLOCKING);
  Launch(fixture.Function("nothing"), blocking.a, 5);
  Launch(fixture.Function("nothing"), blocking.b, 6);
  Launch(fixture.Function("nothing"), free.a, 100);
  CHECK(recorder.Stays(0));
  Launch(fixture.Function("bounded"), nullptr, 20);  // closes those of blocking streams, and waits itself
  CHECK(recorder.Comes(11));
  CHECK(recorder.Stays(11));
  Launch(fixture.Function("nothing"), blocking.a, 30);
  CHECK(recorder.Comes(31));
  CHECK(recorder.Stays(31));
  CU_OK(cuCtxSynchronize());
  CHECK(recorder.Ctas() == 161);
}

TEST_CASE("Reorder_StreamsThatAreDestroyed_LoseNothing", "[reorder]") {
  const test::Fixture fixture;
  const Recorder recorder;
  {
    const Streams streams;
    Launch(fixture.Function("nothing"), streams.a, 5);
    Launch(fixture.Function("nothing"), streams.b, 6);
    CHECK(recorder.Stays(0));
  }
  CHECK(recorder.Comes(11));
}

TEST_CASE("Reorder_MappedHostMemory_NobodyWaits", "[reorder]") {
  const test::Fixture fixture;
  const Recorder recorder;
  const Streams streams;
  void* pinned = nullptr;
  CU_OK(cuMemAllocHost_v2(&pinned, 4096));
  Launch(fixture.Function("nothing"), streams.a, 5);
  CHECK(recorder.Stays(0));
  auto pointer = reinterpret_cast<CUdeviceptr>(pinned);
  unsigned value = 0;
  unsigned char flag = 0;
  void* params[] = {&pointer, &value, &flag};
  CU_OK(cuLaunchKernel(fixture.Function("fill"), 6, 1, 1, 32, 1, 1, 0, streams.a, params, nullptr));
  CHECK(recorder.Comes(11));
  CU_OK(cuMemFreeHost(pinned));
}

TEST_CASE("Reorder_ManagedVariableThatTheKernelNames_NobodyWaits", "[reorder]") {
  const test::Fixture fixture;  // its module has a managed variable, too, which `nothing` does not name
  const Recorder recorder;
  const Streams streams;
  CUmodule module = nullptr;
  CU_OK(cuModuleLoadData(&module, R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 polled;
.visible .entry raise() { st.global.u32 [polled], 1; ret; }
)"));
  CUfunction raise = nullptr;
  CU_OK(cuModuleGetFunction(&raise, module, "raise"));
  Launch(fixture.Function("nothing"), streams.a, 5);
  CHECK(recorder.Stays(0));
  Launch(raise, streams.a, 6);
  CHECK(recorder.Comes(11));
  CU_OK(cuModuleUnload(module));
}

TEST_CASE("Reorder_Fault_IsTheContexts", "[reorder]") {
  const test::Fixture fixture;
  FakeEngine::Get().set_body([](const exec::LaunchParams& launch) {
    exec::LaunchFault fault;
    if (std::string_view(launch.kernel->name) == "bounded") fault.kind = exec::FaultKind::kIllegalAddress;
    return fault;
  });
  const Streams streams;
  Launch(fixture.Function("nothing"), streams.a, 5);
  Launch(fixture.Function("bounded"), streams.a, 5);
  CHECK(cuStreamSynchronize(streams.a) == CUDA_ERROR_ILLEGAL_ADDRESS);
}
