// Green contexts: how SMs are divided, and what belongs to a green context.
#include <atomic>
#include <set>
#include <thread>

#include "interpose/api/newer_types.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;
using test::FakeEngine;

namespace {

using Wish = CU_DEV_SM_RESOURCE_GROUP_PARAMS;

CUdevResource OfDevice() {
  CUdevResource resource;
  CU_OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  return resource;
}

std::vector<CUdevResource> Split(const CUdevResource& input, unsigned groups, unsigned count,
                                 CUdevResource* rest = nullptr, unsigned flags = 0) {
  std::vector<CUdevResource> parts(groups);
  CU_OK(cuDevSmResourceSplitByCount(parts.data(), &groups, &input, rest, flags, count));
  parts.resize(groups);
  return parts;
}

CUdevResourceDesc Describe(std::vector<CUdevResource> resources) {
  CUdevResourceDesc desc = nullptr;
  CU_OK(cuDevResourceGenerateDesc(&desc, resources.data(), static_cast<unsigned>(resources.size())));
  return desc;
}

/// A green context of these resources, for as long as it lives.
class Green {
 public:
  explicit Green(const std::vector<CUdevResource>& resources) {
    CU_OK(cuGreenCtxCreate(&handle_, Describe(resources), 0, CU_GREEN_CTX_DEFAULT_STREAM));
  }
  ~Green() { static_cast<void>(cuGreenCtxDestroy(handle_)); }
  CUgreenCtx handle() const { return handle_; }
  CUcontext context() const {
    CUcontext context = nullptr;
    CU_OK(cuCtxFromGreenCtx(&context, handle_));
    return context;
  }
  CUstream NewStream() const {
    CUstream stream = nullptr;
    CU_OK(cuGreenCtxStreamCreate(&stream, handle_, CU_STREAM_NON_BLOCKING, 0));
    return stream;
  }
  unsigned sms() const {
    CUdevResource resource;
    CU_OK(cuGreenCtxGetDevResource(handle_, &resource, CU_DEV_RESOURCE_TYPE_SM));
    return resource.sm.sm_count;
  }

