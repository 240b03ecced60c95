#include "interpose/observe/host_timeline.h"

#include <unistd.h>
#include <xxhash.h>

#include <cstdlib>

#include "interpose/base/at_end.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/fill_order.h"
#include "interpose/observe/live_timing.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/tracing.h"
#include "interpose/observe/work_memory.h"
#include "rewriter/support/check.h"

namespace gridloom::session {

using trace::HostAction;

namespace {

constexpr std::size_t kMostSources = 100'000;  // places of copies that are remembered

}  // namespace

std::unique_ptr<HostTimeline> HostTimeline::Make(Observers& observers) {
  std::unique_ptr<HostTimeline> timeline(new HostTimeline(observers));
  if (timeline->timing_ == nullptr) return observers.tracing() != nullptr ? std::move(timeline) : nullptr;
  AtEnd([timeline = timeline.get()] {
    if (timeline->goes_on()) timeline->Finish();
  });
  return timeline;
}

HostTimeline::HostTimeline(Observers& observers)
    : observers_(observers), timing_(LiveTiming::Make(observers)), owner_(getpid()) {}

HostTimeline::~HostTimeline() = default;

bool HostTimeline::goes_on() const { return owner_ == getpid() && !finished_.load(std::memory_order_acquire); }

const exec::DeviceMemory& HostTimeline::memory() const { return observers_.process().first_device().memory(); }

void HostTimeline::Finish() {
  finished_.store(true, std::memory_order_release);
  timing_->Finish();
}

/// What kind of work the operation is. False: it takes no time and orders nothing.
bool HostTimeline::Describe(const Operation& operation, HostAction& action) const {
  if (std::holds_alternative<KernelOp>(operation)) action.kind = HostAction::Kind::kLaunch;
  else if (const auto* copy = std::get_if<CopyOp>(&operation)) DescribeCopy(memory(), *copy, action);
  else if (const auto* fill = std::get_if<FillOp>(&operation)) DescribeFill(memory(), *fill, action);
  else if (const auto* wait = std::get_if<EventWaitOp>(&operation)) {
    if (wait->event->work() == 0) return false;
    action.after.push_back(wait->event->work());
  } else {
    return std::holds_alternative<EventRecordOp>(operation) || std::holds_alternative<HostOp>(operation);
  }
  return true;
}

/// Whether any work of the stream has to be known, as later ones of blocking streams come behind it, and it behind
/// earlier ones.
bool HostTimeline::Separates(const Stream& stream) {
  if (stream.kind() != Stream::Kind::kLegacy) return false;
  const std::lock_guard lock(mutex_);
  const auto tails = tails_.find(&stream.context());
  return tails != tails_.end() && !tails->second.blocking.empty();
}

/// The next work of the stream: what it waits for by the rules of default streams (CUDA driver API, "Stream
/// synchronization behavior").
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

std::optional<HostTimeline::Source> HostTimeline::SourceOf(const Operation& operation, const HostAction& action) {
  const auto* copy = std::get_if<CopyOp>(&operation);
  if (copy == nullptr || action.kind != HostAction::Kind::kCopyToDevice) return std::nullopt;
  const bool dense = copy->depth == 1 && (copy->height == 1 || copy->src_pitch == copy->width);
  if (!dense || copy->src == nullptr) return std::nullopt;
  return Source{.place = copy->src, .bytes = action.bytes, .hash = XXH3_64bits(copy->src, action.bytes)};
}

/// The copy that has copied the same bytes before: a program that fills two arrays from one has read that one once.
std::uint64_t HostTimeline::FindLike(const std::optional<Source>& source) const {
  const auto known = source ? sources_.find(source->place) : sources_.end();
  if (known == sources_.end()) return 0;
  const auto& [last, work] = known->second;
  return last.bytes == source->bytes && last.hash == source->hash ? work : 0;
}

void HostTimeline::Remember(const std::optional<Source>& source, const HostAction& action) {
  if (!source || action.like != 0) return;
  if (sources_.size() >= kMostSources) sources_.clear();
  sources_[source->place] = {*source, action.work};
}

/// Finds the earlier copies of the memory. A copy whose source the program need not have filled anew has none.
void HostTimeline::FindReuses(const HostReuse::Memory& memory, HostAction& action) const {
  if (memory.bytes != 0 && memory.bytes != action.bytes) action.host_span = memory.bytes;
  if (memory.bytes != 0 && action.like == 0) action.reuses = reuse_.Find(memory);
}

/// What it tells of memory that the host looks at.
void HostTimeline::Look(const Operation& operation, const HostView::Lane& lane, std::uint64_t work) {
  if (WritesHostMemory(memory(), operation)) view_.Writes(lane, work);
  if (std::holds_alternative<EventRecordOp>(operation)) view_.Marks(lane, work);
  const auto* const kernel = std::get_if<KernelOp>(&operation);
  if (kernel != nullptr && !view_.shares() && ReachesHostMemory(memory(), *kernel)) view_.Shares();
}

std::uint64_t HostTimeline::Record(HostAction action, Operation* operation, const HostView::Lane& lane,
                                   const BeforeWork* before) {
  action.work = ++works_;
  if (operation == nullptr) {
    groups_[action.work] = lane;
  } else {
    Look(*operation, lane, action.work);
    if (auto* kernel = std::get_if<KernelOp>(operation)) kernel->plan.work = action.work;
    if (const auto* record = std::get_if<EventRecordOp>(operation)) record->event->set_work(action.work);
  }
  if (Tracing* const tracing = observers_.tracing()) tracing->Add(action);
  if (timing_ != nullptr)
    timing_->Add(action, operation != nullptr ? std::get_if<KernelOp>(operation) : nullptr,
                 before != nullptr ? *before : BeforeWork{});
  return action.work;
}

HostView::Lane HostTimeline::LaneOf(const Stream& stream) {
  return {.context = &stream.context(), .stream = stream.id(), .blocking = stream.blocking()};
}

HostView::Lane HostTimeline::LaneOf(std::uint64_t group) const {
  const auto lane = groups_.find(group);
  return lane != groups_.end() ? lane->second : HostView::Lane{};
}

void HostTimeline::ShareMemory() {
  const std::lock_guard lock(mutex_);
  view_.Shares();
}

void HostTimeline::Leave(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  reuse_.Forget({address, bytes});
}

void HostTimeline::Add(Stream& stream, Operation& operation) {
  if (std::holds_alternative<BatchOp>(operation)) ShareMemory();  // it may write where the host polls
  HostAction what;
  if (!Describe(operation, what) && !Separates(stream)) return;
  const std::optional<Source> source = SourceOf(operation, what);
  FillOrder* const order = source ? observers_.fill_order() : nullptr;
  if (order != nullptr) what.ranks = order->Take(source->place, source->bytes);
  const HostReuse::Memory touched = HostMemoryOf(memory(), operation, what);
  std::unique_lock lock(mutex_);
  what.like = FindLike(source);
  FindReuses(touched, what);
  BeforeWork before;
  if (timing_ != nullptr) {
    lock.unlock();  // works that run must be able to end while the host waits
    before = timing_->Prepare(stream.context(), what, operation);
    lock.lock();
  }
  HostAction action = At(stream);
  action.after.insert(action.after.end(), what.after.begin(), what.after.end());
  what.after = std::move(action.after);
  what.stream = action.stream;
  what.work = works_ + 1;
  Remember(source, what);
  reuse_.Add(touched, what.work, what.like == 0);
  Record(std::move(what), &operation, LaneOf(stream), &before);
}

std::uint64_t HostTimeline::OpenGroup(Stream& stream, std::uint64_t after, const CopiedBytes& copied) {
  if (timing_ != nullptr) timing_->PrepareGraph(copied.to_device, copied.to_host);
  const std::lock_guard lock(mutex_);
  HostAction action = At(stream);
  if (after != 0) action.after.push_back(after);
  action.kind = HostAction::Kind::kGroup;
  return Record(std::move(action), nullptr, LaneOf(stream));
}

std::uint64_t HostTimeline::OpenGroup(std::uint64_t group, std::span<const std::uint64_t> after) {
  HostAction action;
  action.kind = HostAction::Kind::kGroup;
  action.group = group;
  action.after.assign(after.begin(), after.end());
  const std::lock_guard lock(mutex_);
  return Record(std::move(action), nullptr, LaneOf(group));
}

std::uint64_t HostTimeline::AddTo(std::uint64_t group, std::span<const std::uint64_t> after, std::uint64_t rank,
                                  Operation& operation) {
  HostAction action;
  static_cast<void>(Describe(operation, action));  // what takes no time stays a marker, so that others can wait for it
  action.group = group;
  action.rank = rank;
  action.after.insert(action.after.end(), after.begin(), after.end());
  const std::optional<Source> source = SourceOf(operation, action);
  const std::lock_guard lock(mutex_);
  action.like = FindLike(source);
  action.work = works_ + 1;
  Remember(source, action);
  reuse_.Add(HostMemoryOf(memory(), operation, action), action.work, false);  // others of the group may come before it
  return Record(std::move(action), &operation, LaneOf(group));
}

void HostTimeline::Close(std::uint64_t group) {
  {
    const std::lock_guard lock(mutex_);
    groups_.erase(group);
  }
  if (timing_ != nullptr) timing_->Close(group);
}

// ---- waits

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

/// The host may look at what is new to it, and then knows of what it has waited for: `seen` says what that is. Whether
/// it may look; `sees`: it does in any case.
bool HostTimeline::RecordWait(std::span<const std::uint64_t> works, const Seen& seen, bool sees) {
  HostAction action;
  action.kind = HostAction::Kind::kWait;
  action.after.assign(works.begin(), works.end());
  const std::lock_guard lock(mutex_);
  action.sees = sees || view_.Sees();
  seen(view_);
  if (Tracing* const tracing = observers_.tracing()) tracing->Add(action);
  return action.sees;
}

HostTimeline::Seen HostTimeline::SeenOf(std::uint64_t work) {
  return [work](HostView& view) { view.WaitedFor(work); };
}

HostTimeline::Seen HostTimeline::SeenOf(Stream& stream) {
  return [&stream](HostView& view) {
    view.WaitedForStream(&stream.context(), stream.id(), stream.kind() == Stream::Kind::kLegacy);
  };
}

void HostTimeline::Wait(std::uint64_t work) {
  const std::uint64_t works[] = {work};
  const bool sees = RecordWait(works, SeenOf(work));
  if (timing_ != nullptr) timing_->Wait(works, sees);
}

void HostTimeline::Wait(Stream& stream) {
  const std::vector<std::uint64_t> works = LastOf(stream);
  const bool sees = RecordWait(works, SeenOf(stream));
  if (timing_ != nullptr) timing_->Wait(works, sees);
}

void HostTimeline::WaitAll(Context& context) {
  Tails awaited;
  {
    const std::lock_guard lock(mutex_);
    awaited = tails_[&context];
  }
  std::vector<std::uint64_t> works;
  for (const auto& [stream, work] : awaited.last) works.push_back(work);
  const bool sees = RecordWait(works, [&context](HostView& view) { view.WaitedForAll(&context); });
  if (timing_ != nullptr) timing_->Wait(works, sees);
  // Not before: another thread that waits for one of the streams meanwhile has to find what it waits for.
  const std::lock_guard lock(mutex_);
  tails_[&context].Forget(awaited);
}

void HostTimeline::Tails::Forget(const Tails& awaited) {
  const auto is_awaited = [](const std::map<std::uint64_t, std::uint64_t>& known) {
    return [&known](const auto& tail) {
      const auto same = known.find(tail.first);
      return same != known.end() && same->second == tail.second;
    };
  };
  std::erase_if(last, is_awaited(awaited.last));
  std::erase_if(blocking, is_awaited(awaited.blocking));
  if (legacy == awaited.legacy) legacy = 0;
}

/// A trace has no place for answers that the program did not like: it asks again, and the last answer counts as
/// waiting. Where parts of the program overlap, works have ended for a host that sees nothing of them when they really
/// have.
bool HostTimeline::AskAll(std::span<const std::uint64_t> works, const Seen& seen, bool executed) {
  bool sees = false;
  {
    const std::lock_guard lock(mutex_);
    sees = view_.Sees();
  }
  bool ended = executed;
  if (timing_ != nullptr && (sees || !timing_->overlapped())) ended = timing_->Ask(works, sees).value_or(executed);
  if (ended) RecordWait(works, seen);
  return ended;
}

bool HostTimeline::AskForTimes(std::uint64_t first, std::uint64_t second, bool executed) {
  if (!executed) return false;
  const std::uint64_t works[] = {first, second};
  const bool waits = timing_ != nullptr && timing_->overlapped();
  if (timing_ != nullptr && !waits && !timing_->Ask(works, true).value_or(true)) return false;
  RecordWait(
      works,
      [&](HostView& view) {
        for (const std::uint64_t work : works) view.WaitedFor(work);
      },
      true);
  if (waits) timing_->Wait(works, true);
  return true;
}

bool HostTimeline::Ask(std::uint64_t work, bool executed) {
  const std::uint64_t works[] = {work};
  return AskAll(works, SeenOf(work), executed);
}

bool HostTimeline::Ask(Stream& stream, bool executed) { return AskAll(LastOf(stream), SeenOf(stream), executed); }

std::optional<double> HostTimeline::EndNs(std::uint64_t work) const {
  return timing_ != nullptr ? timing_->EndNs(work) : std::nullopt;
}

}  // namespace gridloom::session
