#include "interpose/launch/submit.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "interpose/base/log.h"
#include "interpose/base/thread_state.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/stages.h"
#include "interpose/objects/free.h"
#include "interpose/objects/process.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/range_capture.h"
#include "rewriter/support/own_thread.h"

namespace gridloom::session {

using namespace cuda;

namespace {

DeviceTurn TurnOn(const Context& context) { return DeviceTurn(context.process().observers().range_capture()); }

void RunCopy(const Context& context, const CopyOp& op) {
  const DeviceTurn turn = TurnOn(context);
  if (op.width == 0 || op.height == 0 || op.depth == 0) return;
  for (std::size_t z = 0; z < op.depth; ++z) {
    const std::byte* src = op.src + z * op.src_slice;
    std::byte* dst = op.dst + z * op.dst_slice;
    if (op.src_pitch == op.width && op.dst_pitch == op.width) {
      std::memmove(dst, src, op.width * op.height);
      continue;
    }
    for (std::size_t y = 0; y < op.height; ++y) std::memmove(dst + y * op.dst_pitch, src + y * op.src_pitch, op.width);
  }
}

template <typename T>
void FillRow(std::uint64_t address, T value, std::size_t count) {
  std::fill_n(reinterpret_cast<T*>(address), count, value);
}

void RunFill(const Context& context, const CUDA_MEMSET_NODE_PARAMS& p) {
  const DeviceTurn turn = TurnOn(context);
  for (std::size_t y = 0; y < p.height; ++y) {
    const std::uint64_t row = p.dst + y * p.pitch;
    if (p.element_size == 1) std::memset(reinterpret_cast<void*>(row), static_cast<int>(p.value & 0xff), p.width);
    else if (p.element_size == 2) FillRow(row, static_cast<std::uint16_t>(p.value), p.width);
    else FillRow(row, static_cast<std::uint32_t>(p.value), p.width);
  }
}

void RunHost(Context& context, const HostOp& op) {
  if (op.function != nullptr && context.failed()) return;  // cuLaunchHostFunc: not called after an error
  struct Scope {
    Scope() { t_state.in_callback = true; }
    ~Scope() {
      t_state.in_callback = false;
      t_receives_faults = false;
    }
  } const scope;
  if (op.function != nullptr) op.function(op.data);
  else op.callback(op.stream, context.status(), op.data);
}

template <typename T>
bool Holds(std::uint64_t address, T value, unsigned flags) {
  const T now = std::atomic_ref<T>(*reinterpret_cast<T*>(address)).load(std::memory_order_acquire);
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<T>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
    default: return static_cast<T>(~(now | value)) != 0;
  }
}

void RunBatch(Context& context, const BatchOp& op) {
  for (const CUstreamBatchMemOpParams& item : op.items) {
    const auto& v = item.value;
    const auto wait = [&](auto value) {
      for (unsigned spins = 0; !Holds(v.address, value, v.flags) && !context.failed() && !context.destroyed();
           ++spins) {
        if (spins < 64) std::this_thread::yield();
        else std::this_thread::sleep_for(std::chrono::microseconds(spins < 1000 ? 10 : 200));
      }
    };
    switch (item.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32: wait(static_cast<std::uint32_t>(v.value)); break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64: wait(v.value); break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32: {
        const DeviceTurn turn = TurnOn(context);
        std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(v.address))
            .store(static_cast<std::uint32_t>(v.value), std::memory_order_release);
        break;
      }
      case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
        const DeviceTurn turn = TurnOn(context);
        std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(v.address))
            .store(v.value, std::memory_order_release);
        break;
      }
      default: std::atomic_thread_fence(std::memory_order_seq_cst); break;
    }
  }
}

/// Bytes that a copy or fill moves.
std::uint64_t BytesOf(const Operation& operation) {
  if (const auto* copy = std::get_if<CopyOp>(&operation))
    return std::uint64_t{copy->width} * copy->height * copy->depth;
  if (const auto* fill = std::get_if<FillOp>(&operation))
    return std::uint64_t{fill->params.width} * fill->params.height;
  return 0;
}

/// Nothing to wait for, and less to do than it takes to wake a thread for it.
bool IsQuick(const Operation& operation) {
  constexpr std::uint64_t kFewBytes = 32 << 10;
  if (std::holds_alternative<CopyOp>(operation) || std::holds_alternative<FillOp>(operation))
    return BytesOf(operation) <= kFewBytes;
  return std::holds_alternative<EventRecordOp>(operation) || std::holds_alternative<EventWaitOp>(operation) ||
         std::holds_alternative<EmptyOp>(operation);
}

}  // namespace