 private:
  CUgreenCtx handle_ = nullptr;
};

/// The SMs that a launch into the stream runs on.
std::set<std::uint32_t> SmsOf(const test::Fixture& fixture, CUstream stream) {
  std::set<std::uint32_t> sms;
  CU_OK(cuCtxSynchronize());  // no other launch shall meet the body
  FakeEngine::Get().set_body([&](const exec::LaunchParams& launch) {
    sms = {launch.sms.begin(), launch.sms.end()};
    return exec::LaunchFault{};
  });
  CU_OK(cuLaunchKernel(fixture.Function("nothing"), 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
  CU_OK(cuStreamSynchronize(stream));
  FakeEngine::Get().set_body({});
  return sms;
}

}  // namespace

TEST_CASE("SplitByCount_MakesGroupsOfOneSizeAndARest", "[green]") {
  const test::Fixture fixture;
  const CUdevResource all = OfDevice();
  const unsigned sms = all.sm.sm_count, multiple = all.sm.coscheduled;
  for (const unsigned count : {0u, 1u, 2u, 5u, 8u, 9u, 16u, sms / 2, sms - 1, sms}) {
    INFO("at least " << count);
    const unsigned wanted = std::max(count, all.sm.min_partition), size = (wanted + multiple - 1) / multiple * multiple;
    unsigned groups = 99;
    CU_OK(cuDevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, count));
    CHECK(groups == sms / size);
    if (groups == 0) {
      CUdevResource part;
      groups = 1;
      CHECK(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, count) ==
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
      continue;
    }
    CUdevResource rest;
    const auto parts = Split(all, groups + 3, count, &rest);
    REQUIRE(parts.size() == groups);
    for (const CUdevResource& part : parts) CHECK((part.type == CU_DEV_RESOURCE_TYPE_SM && part.sm.sm_count == size));
    const unsigned left = sms - groups * size;
    CHECK(rest.type == (left != 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID));
    if (left != 0) CHECK(rest.sm.sm_count == left);
    // Fewer than there could be: what is left is more.
    CHECK(Split(all, 1, count, &rest).size() == 1);
    CHECK(rest.sm.sm_count == sms - size);
  }
  const auto pairs = Split(all, sms, 2, nullptr, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
  CHECK(pairs.size() == sms / 2);
  CHECK(pairs[0].sm.sm_count == 2);
}

TEST_CASE("SplitByCount_WhatCannotBe_IsRefused", "[green]") {
  const test::Fixture fixture;
  CUdevResource all = OfDevice(), part;
  unsigned one = 1, none = 0;
  CHECK(cuDevSmResourceSplitByCount(&part, nullptr, &all, nullptr, 0, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(&part, &none, &all, nullptr, 0, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(&part, &one, nullptr, nullptr, 0, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(&part, &one, &all, nullptr, 4, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(&part, &one, &all, nullptr, 0, all.sm.sm_count + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(&part, &one, &all, nullptr, 0, ~0u) == CUDA_ERROR_INVALID_VALUE);
  // What a split made is divided by way of a green context only.
  part = Split(all, 1, 16)[0];
  CUdevResource again;
  CHECK(cuDevSmResourceSplitByCount(&again, &one, &part, nullptr, 0, 8) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  // What nobody gave out, or was changed.
  CUdevResource made_up{};
  CHECK(cuDevSmResourceSplitByCount(&part, &one, &made_up, nullptr, 0, 8) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
  made_up.type = CU_DEV_RESOURCE_TYPE_SM;
  made_up.sm.sm_count = 64;
  CHECK(cuDevSmResourceSplitByCount(&part, &one, &made_up, nullptr, 0, 8) == CUDA_ERROR_INVALID_VALUE);
  all.sm.sm_count *= 2;
  CHECK(cuDevSmResourceSplitByCount(&part, &one, &all, nullptr, 0, 8) == CUDA_ERROR_INVALID_VALUE);
  for (std::size_t i = 4; i < 60; ++i) {  // whatever is written to it, nothing but SMs of the device comes out
    CUdevResource changed = OfDevice();
    changed.padding[i] ^= 0x81;
    CUdevResourceDesc desc = nullptr;
    CUgreenCtx green = nullptr;
    if (cuDevResourceGenerateDesc(&desc, &changed, 1) != CUDA_SUCCESS ||
        cuGreenCtxCreate(&green, desc, 0, 0) != CUDA_SUCCESS)
      continue;
    CUdevResource of;
    CU_OK(cuGreenCtxGetDevResource(green, &of, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(of.sm.sm_count <= OfDevice().sm.sm_count);
    CU_OK(cuGreenCtxDestroy(green));
  }
}

TEST_CASE("Split_IntoGroupsAsWished", "[green]") {
  const test::Fixture fixture;
  const CUdevResource all = OfDevice();
  const unsigned sms = all.sm.sm_count, multiple = all.sm.coscheduled;
  CUdevResource parts[2], rest;
  Wish wishes[2] = {};
  wishes[0].sm_count = 2 * multiple;
  wishes[1].coscheduled = 2;  // all that is left
  CU_OK(cuDevSmResourceSplit(parts, 2, &all, &rest, 0, wishes));
  CHECK(parts[0].sm.sm_count == 2 * multiple);
  CHECK(wishes[1].sm_count == (sms - 2 * multiple) / 2 * 2);
  CHECK(parts[1].sm.sm_count == wishes[1].sm_count);
  CHECK(parts[1].sm.coscheduled == 2);
  CHECK(rest.type == CU_DEV_RESOURCE_TYPE_INVALID);
  // The rest can be divided again.
  wishes[0] = {};
  wishes[0].sm_count = multiple;
  CU_OK(cuDevSmResourceSplit(parts, 1, &all, &rest, 0, wishes));
  CHECK(rest.sm.sm_count == sms - multiple);
  CU_OK(cuDevSmResourceSplit(parts, 1, &rest, nullptr, 0, wishes));
  // To find out alone, without results: nothing may be left for the second.
  wishes[0] = wishes[1] = {};
  CU_OK(cuDevSmResourceSplit(nullptr, 2, &all, nullptr, 0, wishes));
  CHECK(wishes[0].sm_count == sms / multiple * multiple);
  CHECK(wishes[1].sm_count == 0);
  wishes[0] = wishes[1] = {};
  CHECK(cuDevSmResourceSplit(parts, 2, &all, nullptr, 0, wishes) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  const auto answer = [&](unsigned count, unsigned together = 0, unsigned flags = 0, unsigned reserved = 0) {
    Wish wish{};
    wish.sm_count = count;
    wish.coscheduled = together;
    wish.flags = flags;
    wish.reserved[1] = reserved;
    return cuDevSmResourceSplit(parts, 1, &all, nullptr, 0, &wish);
  };
  CHECK(answer(multiple + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(multiple + 2) == (multiple > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
  CHECK(answer(multiple + 2, 0, CU_DEV_SM_RESOURCE_GROUP_BACKFILL) == CUDA_SUCCESS);
  CHECK(answer(~0u) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(2 * sms) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(8, 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(8, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(8, 0, 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(8, 0, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(answer(8, 0, CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(cuDevSmResourceSplit(parts, 0, &all, nullptr, 0, wishes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplit(parts, 1, &all, nullptr, 1, wishes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplit(parts, 1, &all, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplit(parts, 1, nullptr, nullptr, 0, wishes) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplit(parts, ~0u, &all, nullptr, 0, wishes) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("GenerateDesc_TakesPartsOfOneSplitOnly", "[green]") {
  const test::Fixture fixture;
  const CUdevResource all = OfDevice();
  CUdevResource rest;
  auto parts = Split(all, 2, 16, &rest);
  const auto other = Split(all, 1, 16);
  const auto describe = [](std::vector<CUdevResource> resources) {
    CUdevResourceDesc desc = nullptr;
    return cuDevResourceGenerateDesc(&desc, resources.data(), static_cast<unsigned>(resources.size()));
  };
  CU_OK(describe({all}));
  CU_OK(describe({parts[0], rest}));
  CU_OK(describe({parts[1], parts[0], rest}));
  CHECK(describe({parts[0], parts[0]}) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(describe({parts[0], other[0]}) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(describe({all, all}) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(describe({CUdevResource{}}) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
  CUdevResourceDesc desc = nullptr;
  CHECK(cuDevResourceGenerateDesc(nullptr, parts.data(), 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevResourceGenerateDesc(&desc, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevResourceGenerateDesc(&desc, parts.data(), 0) == CUDA_ERROR_INVALID_VALUE);
  CUgreenCtx green = nullptr;
  CHECK(cuGreenCtxCreate(&green, nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGreenCtxCreate(nullptr, Describe({all}), 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGreenCtxCreate(&green, Describe({all}), 0, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGreenCtxCreate(&green, Describe({all}), 7, 0) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuGreenCtxCreate(&green, reinterpret_cast<CUdevResourceDesc>(&green), 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("GreenContexts_RunKernelsOnTheirSmsAlone", "[green]") {
  const test::Fixture fixture;
  CUdevResource rest;
  const auto parts = Split(OfDevice(), 3, 16, &rest);
  const Green first({parts[0]}), others({parts[2], parts[1]});
  CUstream plain = nullptr;
  CU_OK(cuStreamCreate(&plain, 0));
  const CUstream a = first.NewStream(), b = others.NewStream();
  CHECK(SmsOf(fixture, plain).empty());
  const auto of_a = SmsOf(fixture, a), of_b = SmsOf(fixture, b);
  CHECK(of_a.size() == 16);
  CHECK(of_b.size() == 32);
  for (const std::uint32_t sm : of_a) CHECK(!of_b.contains(sm));
  // A graph's node has the SMs of the stream that it was captured from, wherever the graph runs.
  CU_OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuLaunchKernel(fixture.Function("nothing"), 1, 1, 1, 32, 1, 1, 0, a, nullptr, nullptr));
  CUgraph graph = nullptr;
  CU_OK(cuStreamEndCapture(a, &graph));
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  std::size_t sms = 0;
  FakeEngine::Get().set_body([&](const exec::LaunchParams& launch) {
    sms = launch.sms.size();
    return exec::LaunchFault{};
  });
  CU_OK(cuGraphLaunch(exec, plain));
  CU_OK(cuStreamSynchronize(plain));
  FakeEngine::Get().set_body({});
  CHECK(sms == 16);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
  // A cooperative grid fits on them or does not.
  const auto cooperative = [&](CUstream stream, unsigned ctas) {
    return cuLaunchCooperativeKernel(fixture.Function("nothing"), ctas, 1, 1, 1024, 1, 1, 0, stream, nullptr);
  };
  CU_OK(cooperative(a, 32));
  CHECK(cooperative(a, 33) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CU_OK(cooperative(plain, 33));
  // Divided again.
  CUdevResource of_others;
  CU_OK(cuGreenCtxGetDevResource(others.handle(), &of_others, CU_DEV_RESOURCE_TYPE_SM));
  const Green second({Split(of_others, 2, 16)[1]});
  const CUstream c = second.NewStream();
  const auto of_c = SmsOf(fixture, c);
  CHECK(of_c.size() == 16);
  for (const std::uint32_t sm : of_c) CHECK(of_b.contains(sm));
  for (const CUstream stream : {plain, a, b, c}) CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("GreenContext_MadeCurrent_IsWhatDefaultAndNewStreamsAreOf", "[green]") {
  const test::Fixture fixture;
  const Green green(Split(OfDevice(), 1, 8));
  const CUcontext context = green.context();
  CHECK(context == reinterpret_cast<CUcontext>(green.handle()));  // the runtime destroys it by this handle
  CU_OK(cuCtxPushCurrent_v2(context));
  CUcontext current = nullptr;
  CU_OK(cuCtxGetCurrent(&current));
  CHECK(current == context);
  CUstream stream = nullptr;
  CU_OK(cuStreamCreate(&stream, 0));
  for (const CUstream one : {stream, CUstream{nullptr}, reinterpret_cast<CUstream>(1)}) {
    CHECK(SmsOf(fixture, one).size() == green.sms());
    CUgreenCtx of = nullptr;
    CUcontext whose = nullptr;
    CU_OK(cuStreamGetGreenCtx(one, &of));
    CHECK(of == green.handle());
    CU_OK(cuStreamGetCtx(one, &whose));
    CHECK(whose == context);
    of = nullptr;
    CU_OK(cuStreamGetCtx_v2(one, &whose, &of));
    CHECK((whose == fixture.context && of == green.handle()));
    CUdevResource resource;
    CU_OK(cuStreamGetDevResource(one, &resource, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(resource.sm.sm_count == green.sms());
  }
  std::uint64_t id = 0, same = 0, primary = 0;
  CU_OK(cuGreenCtxGetId(green.handle(), &id));
  CU_OK(cuGreenCtxGetId(nullptr, &same));
  CU_OK(cuCtxGetId(fixture.context, &primary));
  CHECK((id == same && id != primary));
  CUdevResource resource;
  CU_OK(cuCtxGetDevResource(nullptr, &resource, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(resource.sm.sm_count == green.sms());
  CU_OK(cuCtxGetDevResource(fixture.context, &resource, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(resource.sm.sm_count > green.sms());
  CUdeviceptr memory = 0;  // all else is the primary context's
  CU_OK(cuMemAlloc_v2(&memory, 64));
  CU_OK(cuCtxSynchronize());
  CU_OK(cuCtxPopCurrent_v2(&current));
  CHECK(current == context);
  CU_OK(cuMemFree_v2(memory));
  CHECK(SmsOf(fixture, nullptr).empty());
  CHECK(SmsOf(fixture, stream).size() == green.sms());
  CHECK(cuGreenCtxGetId(nullptr, &id) == CUDA_ERROR_INVALID_CONTEXT);
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("GreenContext_Destroyed_LeavesStreamsThatCanOnlyBeDestroyed", "[green]") {
  const test::Fixture fixture;
  auto green = std::make_unique<Green>(Split(OfDevice(), 1, 8));
  const CUgreenCtx handle = green->handle();
  const CUcontext context = green->context();
  const CUstream stream = green->NewStream();
  CU_OK(cuCtxPushCurrent_v2(context));
  green.reset();
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_STREAM_DETACHED);
  CHECK(cuMemFree_v2(1) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CU_OK(cuCtxPopCurrent_v2(nullptr));
  CHECK(cuCtxPushCurrent_v2(context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuLaunchKernel(fixture.Function("nothing"), 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr) ==
        CUDA_ERROR_STREAM_DETACHED);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_DETACHED);
  CHECK(cuGreenCtxDestroy(handle) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuGreenCtxDestroy(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CUstream other = nullptr;
  CHECK(cuGreenCtxStreamCreate(&other, handle, CU_STREAM_NON_BLOCKING, 0) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CU_OK(cuStreamDestroy_v2(stream));
  CHECK(cuStreamDestroy_v2(stream) == CUDA_ERROR_INVALID_HANDLE);
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("GreenContext_Streams_MustBeNonBlocking", "[green]") {
  const test::Fixture fixture;
  const Green green(Split(OfDevice(), 1, 8));
  CUstream stream = nullptr;
  CHECK(cuGreenCtxStreamCreate(&stream, green.handle(), 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGreenCtxStreamCreate(nullptr, green.handle(), CU_STREAM_NON_BLOCKING, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGreenCtxStreamCreate(&stream, nullptr, CU_STREAM_NON_BLOCKING, 0) == CUDA_ERROR_INVALID_CONTEXT);
  CU_OK(cuGreenCtxStreamCreate(&stream, green.handle(), CU_STREAM_NON_BLOCKING, -100));
  int priority = 0;
  CU_OK(cuStreamGetPriority(stream, &priority));
  CHECK(priority == -5);
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("GreenContext_Events_StandForAllItsStreams", "[green]") {
  const test::Fixture fixture;
  const auto parts = Split(OfDevice(), 2, 8);
  const Green green({parts[0]}), other({parts[1]});
  const CUstream a = green.NewStream(), b = green.NewStream(), c = other.NewStream();
  CUevent event = nullptr;
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  std::atomic<bool> open{false};
  std::atomic<int> ended{0};
  FakeEngine::Get().set_body([&](const exec::LaunchParams& launch) {
    while (launch.grid.x == 99 && !open.load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    ended += launch.grid.x == 99;
    return exec::LaunchFault{};
  });
  const auto launch = [&](CUstream stream, unsigned grid) {
    CU_OK(cuLaunchKernel(fixture.Function("nothing"), grid, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
  };
  launch(a, 99);
  CU_OK(cuGreenCtxRecordEvent(other.handle(), event));
  CU_OK(cuEventSynchronize(event));  // what others do is not its
  CU_OK(cuGreenCtxRecordEvent(green.handle(), event));
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CU_OK(cuStreamSynchronize(b));
  // All that the other one does waits, in streams that come later, too.
  CU_OK(cuGreenCtxWaitEvent(other.handle(), event));
  const CUstream later = other.NewStream();
  CHECK(cuStreamQuery(c) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(later) == CUDA_ERROR_NOT_READY);
  CUstream plain = nullptr;
  CU_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamQuery(plain));
  CU_OK(cuCtxWaitEvent(nullptr, event));
  CHECK(cuStreamQuery(plain) == CUDA_ERROR_NOT_READY);
  open = true;
  CU_OK(cuEventSynchronize(event));
  CHECK(ended == 1);
  CU_OK(cuCtxRecordEvent(nullptr, event));
  CU_OK(cuEventSynchronize(event));
  for (const CUstream stream : {a, b, c, later, plain}) CU_OK(cuStreamSynchronize(stream));
  // While a stream is captured there is no such event.
  CU_OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuGreenCtxRecordEvent(green.handle(), event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(a, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuGreenCtxRecordEvent(nullptr, event) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuGreenCtxRecordEvent(green.handle(), nullptr) == CUDA_ERROR_INVALID_HANDLE);
  FakeEngine::Get().set_body({});
  CU_OK(cuEventDestroy_v2(event));
  for (const CUstream stream : {a, b, c, later, plain}) CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("GreenContexts_OfWhichThereWereThousands_LeaveNothing", "[green]") {
  const test::Fixture fixture;
  const auto parts = Split(OfDevice(), 1, 8);
  const CUdevResourceDesc desc = Describe(parts);
  CHECK(Describe(parts) == Describe(parts));  // nothing gives them back
  CHECK(desc != nullptr);
  std::set<CUgreenCtx> handles;
  std::set<std::uint64_t> ids;
  CUevent event = nullptr;
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    CUgreenCtx green = nullptr;
    std::uint64_t id = 0;
    CU_OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CU_OK(cuGreenCtxGetId(green, &id));
    CHECK(ids.insert(id).second);
    CU_OK(cuGreenCtxWaitEvent(green, event));
    CUstream stream = nullptr;
    CU_OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    CU_OK(cuLaunchKernel(fixture.Function("nothing"), 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuStreamDestroy_v2(stream));
    CU_OK(cuGreenCtxDestroy(green));
    CHECK(cuGreenCtxDestroy(green) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    handles.insert(green);
  }
  // Memory that is freed comes back: had all of them been kept, there would be as many handles as rounds.
  CHECK(handles.size() < kRounds / 2);
  CU_OK(cuEventDestroy_v2(event));
}

TEST_CASE("GreenContext_ThatAThreadHas_IsThereUntilItLetsItGo", "[green]") {
  const test::Fixture fixture;
  const auto parts = Split(OfDevice(), 1, 8);
  const auto make = [&] {
    CUgreenCtx green = nullptr;
    CU_OK(cuGreenCtxCreate(&green, Describe(parts), 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
  };
  const CUgreenCtx held = make();
  CUcontext context = nullptr;
  CU_OK(cuCtxFromGreenCtx(&context, held));
  std::atomic<int> step{0};
  std::atomic<bool> right{false};
  std::thread other([&] {
    bool ok = cuCtxPushCurrent_v2(context) == CUDA_SUCCESS && cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
    step = 1;
    while (step != 2) std::this_thread::yield();
    CUcontext current = nullptr;
    ok = ok && cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context;
    ok = ok && cuMemFree_v2(1) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    ok = ok && cuCtxPopCurrent_v2(&current) == CUDA_SUCCESS && current == context;
    right = ok;  // the other place goes with the thread
  });
  while (step != 1) std::this_thread::yield();
  CU_OK(cuGreenCtxDestroy(held));
  std::set<CUgreenCtx> handles;
  for (int i = 0; i < 500; ++i) {
    const CUgreenCtx green = make();
    handles.insert(green);
    CU_OK(cuGreenCtxDestroy(green));
  }
  CHECK(!handles.contains(held));  // nobody else is where it is
  CHECK(cuGreenCtxDestroy(held) == CUDA_ERROR_INVALID_CONTEXT);
  step = 2;
  other.join();
  CHECK(right);
}

TEST_CASE("GreenContext_OfANodeOrAStream_OutlivesItsHandle", "[green]") {
  const test::Fixture fixture;
  const auto parts = Split(OfDevice(), 1, 8);
  auto green = std::make_unique<Green>(parts);
  const unsigned sms = green->sms();
  const CUstream stream = green->NewStream();
  CU_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuLaunchKernel(fixture.Function("nothing"), 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
  CUgraph graph = nullptr;
  CU_OK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  green.reset();
  for (int i = 0; i < 200; ++i) Green other(parts);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_STREAM_DETACHED);
  std::size_t ran_on = 0;
  FakeEngine::Get().set_body([&](const exec::LaunchParams& launch) {
    ran_on = launch.sms.size();
    return exec::LaunchFault{};
  });
  CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuStreamSynchronize(nullptr));
  FakeEngine::Get().set_body({});
  CHECK(ran_on == sms);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuStreamDestroy_v2(stream));
}

// What the runtime of CUDA 13.5 asks before it destroys an execution context or waits for a device (docs/shim.md).
TEST_CASE("RuntimeTable_AsksWhetherAContextIsGreen", "[green]") {
  const test::Fixture fixture;
  const Green green(Split(OfDevice(), 1, 8));
  constexpr CUuuid kTable = {
      {0x26, 0x3E, 0x88, 0x60, 0x7C, 0xD2, 0x61, 0x43, 0x92, 0xF6, 0xBB, 0xD5, 0x00, 0x6D, 0xFA, 0x7E}};
  const void* table = nullptr;
  CU_OK(cuGetExportTable(&table, &kTable));
  const auto ask =
      reinterpret_cast<CUresult (*)(CUcontext, unsigned*, CUcontext*)>(static_cast<void* const*>(table)[2]);
  unsigned is_green = 7;
  CUcontext device = nullptr;
  CU_OK(ask(green.context(), &is_green, &device));
  CHECK(is_green == 1);
  CHECK(device == fixture.context);
  CU_OK(ask(green.context(), &is_green, nullptr));
  CHECK(is_green == 1);
  device = nullptr;
  CU_OK(ask(fixture.context, &is_green, &device));
  CHECK(is_green == 0);
  CHECK(device == nullptr);
}
