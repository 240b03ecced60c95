#include "interpose/session/host_timeline.h"

#include <unistd.h>

#include <cstdlib>

#include "interpose/session/device.h"
#include "interpose/session/live_timing.h"
#include "interpose/session/process.h"
#include "interpose/session/tracing.h"
#include "rewriter/support/check.h"

namespace gridloom::session {

using trace::HostAction;

namespace {

/// Pinned host memory lies in the range of device addresses, too.
bool OnDevice(const std::byte* pointer, const std::shared_ptr<Array>& array) {
  if (array != nullptr) return true;
  const auto allocation = Process::Get().first_device().memory().Find(reinterpret_cast<std::uint64_t>(pointer));
  return allocation && allocation->kind != exec::MemoryKind::kPinned && allocation->kind != exec::MemoryKind::kRegistered;
}

void DescribeCopy(const CopyOp& op, HostAction& action) {
  const bool from = OnDevice(op.src, op.src_array), to = OnDevice(op.dst, op.dst_array);
  action.bytes = std::uint64_t{op.width} * op.height * op.depth;
  if (action.bytes == 0 || (!from && !to)) return;  // takes the device no time
  action.kind = from && to ? HostAction::Kind::kCopyOnDevice : from ? HostAction::Kind::kCopyToHost : HostAction::Kind::kCopyToDevice;
  action.address = reinterpret_cast<std::uint64_t>(to ? op.dst : op.src);
}

void DescribeFill(const FillOp& op, HostAction& action) {
  action.bytes = std::uint64_t{op.params.width} * op.params.height * op.params.element_size;
  if (action.bytes == 0) return;
  action.kind = HostAction::Kind::kFill;
  action.address = op.params.dst;
}

}  // namespace

HostTimeline* HostTimeline::Get() {
  static HostTimeline* const timeline = []() -> HostTimeline* {
    auto* const made = new HostTimeline;
    return made->timing_ != nullptr || Tracing::Get() != nullptr ? made : nullptr;
  }();
  if (timeline == nullptr || timeline->owner_ != getpid() || timeline->finished_.load(std::memory_order_acquire)) return nullptr;
  return timeline;
}

HostTimeline::HostTimeline() : timing_(LiveTiming::Make()), owner_(getpid()) {
  if (timing_ == nullptr) return;
  std::atexit([] {
    if (HostTimeline* const timeline = Get()) timeline->Finish();
  });
}

void HostTimeline::Finish() {
  finished_.store(true, std::memory_order_release);
  timing_->Finish();
}

/// What kind of work the operation is. False: it takes no time and orders nothing.
bool HostTimeline::Describe(const Operation& operation, HostAction& action) {
  if (std::holds_alternative<KernelOp>(operation)) action.kind = HostAction::Kind::kLaunch;
  else if (const auto* copy = std::get_if<CopyOp>(&operation)) DescribeCopy(*copy, action);
  else if (const auto* fill = std::get_if<FillOp>(&operation)) DescribeFill(*fill, action);
  else if (const auto* wait = std::get_if<EventWaitOp>(&operation)) {
    if (wait->event->work() == 0) return false;
    action.after.push_back(wait->event->work());
  } else {
    return std::holds_alternative<EventRecordOp>(operation) || std::holds_alternative<HostOp>(operation);
  }
  return true;
}

/// The next work of the stream: what it waits for by the rules of default streams (CUDA driver API, "Stream synchronization
/// behavior").
HostAction HostTimeline::At(Stream& stream) {
  HostAction action;
  action.stream = stream.id();
  Tails& tails = tails_[&stream.context()];
  if (stream.kind() == Stream::Kind::kLegacy) {
    for (const auto& [other, work] : tails.blocking) action.after.push_back(work);
    tails.blocking.clear();
    tails.legacy = works_ + 1;
  } else if (stream.blocking()) {
    if (tails.legacy != 0) action.after.push_back(tails.legacy);
    tails.blocking[stream.id()] = works_ + 1;
  }
  tails.last[stream.id()] = works_ + 1;
  return action;
}

std::uint64_t HostTimeline::Record(HostAction action, Operation* operation) {
  action.work = ++works_;
  if (operation != nullptr) {
    if (auto* kernel = std::get_if<KernelOp>(operation)) kernel->work = action.work;
    if (const auto* record = std::get_if<EventRecordOp>(operation)) record->event->set_work(action.work);
  }
  if (Tracing* const tracing = Tracing::Get()) tracing->Add(action);
  if (timing_ != nullptr) timing_->Add(action, operation != nullptr ? std::get_if<KernelOp>(operation) : nullptr);
  return action.work;
}

void HostTimeline::Add(Stream& stream, Operation& operation) {
  HostAction what;
  if (!Describe(operation, what)) return;
  const std::lock_guard lock(mutex_);
  HostAction action = At(stream);
  action.after.insert(action.after.end(), what.after.begin(), what.after.end());
  what.after = std::move(action.after);
  what.stream = action.stream;
  Record(std::move(what), &operation);
}

std::uint64_t HostTimeline::OpenGroup(Stream& stream, std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  HostAction action = At(stream);
  if (after != 0) action.after.push_back(after);
  action.kind = HostAction::Kind::kGroup;
  return Record(std::move(action), nullptr);
}

std::uint64_t HostTimeline::OpenGroup(std::uint64_t group, std::span<const std::uint64_t> after) {
  HostAction action;
  action.kind = HostAction::Kind::kGroup;
  action.group = group;
  action.after.assign(after.begin(), after.end());
  const std::lock_guard lock(mutex_);
  return Record(std::move(action), nullptr);
}

std::uint64_t HostTimeline::AddTo(std::uint64_t group, std::span<const std::uint64_t> after, std::uint64_t rank, Operation& operation) {
  HostAction action;
  static_cast<void>(Describe(operation, action));  // what takes no time stays a marker, so that others can wait for it
  action.group = group;
  action.rank = rank;
  action.after.insert(action.after.end(), after.begin(), after.end());
  const std::lock_guard lock(mutex_);
  return Record(std::move(action), &operation);
}

void HostTimeline::Close(std::uint64_t group) {
  if (timing_ != nullptr) timing_->Close(group);
}

// ---- waits --------------------------------------------------------------------------------------------------------------

std::vector<std::uint64_t> HostTimeline::LastOf(Stream& stream) {
  const std::lock_guard lock(mutex_);
  Tails& tails = tails_[&stream.context()];
  std::vector<std::uint64_t> works;
  if (const auto last = tails.last.find(stream.id()); last != tails.last.end()) works.push_back(last->second);
  if (stream.kind() == Stream::Kind::kLegacy) {
    for (const auto& [other, work] : tails.blocking) works.push_back(work);
  }
  return works;
}

void HostTimeline::RecordWait(std::span<const std::uint64_t> works) {
  Tracing* const tracing = Tracing::Get();
  if (tracing == nullptr) return;
  HostAction action;
  action.kind = HostAction::Kind::kWait;
  action.after.assign(works.begin(), works.end());
  const std::lock_guard lock(mutex_);
  tracing->Add(action);
}

void HostTimeline::Wait(std::uint64_t work) {
  const std::uint64_t works[] = {work};
  RecordWait(works);
  if (timing_ != nullptr) timing_->Wait(works);
}

void HostTimeline::Wait(Stream& stream) {
  const std::vector<std::uint64_t> works = LastOf(stream);
  RecordWait(works);
  if (timing_ != nullptr) timing_->Wait(works);
}

void HostTimeline::WaitAll(Context& context) {
  std::vector<std::uint64_t> works;
  {
    const std::lock_guard lock(mutex_);
    Tails& tails = tails_[&context];
    for (const auto& [stream, work] : tails.last) works.push_back(work);
    tails = {};
  }
  RecordWait(works);
  if (timing_ != nullptr) timing_->Wait(works);
}

/// A trace has no place for answers that the program did not like: it asks again, and the last answer counts as waiting.
bool HostTimeline::AskAll(std::span<const std::uint64_t> works, bool executed) {
  const bool ended = timing_ != nullptr ? timing_->Ask(works).value_or(executed) : executed;
  if (ended) RecordWait(works);
  return ended;
}

bool HostTimeline::Ask(std::uint64_t work, bool executed) {
  const std::uint64_t works[] = {work};
  return AskAll(works, executed);
}

bool HostTimeline::Ask(Stream& stream, bool executed) { return AskAll(LastOf(stream), executed); }

std::optional<double> HostTimeline::EndNs(std::uint64_t work) const { return timing_ != nullptr ? timing_->EndNs(work) : std::nullopt; }

}  // namespace gridloom::session
