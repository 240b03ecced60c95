#include "interpose/session/operation.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include "interpose/session/broker_link.h"
#include "interpose/session/capture.h"
#include "interpose/session/device.h"
#include "interpose/session/device_launch.h"
#include "interpose/session/errors.h"
#include "interpose/session/free.h"
#include "interpose/session/green_context.h"
#include "interpose/session/host_timeline.h"
#include "interpose/session/launch_capture.h"
#include "interpose/session/log.h"
#include "interpose/session/memcheck.h"
#include "interpose/session/narrow_tasks.h"
#include "interpose/session/range_capture.h"
#include "interpose/session/range_checking.h"
#include "interpose/session/reordering.h"
#include "interpose/session/settings.h"
#include "interpose/session/slicing.h"
#include "interpose/session/summary.h"
#include "interpose/session/thread_state.h"
#include "interpose/session/timeline.h"
#include "interpose/session/tracing.h"
#include "rewriter/support/own_thread.h"
#include "sim/exec/slices/slices.h"

namespace gridloom::session {

using namespace cuda;

bool HostFormsRun() {
  static const bool run = [] {
    const Settings& settings = TheSettings();
    const std::optional<std::string>* const watchers[] = {
        &settings.trace, &settings.ranges,  &settings.check_ranges, &settings.record_order,
        &settings.slice, &settings.reorder, &settings.connect,      &settings.policy};
    if (MemcheckLog::Get().on() || IsOn(settings.timing)) return false;
    return std::ranges::none_of(
        watchers, [](const auto* setting) { return *setting && !(*setting)->empty() && **setting != "0"; });
  }();
  return run;
}

namespace {

/// Where nobody wants to see the grid, the host may do its work.
bool RunOnHost(Context& context, const KernelOp& op, const exec::LaunchParams& launch, exec::SlicedRun& run) {
  const Kernel::HostForm form = op.kernel->host_form;
  if (form == nullptr || !HostFormsRun() || launch.records != nullptr || op.ctas != nullptr) return false;
  const auto begin = std::chrono::steady_clock::now();
  try {
    if (!form(launch.params, context.device().memory(), context.device().engine().threads())) return false;
  } catch (const std::bad_alloc&) {
    run.fault.kind = exec::FaultKind::kOutOfMemory;
    run.fault.kernel = op.kernel->name();
    run.fault.text = "kernel " + op.kernel->name() + ": the host has no memory left";
  }
  run.stats.ctas = op.grid.count();
  run.stats.warps = op.grid.count() * ((op.block.count() + 31) / 32);
  run.stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return true;
}

/// How a grid runs that nobody else schedules.
exec::SlicedRun RunHere(Context& context, const KernelOp& op, const exec::LaunchParams& launch) {
  exec::SlicedRun run;
  exec::Engine& engine = context.device().engine();
  if (RunOnHost(context, op, launch, run)) return run;
  if (const std::uint64_t size = SliceSizeOf(op); op.in_slices && size != 0)
    return exec::RunInSlices(engine, launch, *op.bound.sliced, size, [&] { return context.failed(); });
  if (RangeChecks* checks = RangeChecks::Get())
    run.fault = checks->Run(engine, context.device().memory(), launch, run.stats);
  else run.fault = engine.Run(launch, &run.stats);
  return run;
}

/// A grid whose turn has come.
struct GridToRun {
  exec::LaunchParams launch;
  bool traced = false;
  std::string no_ranges;
};

/// What it launches itself goes to `children`. Where ranges are wanted, they are in the trace afterwards.
GridToRun Prepare(Context& context, const KernelOp& op, DeviceGrid& children, RangeCapture::Origin origin) {
  GridToRun grid;
  grid.launch = LaunchOf(op);
  grid.launch.children = &children;
  // A node of a graph may be older than the limit that its launch is to find.
  grid.launch.stack_bytes = std::max(op.stack_bytes, context.stack_limit());
  if (Tracing* const tracing = Tracing::Get()) grid.traced = tracing->Wants(op);
  const bool wanted = (grid.traced || RangedLaunchOf(op) != nullptr) && !context.failed();
  RangeCapture* const ranges = wanted ? RangeCapture::Get() : nullptr;
  if (ranges != nullptr) grid.no_ranges = ranges->Run(context, op, grid.launch, origin, grid.traced);
  return grid;
}

/// What a grid uses of memory that is there for part of the work alone.
class GridUses final : public exec::UseOrder {
 public:
  GridUses(MemcheckLog& log, const WorkOriginPtr& origin, const std::string& kernel)
      : log_(log), origin_(origin), kernel_(kernel) {}
  std::string Use(const exec::Allocation& allocation) override {
    return log_.KernelUses(*origin_, allocation, kernel_);
  }