void Run(Context& context, const Operation& operation, const WorkOriginPtr& origin) {
  Observers& observers = context.process().observers();
  try {
    if (const auto* kernel = std::get_if<KernelOp>(&operation))
      return RunLaunch(context, *kernel, origin ? origin : kernel->plan.origin);
    if (const auto* host = std::get_if<HostOp>(&operation)) {
      if (origin != nullptr) observers.memcheck().TellsHost(*origin);
      return RunHost(context, *host);
    }
    const auto* const free = std::get_if<FreeOp>(&operation);
    if (free == nullptr && context.failed()) return;
    if (BrokerLink* const link = observers.broker()) link->AddCopied(BytesOf(operation));
    if (origin != nullptr) observers.memcheck().CheckUses(context, operation, *origin);
    if (free != nullptr) return RunFree(*free);
    if (const auto* copy = std::get_if<CopyOp>(&operation)) RunCopy(context, *copy);
    else if (const auto* fill = std::get_if<FillOp>(&operation)) RunFill(context, fill->params);
    else if (const auto* batch = std::get_if<BatchOp>(&operation)) RunBatch(context, *batch);
    if (MemcheckLog& memcheck = observers.memcheck(); memcheck.written() != nullptr)
      memcheck.NoteWritten(context, operation, origin.get());
  } catch (const std::exception& error) {
    LogFormat(LogLevel::kError, "an operation failed: %s", error.what());
    context.Fail(CUDA_ERROR_UNKNOWN);
  }
}

CUresult Submit(Stream& stream, Operation operation, Waiting waiting) {
  Context& context = stream.context();
  bool captured = false;
  if (const auto status = CaptureOperation(stream, operation, waiting == Waiting::kYes, &captured);
      captured || status != CUDA_SUCCESS) {
    return status;
  }
  Observers& observers = context.process().observers();
  HostTimeline* const timeline = observers.timeline();
  if (timeline != nullptr) timeline->Add(stream, operation);
  MemcheckLog& memcheck = observers.memcheck();
  WorkOriginPtr origin = memcheck.on() ? memcheck.Submitted(stream, operation) : nullptr;
  // Host callbacks must not run on a thread of the program, which may hold locks they take.
  const bool callback = std::holds_alternative<HostOp>(operation);
  // Waits for a value may need this very thread to go on and write it.
  const bool parks = std::holds_alternative<BatchOp>(operation);
  const std::uint64_t lane = callback || parks ? 0 : Context::Lane(stream);
  std::vector<TaskPtr> after;
  if (const auto* wait = std::get_if<EventWaitOp>(&operation)) {
    TaskPtr marker = wait->event->marker();
    const bool over = marker == nullptr || marker->done();
    if (over && stream.kind() != Stream::Kind::kLegacy) return CUDA_SUCCESS;
    if (!over) after.push_back(std::move(marker));
  }
  EventPtr record;
  if (auto* op = std::get_if<EventRecordOp>(&operation)) record = op->event;
  TaskPtr task;
  if (auto* kernel = std::get_if<KernelOp>(&operation)) {
    kernel->stream = stream.id();
    kernel->plan.origin = std::move(origin);
    EnteringLaunch launch{.stream = stream, .op = *kernel, .host_waits = waiting != Waiting::kNo, .lane = lane};
    EnterLaunch(launch);
    if (launch.entered) return CUDA_SUCCESS;
    task = std::move(launch.task);
  }
  if (task == nullptr) {
    const Task::Where where = IsQuick(operation) ? Task::Where::kAnywhere : Task::Where::kThread;
    task = MakeTask(
        lane,
        [&context, operation = std::move(operation), origin = std::move(origin)] { Run(context, operation, origin); },
        where);
  }
  if (record != nullptr) record->set_marker(task);
  switch (waiting) {
    case Waiting::kNo: context.Enqueue(stream, task, after); return CUDA_SUCCESS;
    case Waiting::kIfIdle: context.EnqueueOrRun(stream, task); return CUDA_SUCCESS;
    case Waiting::kYes:
      context.EnqueueAndWait(stream, task);
      if (timeline != nullptr) timeline->Wait(stream);
      memcheck.HostWaited(stream);
      return context.status();
  }
  return CUDA_SUCCESS;
}

}  // namespace gridloom::session
