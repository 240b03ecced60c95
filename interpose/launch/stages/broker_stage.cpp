// GRIDLOOM_CONNECT: the broker hears of a launch, grants it in parts, and hears when all that it launched is over.
#include <algorithm>

#include "interpose/base/log.h"
#include "interpose/launch/slicing.h"
#include "interpose/launch/stage.h"
#include "interpose/launch/stages.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/observers.h"
#include "rewriter/passes/slice_range.h"
#include "scheduler/protocol/client.h"
#include "sim/exec/add_stats.h"

namespace gridloom::session {

using protocol::Verdict;

/// One launch from its announcement to its end, whatever happens in between.
class BrokeredLaunch {
 public:
  BrokeredLaunch(BrokerLink& link, Context& context, const KernelOp& op) : link_(link), context_(context), op_(op) {}
  /// The last part is reported as run only now, so that grids which the kernel launched itself can have its share.
  ~BrokeredLaunch() { link_.client().End(ticket_, done_, faulted_); }
  BrokeredLaunch(const BrokeredLaunch&) = delete;

  /// Runs the grid as it is granted; whole with `next`. When the broker goes: to its end, or the context fails.
  void Run(RunningLaunch& launch, Next next);

 private:
  protocol::LaunchRecord Record() const;
  void RunPart(RunningLaunch& launch, Next next, std::uint64_t end);
  void Fail(Verdict verdict);

  BrokerLink& link_;
  Context& context_;
  const KernelOp& op_;
  protocol::Client::Ticket ticket_;
  std::uint64_t done_ = 0;
  bool faulted_ = false;
};

protocol::LaunchRecord BrokeredLaunch::Record() const {
  const exec::KernelInfo& info = *op_.bound.info;
  const std::string& name = op_.kernel->name();
  return {.kernel = protocol::KernelHash(name),
          .stream = op_.stream,
          .ctas = op_.grid.count(),
          .threads_per_cta = static_cast<std::uint32_t>(op_.block.count()),
          .registers_per_thread = info.registers,
          .shared_bytes = info.static_shared_bytes + op_.dynamic_shared_bytes,
          .priority = std::clamp(-op_.priority, -100, 100),  // CUDA's smaller number is the more urgent one
          .divisible = op_.plan.in_slices,
          .name = name};
}

void BrokeredLaunch::Fail(Verdict verdict) {
  faulted_ = true;
  if (context_.failed()) return;
  if (verdict == Verdict::kEnded) {
    context_.Fail(cuda::CUDA_ERROR_MPS_CLIENT_TERMINATED);
  } else {
    Log(LogLevel::kError, "the broker is gone, and --on-broker-loss is fail: no kernel runs any more");
    context_.Fail(cuda::CUDA_ERROR_MPS_RPC_FAILURE);
  }
}

void BrokeredLaunch::Run(RunningLaunch& launch, Next next) {
  if (op_.plan.in_slices) launch.params.grid_id = context_.device().engine().NewGridId();
  const std::uint64_t ctas = op_.grid.count();
  Verdict verdict = link_.client().Announce(Record(), &ticket_);
  while (done_ < ctas && !context_.failed()) {
    std::uint64_t end = ctas;
    if (verdict == Verdict::kGranted) verdict = link_.client().Wait(ticket_, done_, &end);
    if (verdict == Verdict::kEnded || (verdict == Verdict::kLost && !link_.goes_on_alone())) {
      Fail(verdict);
      break;
    }
    if (verdict == Verdict::kLost) end = ctas;
    RunPart(launch, next, std::min(end, ctas));
    if (launch.run.fault.kind != exec::FaultKind::kNone) break;
    if (verdict == Verdict::kGranted && done_ < ctas) link_.client().Progress(ticket_, done_);
  }
  faulted_ = faulted_ || launch.run.fault.kind != exec::FaultKind::kNone || context_.failed();
}

/// Runs the CTAs from done_ to `end`.
void BrokeredLaunch::RunPart(RunningLaunch& launch, Next next, std::uint64_t end) {
  const std::uint64_t ctas = op_.grid.count();
  exec::SlicedRun& run = launch.run;
  if (!op_.plan.in_slices || (done_ == 0 && end == ctas && SliceSizeOf(op_) == 0)) {
    next(launch);
    if (run.fault.kind == exec::FaultKind::kNone) done_ = ctas;
    return;
  }
  const passes::GridShape shape{op_.grid.x, op_.grid.y, op_.grid.z};
  while (done_ < end && !context_.failed()) {
    std::uint64_t count = std::min(end - done_, passes::LongestSlice(shape, done_));
    if (const std::uint64_t size = SliceSizeOf(op_); size != 0) count = std::min(count, size);
    exec::LaunchStats stats;
    run.fault = exec::RunSlice(context_.device().engine(), launch.params, *op_.bound.sliced, done_, count,
                               launch.params.grid_id, &stats);
    exec::AddTo(run.stats, stats);
    ++run.slices;
    if (run.fault.kind != exec::FaultKind::kNone) return;
    done_ += count;
  }
}

namespace {

bool JoinedBroker(const Process& process) { return process.observers().broker() != nullptr; }

/// Grids that the kernel launches are part of it to the broker: they run while it has its share.
void HoldShare(RunningLaunch& launch, Next next) {
  BrokeredLaunch brokered(*launch.context.process().observers().broker(), launch.context, launch.op);
  launch.brokered = &brokered;
  next(launch);
}

cuda::CUresult PlanParts(PlannedLaunch& launch) {
  const BrokerLink* const link = launch.context.process().observers().broker();
  launch.in_parts =
      link != nullptr && link->WantsSlices(launch.op.grid.count(), launch.context.device().spec().sm.count);
  return cuda::CUDA_SUCCESS;
}

void RunParts(RunningLaunch& launch, Next next) { launch.brokered->Run(launch, next); }

}  // namespace

extern constexpr Stage kBrokerStage{.of = Stage::Of::kHost, .wants = &JoinedBroker, .run = &HoldShare};
extern constexpr Stage kBrokerPartsStage{
    .of = Stage::Of::kHost, .wants = &JoinedBroker, .plan = &PlanParts, .run = &RunParts};

}  // namespace gridloom::session
