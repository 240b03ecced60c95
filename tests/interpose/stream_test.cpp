// Order of asynchronous work: within a stream, between streams, with the legacy and the per-thread default stream.
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <thread>

#include "tests/interpose/fixture.h"

using namespace gridloom;
using test::FakeEngine;

namespace {

/// A kernel body that waits until the test lets it go.
class Gate {
 public:
  Gate() {
    FakeEngine::Get().set_body([this](const exec::LaunchParams& launch) {
      if (launch.grid.x == 99) {
        entered_.store(true);
        while (!open_.load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      return exec::LaunchFault{};
    });
  }
  ~Gate() { Open(); }
  void Open() { open_.store(true); }
  void WaitUntilEntered() const {
    while (!entered_.load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  std::atomic<bool> open_{false}, entered_{false};
};

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

void Launch(CUfunction function, CUstream stream, unsigned grid = 1) {
  CU_OK(cuLaunchKernel(function, grid, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
}

constexpr unsigned kBlocked = 99;

}  // namespace

TEST_CASE("Launch_ReturnsBeforeTheKernelEnds", "[stream]") {
  const test::Fixture fixture;
  Gate gate;
  const Streams streams;
  Launch(fixture.Function("nothing"), streams.a, kBlocked);
  CHECK(cuStreamQuery(streams.a) == CUDA_ERROR_NOT_READY);
  gate.Open();
  CU_OK(cuStreamSynchronize(streams.a));
  CU_OK(cuStreamQuery(streams.a));
}

TEST_CASE("Streams_RunIndependently", "[stream]") {
  const test::Fixture fixture;
  Gate gate;
  const Streams streams;
  Launch(fixture.Function("nothing"), streams.a, kBlocked);
  Launch(fixture.Function("nothing"), streams.b);
  CU_OK(cuStreamSynchronize(streams.b));  // would hang if b waited for a
  CHECK(cuStreamQuery(streams.a) == CUDA_ERROR_NOT_READY);
  gate.Open();
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("LegacyStream_WaitsForBlockingStreamsOnly", "[stream]") {
  const test::Fixture fixture;
  Gate gate;
  const Streams blocking, free(CU_STREAM_NON_BLOCKING);
  const CUfunction nothing = fixture.Function("nothing");
  SECTION("blocking") {
    Launch(nothing, blocking.a, kBlocked);
    Launch(nothing, nullptr);
    Launch(nothing, blocking.b);  // behind the legacy stream, hence behind a
    CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
    CHECK(cuStreamQuery(blocking.b) == CUDA_ERROR_NOT_READY);
    Launch(nothing, free.a);
    CU_OK(cuStreamSynchronize(free.a));
  }
  SECTION("non-blocking") {
    Launch(nothing, free.a, kBlocked);
    Launch(nothing, nullptr);
    CU_OK(cuStreamSynchronize(nullptr));
    CHECK(cuStreamQuery(free.a) == CUDA_ERROR_NOT_READY);
  }
  gate.Open();
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("LegacyStream_WorksWithNothingToDo_StandBetweenBlockingStreams", "[stream]") {
  const test::Fixture fixture;
  Gate gate;
  const Streams streams;
  const Streams others(CU_STREAM_NON_BLOCKING);
  CUevent event = nullptr;
  CU_OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  CUdeviceptr memory = 0;
  const std::string work =
      GENERATE(as<std::string>(), "allocation", "wait for an event that was never recorded", "wait for what is over");
  INFO(work);
  if (work == "wait for what is over") {
    CU_OK(cuEventRecord(event, others.a));
    CU_OK(cuEventSynchronize(event));
  }
  Launch(fixture.Function("nothing"), streams.a, kBlocked);
  gate.WaitUntilEntered();
  if (work == "allocation") CU_OK(cuMemAllocAsync(&memory, 256, nullptr));
  else CU_OK(cuStreamWaitEvent(nullptr, event, 0));
  Launch(fixture.Function("nothing"), streams.b);
  Launch(fixture.Function("nothing"), others.b);
  CU_OK(cuStreamSynchronize(others.b));
  for (int look = 0; look < 50; ++look) {
    CHECK(cuStreamQuery(streams.b) == CUDA_ERROR_NOT_READY);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  gate.Open();
  CU_OK(cuStreamSynchronize(streams.b));
  if (memory != 0) CU_OK(cuMemFreeAsync(memory, nullptr));
  CU_OK(cuEventDestroy_v2(event));
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("PerThreadStreams_AreSeparateAndBlocking", "[stream]") {
  const test::Fixture fixture;
  Gate gate;
  const CUfunction nothing = fixture.Function("nothing");
  CU_OK(cuLaunchKernel_ptsz(nothing, kBlocked, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  std::thread([&] {
    CU_OK(cuCtxSetCurrent(fixture.context));
    CU_OK(cuLaunchKernel_ptsz(nothing, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
    CU_OK(cuStreamSynchronize_ptsz(nullptr));  // its own stream
    Launch(nothing, nullptr);
    CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);  // the legacy stream waits for the other thread's
  }).join();
  CHECK(cuStreamQuery(reinterpret_cast<CUstream>(kStreamPerThread)) == CUDA_ERROR_NOT_READY);
  gate.Open();
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("Events_OrderStreamsAndMeasureTime", "[stream]") {
  const test::Fixture fixture;
  Gate gate;
  const Streams streams;
  const CUfunction nothing = fixture.Function("nothing");
  CUevent start, end;
  CU_OK(cuEventCreate(&start, 0));
  CU_OK(cuEventCreate(&end, 0));
  CU_OK(cuEventQuery(end));  // never recorded counts as done
  CU_OK(cuEventRecord(start, streams.a));
  Launch(nothing, streams.a, kBlocked);
  CU_OK(cuEventRecord(end, streams.a));
  CU_OK(cuStreamWaitEvent(streams.b, end, 0));
  Launch(nothing, streams.b);
  gate.WaitUntilEntered();
  CHECK(cuEventQuery(end) == CUDA_ERROR_NOT_READY);
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_NOT_READY);
  CHECK(FakeEngine::Get().launches() == 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.Open();
  CU_OK(cuEventSynchronize(end));
  CU_OK(cuStreamSynchronize(streams.b));
  CU_OK(cuEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 5.0f);
  CHECK(FakeEngine::Get().launches() == 2);
  CU_OK(cuEventDestroy_v2(start));
  CU_OK(cuEventDestroy_v2(end));
  CHECK(cuEventQuery(end) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("HostFunctions_RunInOrderAndMayNotCallTheDriver", "[stream]") {
  const test::Fixture fixture;
  const Streams streams;
  struct State {
    std::atomic<int> steps{0};
    CUresult inside = CUDA_SUCCESS;
  } state;
  Launch(fixture.Function("nothing"), streams.a);
  CU_OK(cuLaunchHostFunc(
      streams.a,
      [](void* data) {
        auto& s = *static_cast<State*>(data);
        std::size_t free = 0;
        s.inside = cuMemGetInfo_v2(&free, nullptr);
        s.steps = 1;
      },
      &state));
  CU_OK(cuStreamAddCallback(
      streams.a,
      [](CUstream, CUresult status, void* data) {
        auto& s = *static_cast<State*>(data);
        if (status == CUDA_SUCCESS && s.steps == 1) s.steps = 2;
      },
      &state, 0));
  CU_OK(cuStreamSynchronize(streams.a));
  CHECK(state.steps == 2);
  CHECK(state.inside == CUDA_ERROR_NOT_PERMITTED);
}

TEST_CASE("WaitValue_HoldsTheStreamUntilTheHostWrites", "[stream]") {
  const test::Fixture fixture;
  const Streams streams;
  void* memory = nullptr;
  CU_OK(cuMemHostAlloc(&memory, 64, 0));
  auto* const word = static_cast<std::atomic<unsigned>*>(memory);
  *word = 0;
  CU_OK(cuStreamWaitValue32_v2(streams.a, reinterpret_cast<CUdeviceptr>(memory), 5, CU_STREAM_WAIT_VALUE_GEQ));
  Launch(fixture.Function("nothing"), streams.a);
  CU_OK(cuStreamWriteValue32_v2(streams.a, reinterpret_cast<CUdeviceptr>(memory) + 4, 9, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(FakeEngine::Get().launches() == 0);
  *word = 6;
  CU_OK(cuStreamSynchronize(streams.a));
  CHECK(word[1] == 9);
  CU_OK(cuMemFreeHost(memory));
}

TEST_CASE("ManyThreads_LaunchConcurrently", "[stream]") {
  const test::Fixture fixture;
  const CUfunction nothing = fixture.Function("nothing");
  constexpr int kThreads = 8, kLaunches = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      cuCtxSetCurrent(fixture.context);
      CUstream stream = nullptr;
      cuStreamCreate(&stream, t % 2 == 0 ? 0 : CU_STREAM_NON_BLOCKING);
      CUdeviceptr memory = 0;
      cuMemAlloc_v2(&memory, 4096);
      for (int i = 0; i < kLaunches; ++i) {
        cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, i % 3 == 0 ? nullptr : stream, nullptr, nullptr);
        if (i % 5 == 0) cuMemsetD8Async(memory, 1, 4096, stream);
        if (i % 50 == 0) cuStreamSynchronize(stream);
      }
      cuStreamSynchronize(stream);
      cuStreamDestroy_v2(stream);
      cuMemFree_v2(memory);
    });
  }
  for (auto& thread : threads) thread.join();
  CU_OK(cuCtxSynchronize());
  CHECK(FakeEngine::Get().launches() == kThreads * kLaunches);
}

TEST_CASE("StreamContext_IsNotGreen", "[stream]") {
  const test::Fixture fixture;
  const Streams streams;
  CUcontext current = nullptr, context = nullptr;
  CU_OK(cuCtxGetCurrent(&current));
  for (const CUstream stream : {streams.a, static_cast<CUstream>(nullptr)}) {
    auto green = reinterpret_cast<CUgreenCtx>(&context);
    CU_OK(cuStreamGetCtx_v2(stream, &context, &green));
    CHECK(context == current);
    CHECK(green == nullptr);
    green = reinterpret_cast<CUgreenCtx>(&context);
    CU_OK(cuStreamGetGreenCtx(stream, &green));
    CHECK(green == nullptr);
  }
  CHECK(cuStreamGetGreenCtx(streams.a, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Stream_WithoutACurrentContext_GoesByItsOwn", "[stream]") {
  const test::Fixture fixture;
  const Streams s(CU_STREAM_NON_BLOCKING);
  CUevent event;
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUcontext none = nullptr;
  CU_OK(cuCtxPopCurrent_v2(&none));
  CU_OK(cuEventRecord(event, s.a));
  CHECK(cuEventRecord(event, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuEventRecord(event, reinterpret_cast<CUstream>(0x123450)) == CUDA_ERROR_INVALID_HANDLE);
  CU_OK(cuStreamWaitEvent(s.b, event, 0));
  CU_OK(cuStreamSynchronize(s.b));
  CHECK(cuStreamSynchronize(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CU_OK(cuStreamQuery(s.b));
  CUdeviceptr memory = 1;
  CU_OK(cuMemAllocAsync(&memory, 0, s.a));
  CHECK(memory == 0);
  CU_OK(cuMemAllocAsync(&memory, 64, s.a));
  CU_OK(cuMemFreeAsync(memory, s.a));
  CU_OK(cuStreamSynchronize(s.a));
  CU_OK(cuCtxPushCurrent_v2(fixture.context));
  CU_OK(cuEventDestroy_v2(event));
}

TEST_CASE("Launch_ByWhateverEntryPoint_HasItsStreamsPriority", "[stream]") {
  const test::Fixture fixture;
  const CUfunction function = fixture.Function("nothing");
  CU_OK(cuFuncSetBlockShape(function, 32, 1, 1));
  CUstream stream = nullptr;
  CU_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -3));
  CUlaunchConfig config{};
  config.grid_dim_x = config.grid_dim_y = config.grid_dim_z = config.block_dim_x = config.block_dim_y =
      config.block_dim_z = 1;
  config.stream = stream;
  CUDA_LAUNCH_PARAMS several{};
  several.function = function;
  several.grid_dim_x = several.grid_dim_y = several.grid_dim_z = several.block_dim_x = several.block_dim_y =
      several.block_dim_z = 1;
  several.stream = stream;
  const std::function<CUresult()> launches[] = {
      [&] { return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr); },
      [&] { return cuLaunchKernelEx(&config, function, nullptr, nullptr); },
      [&] { return cuLaunchCooperativeKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr); },
      [&] { return cuLaunchCooperativeKernelMultiDevice(&several, 1, 0); },
      [&] { return cuLaunchGridAsync(function, 1, 1, stream); },
  };
  for (std::size_t i = 0; i < std::size(launches); ++i) {
    INFO("entry point " << i);
    // What a launch asked for is seen in the node that it becomes.
    CU_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_OK(launches[i]());
    CUgraph graph = nullptr;
    CU_OK(cuStreamEndCapture(stream, &graph));
    CUgraphNode node = nullptr;
    std::size_t count = 1;
    CU_OK(cuGraphGetNodes(graph, &node, &count));
    REQUIRE(count == 1);
    CUlaunchAttributeValue value{};
    CU_OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CHECK(value.priority == -3);
    CU_OK(cuGraphDestroy(graph));
  }
  CU_OK(cuStreamDestroy_v2(stream));
}