 private:
  MemcheckLog& log_;
  const WorkOriginPtr& origin_;
  const std::string& kernel_;
};

/// Runs one grid: where the broker has its say, as `brokered` is told.
void RunPrepared(Context& context, const KernelOp& op, GridToRun grid, BrokeredLaunch* brokered,
                 const WorkOriginPtr& origin) {
  TracedLaunch what = KernelOf(op);
  what.no_ranges = std::move(grid.no_ranges);
  RangedLaunch* const ranged = RangedLaunchOf(op);
  const bool timed =
      ranged == nullptr || (!context.failed() && ranged->Decide(CodeTableOf(what).code, ShapeOf(op, what), false));
  LaunchCapture capture(op, what, grid.traced, timed ? op.ctas : nullptr);
  if (context.failed()) return;
  grid.launch.records = capture.sink();
  const std::shared_ptr<Code> code = MemcheckLog::Get().on() ? op.kernel->code() : nullptr;
  if (code != nullptr) grid.launch.library = code->library();
  GridUses uses(MemcheckLog::Get(), origin, op.kernel->name());
  if (origin != nullptr && origin->place) grid.launch.use_order = &uses;
  const MemcheckLog::LaunchScope scope(origin != nullptr ? origin->stack : nullptr);
  const exec::SlicedRun run =
      brokered != nullptr ? brokered->Run(context.device().engine(), grid.launch) : RunHere(context, op, grid.launch);
  if (run.fault.kind == exec::FaultKind::kNone) capture.End();
  Summary::Get().Add(op.kernel->name(), run.stats, run.slices);
  const exec::LaunchFault& fault = run.fault;
  if (fault.kind == exec::FaultKind::kNone) return;
  if (fault.kind != exec::FaultKind::kStopped) Log(LogLevel::kError, Describe(fault));  // who stopped it has said why
  MemcheckLog::Get().GridFailed(context.device().engine(), fault);
  context.Fail(StatusOf(fault.kind));
}

void RunGrid(Context& context, const KernelOp& op, DeviceGrid& children) {
  RunPrepared(context, op, Prepare(context, op, children, RangeCapture::Origin::kKernel), nullptr, children.origin());
}

void RunKernel(Context& context, const KernelOp& op, const WorkOriginPtr& origin) {
  // Grids that the kernel launches are part of it to the broker: they run while it has its share.
  std::optional<BrokeredLaunch> brokered;
  if (BrokerLink* const link = BrokerLink::Get()) brokered.emplace(*link, context, op);
  DeviceGrid grid(context, op, &RunGrid, origin);
  GridToRun prepared =
      Prepare(context, op, grid, op.stream != 0 ? RangeCapture::Origin::kStream : RangeCapture::Origin::kGraph);
  const DeviceTurn turn;
  RunPrepared(context, op, std::move(prepared), brokered ? &*brokered : nullptr, origin);
  grid.Finish();
  if (HostTimeline* const timeline = HostTimeline::Get(); timeline != nullptr && op.work != 0) timeline->Close(op.work);
}

void RunCopy(const CopyOp& op) {
  const DeviceTurn turn;
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

void RunFill(const CUDA_MEMSET_NODE_PARAMS& p) {
  const DeviceTurn turn;
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
        const DeviceTurn turn;
        std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(v.address))
            .store(static_cast<std::uint32_t>(v.value), std::memory_order_release);
        break;
      }
      case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
        const DeviceTurn turn;
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

}  // namespace

namespace {

/// Nothing to wait for, and less to do than it takes to wake a thread for it.
bool IsQuick(const Operation& operation) {
  constexpr std::uint64_t kFewBytes = 32 << 10;
  if (std::holds_alternative<CopyOp>(operation) || std::holds_alternative<FillOp>(operation))
    return BytesOf(operation) <= kFewBytes;
  return std::holds_alternative<EventRecordOp>(operation) || std::holds_alternative<EventWaitOp>(operation) ||
         std::holds_alternative<EmptyOp>(operation);
}

}  // namespace

exec::LaunchParams LaunchOf(const KernelOp& op) {
  exec::LaunchParams launch;
  launch.program = op.bound.program;
  launch.kernel = op.bound.info;
  launch.grid = op.grid;
  launch.block = op.block;
  launch.cluster = op.cluster;
  launch.dynamic_shared_bytes = op.dynamic_shared_bytes;
  launch.stack_bytes = op.stack_bytes;
  launch.params = op.params;
  launch.cooperative = op.cooperative;
  if (op.green != nullptr) launch.sms = op.green->sms();
  return launch;
}

void Run(Context& context, const Operation& operation, const WorkOriginPtr& origin) {
  try {
    if (const auto* kernel = std::get_if<KernelOp>(&operation))
      return RunKernel(context, *kernel, origin ? origin : kernel->origin);
    if (const auto* host = std::get_if<HostOp>(&operation)) {
      if (origin != nullptr) MemcheckLog::Get().HostRuns(*origin);
      return RunHost(context, *host);
    }
    if (const auto* free = std::get_if<FreeOp>(&operation)) return RunFree(*free);
    if (context.failed()) return;
    if (BrokerLink* const link = BrokerLink::Get()) link->AddCopied(BytesOf(operation));
    if (origin != nullptr) MemcheckLog::Get().CheckUses(context, operation, *origin);
    if (const auto* copy = std::get_if<CopyOp>(&operation)) RunCopy(*copy);
    else if (const auto* fill = std::get_if<FillOp>(&operation)) RunFill(fill->params);
    else if (const auto* batch = std::get_if<BatchOp>(&operation)) RunBatch(context, *batch);
    if (MemcheckLog::Get().written() != nullptr) MemcheckLog::Get().NoteWritten(context, operation, origin.get());
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
  HostTimeline* const timeline = HostTimeline::Get();
  if (timeline != nullptr) timeline->Add(stream, operation);
  MemcheckLog& memcheck = MemcheckLog::Get();
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
  if (auto* kernel = std::get_if<KernelOp>(&operation)) {
    kernel->stream = stream.id();
    kernel->origin = std::move(origin);
    Reordering* const reordering = Reordering::Get();
    const auto place = reordering != nullptr && waiting == Waiting::kNo ? reordering->PlaceOf(context, *kernel)
                                                                        : Reordering::Place::kAlone;
    if (place != Reordering::Place::kAlone) {
      context.EnqueueInBatch(stream, std::move(*kernel), place == Reordering::Place::kLast);
      return CUDA_SUCCESS;
    }
  }
  TaskPtr task;
  if (auto* kernel = std::get_if<KernelOp>(&operation); kernel != nullptr && kernel->task != nullptr) {
    task = context.narrow_tasks()->Make(lane, std::move(*kernel));
  } else {
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
