#include "sim/hardware/pagoda/host_side.h"

#include <algorithm>
#include <utility>

namespace gridloom::hardware::pagoda {
namespace {

constexpr std::uint64_t kStatusBytes = 8, kWordBytes = 4;

}  // namespace

HostSide::HostSide(const Settings& settings, timing::DeviceInput& input) : settings_(settings), input_(input) {}

void HostSide::Begin(Cycle now, const MasterShape& shape, std::vector<MasterSm*> sm_of_column, WriteLog& log) {
  shape_ = shape;
  sm_of_column_ = std::move(sm_of_column);
  log_ = &log;
  read_ = 0;
  ready_.assign(shape.entries(), 0);
  arrived_.assign(shape.entries(), false);
  taken_.assign(shape.entries(), nullptr);
  search_ = 0;
  running_ = true;
  ending_ = blocked_ = false;
  in_batch_ = 0;
  free_ = std::max(free_, After(now));
  idle_since_ = free_;
  if (sent_ == 0) {
    for (std::uint32_t& stream : streams_) stream = input_.NewStream();
    updates_ = input_.NewStream();
    statuses_ = input_.NewStream();
  }
}

void HostSide::SetYielding(Cycle now, bool yields) {
  const bool yielding = !yields_.empty() && yields_.back().until == timing::kNever;
  if (yields == yielding) return;
  if (yields) {
    while (!yields_.empty() && yields_.front().until <= now) yields_.pop_front();
    yields_.push_back({.from = After(now), .until = timing::kNever});
  } else {
    yields_.back().until = After(now);
  }
}

/// From `at` on, the first cycle at which it yields.
Cycle HostSide::NextYield(Cycle at) const {
  for (const Span& span : yields_) {
    if (at < span.until && span.from < span.until) return std::max(at, span.from);
  }
  return timing::kNever;
}

/// From `at` on, the first cycle at which it does not yield.
Cycle HostSide::NextOwn(Cycle at) const {
  for (const Span& span : yields_) {
    if (at >= span.from && at < span.until) at = span.until;
  }
  return at;
}

void HostSide::Take(Cycle now, std::shared_ptr<Task> task) {
  inputs_.insert(task->inputs.begin(), task->inputs.end());
  pending_.push_back({.task = std::move(task), .at = After(now)});
}

/// When the first task that waits is spawned, if nothing else happens before.
Cycle HostSide::NextSpawn() const {
  if (pending_.empty() || flushing_ || blocked_ || ending_) return timing::kNever;
  if (settings_.batch != 0 && in_batch_ >= settings_.batch) return timing::kNever;
  return NextOwn(std::max(free_, pending_.front().at));
}

/// What the host does next, of all that it could the earliest. What it learns at a cycle changes nothing of what it
/// does within the window from there on, since that may have been done already.
std::optional<std::pair<Cycle, HostSide::Act>> HostSide::NextAct() const {
  if (!running_) return std::nullopt;
  std::pair<Cycle, Act> next{timing::kNever, Act::kHear};
  const auto consider = [&](Cycle at, Act act) {
    if (at < next.first) next = {at, act};
  };
  consider(hears_, Act::kHear);
  consider(NextSpawn(), Act::kSpawn);
  if (waiting_ && !flushing_ && !blocked_ && !ending_) consider(free_ + settings_.flush, Act::kFlush);
  if (outstanding_ > 0 && !updating_) consider(last_heard_ + settings_.timeout, Act::kUpdate);
  if (outstanding_ == 0 && !ending_)
    consider(std::min(idle_since_ + settings_.linger, NextYield(idle_since_)), Act::kEnd);
  if (next.first == timing::kNever) return std::nullopt;
  return next;
}

Cycle HostSide::next() const {
  const auto next = NextAct();
  return next ? next->first : timing::kNever;
}

void HostSide::Run(Cycle end) {
  for (auto next = NextAct(); next && next->first < end; next = NextAct()) {
    switch (next->second) {
      case Act::kHear: Hear(next->first); break;
      case Act::kSpawn: Spawn(next->first); break;
      case Act::kFlush: Flush(next->first); break;
      case Act::kUpdate: Update(next->first); break;
      case Act::kEnd: TellToEnd(next->first); break;
    }
  }
}

void HostSide::Send(Cycle now, timing::CopyDirection direction, std::uint64_t bytes, OnItsWay what,
                    std::vector<timing::WorkId> after) {
  // Copies to the host wait for none to the device, which may have to wait for inputs.
  const bool back = direction == timing::CopyDirection::kToHost;
  const std::uint32_t stream =
      back ? (what.kind == Copy::kUpdate ? updates_ : statuses_) : streams_[sent_++ % streams_.size()];
  const auto copy =
      input_.Add(timing::CopyWork{.order = {.stream = stream, .submitted = now, .after = std::move(after)},
                                  .direction = direction,
                                  .bytes = bytes});
  if (!copy.ok()) return input_.Fail(copy.error());
  copies_.emplace(*copy, std::move(what));
}

std::optional<std::uint32_t> HostSide::FreeEntry() {
  for (std::uint32_t i = 0; i < shape_.entries(); ++i) {
    // Across the columns, then down the rows.
    const std::uint32_t at = (search_ + i) % shape_.entries();
    const std::uint32_t entry = at % shape_.columns * shape_.rows + at / shape_.columns;
    if (taken_[entry] != nullptr) continue;
    search_ = at + 1;
    return entry;
  }
  return std::nullopt;
}

void HostSide::Spawn(Cycle now) {
  const auto entry = FreeEntry();
  if (!entry && outstanding_ == 1 && waiting_)
    return Flush(now);  // the only entry is that of the task that would wait for this one
  if (!entry) {
    // All that it knows of is taken: it waits for the device's table.
    ++counts_.full;
    blocked_ = true;
    if (!updating_) Update(now);
    return;
  }
  std::shared_ptr<Task> task = std::move(pending_.front().task);
  pending_.pop_front();
  free_ = now + settings_.spawn;
  if (outstanding_++ == 0) last_heard_ = std::max(last_heard_, now);
  ++in_batch_;
  ++counts_.tasks;
  taken_[*entry] = task;
  const std::uint32_t ready = waiting_ ? *waiting_ + Entry::kFirstTask : Entry::kThere;
  waiting_ = entry;
  std::vector<timing::WorkId> after = task->inputs;
  std::erase_if(after, [&](timing::WorkId input) { return !inputs_.contains(input); });
  Send(free_, timing::CopyDirection::kToDevice, shape_.entry_bytes,
       {.kind = Copy::kEntry, .entry = *entry, .ready = ready, .task = std::move(task)}, std::move(after));
}

/// Nothing comes behind the task spawned last: the host itself lets it begin, once its scheduler warp has let the one
/// before it.
void HostSide::Flush(Cycle now) {
  flushing_ = true;
  ++counts_.flushes;
  free_ = now + settings_.spawn;
  Send(free_, timing::CopyDirection::kToHost, kStatusBytes, {.kind = Copy::kStatus, .entry = *waiting_});
}

void HostSide::Update(Cycle now) {
  updating_ = true;
  ++counts_.updates;
  Send(now, timing::CopyDirection::kToHost, std::uint64_t{shape_.entries()} * shape_.entry_bytes,
       {.kind = Copy::kUpdate});
}

void HostSide::TellToEnd(Cycle now) {
  ending_ = true;
  Send(now, timing::CopyDirection::kToDevice, kWordBytes, {.kind = Copy::kControl});
}

/// What the device's table says at that time.
std::uint32_t HostSide::ReadyAt(Cycle now, std::uint32_t entry) {
  for (; read_ < log_->size() && (*log_)[read_].seen <= now; ++read_) {
    const TableWrite& write = (*log_)[read_];
    if (write.field != offsetof(Entry, ready)) continue;
    ready_[write.entry] = write.value;
    if (write.sm == TableWrite::kHost) arrived_[write.entry] = true;
  }
  return ready_[entry];
}

void HostSide::OnCopyEnd(Cycle now, timing::WorkId id) {
  inputs_.erase(id);
  const auto found = copies_.extract(id);
  if (found.empty()) return;
  const OnItsWay& copy = found.mapped();
  switch (copy.kind) {
    case Copy::kEntry:
    case Copy::kReadyWord:
    case Copy::kSchedWord:
    case Copy::kControl: return Deliver(now, copy);
    case Copy::kUpdate: return Look(now);
    case Copy::kStatus: break;
  }
  const Cycle heard = std::max(now + settings_.sync, After(now));
  free_ = heard + settings_.spawn;
  if (ReadyAt(now, copy.entry) != Entry::kThere) {
    // A new task lets it begin as well.
    if (!pending_.empty() && pending_.front().at <= now) {
      flushing_ = false;
      return;
    }
    Send(free_, timing::CopyDirection::kToHost, kStatusBytes, copy);
    return;
  }
  Send(free_, timing::CopyDirection::kToDevice, kWordBytes, {.kind = Copy::kReadyWord, .entry = copy.entry});
  free_ += settings_.spawn;
  Send(free_, timing::CopyDirection::kToDevice, kWordBytes, {.kind = Copy::kSchedWord, .entry = copy.entry});
  waiting_.reset();
  flushing_ = false;
}

/// A copy to the device has ended: SMs see it soon.
void HostSide::Deliver(Cycle now, const OnItsWay& copy) {
  const Cycle seen = After(now);
  switch (copy.kind) {
    case Copy::kEntry:
      sm_of_column_[copy.entry / shape_.rows]->Bring(
          {.seen = seen, .entry = copy.entry, .ready = copy.ready, .task = copy.task});
      log_->push_back({.seen = seen, .entry = copy.entry, .field = offsetof(Entry, ready), .value = copy.ready});
      return;
    case Copy::kReadyWord:
      log_->push_back({.seen = seen, .entry = copy.entry, .field = offsetof(Entry, ready), .value = 1});
      return;
    case Copy::kSchedWord:
      log_->push_back({.seen = seen, .entry = copy.entry, .field = offsetof(Entry, sched), .value = 1});
      return;
    default: log_->push_back({.seen = seen, .entry = 0, .field = TableWrite::kControl, .value = 1});
  }
}

/// The whole table has come: tasks whose entries are free have ended.
void HostSide::Look(Cycle now) {
  hears_ = std::max(now + settings_.sync, After(now));
  for (std::uint32_t entry = 0; entry < shape_.entries(); ++entry) {
    // The copy of an entry may still be on its way, or its task wait for the next one.
    if (taken_[entry] == nullptr || entry == waiting_ || ReadyAt(now, entry) != 0 || !arrived_[entry]) continue;
    arrived_[entry] = false;
    heard_.push_back(entry);
  }
}

void HostSide::Hear(Cycle now) {
  for (const std::uint32_t entry : heard_) {
    const Task& task = *taken_[entry];
    input_.EndKernel({.kernel = task.work,
                      .at = now,
                      .started = task.started,
                      .warp_instructions = task.warp_instructions,
                      .thread_instructions = task.thread_instructions});
    taken_[entry].reset();
    --outstanding_;
  }
  heard_.clear();
  hears_ = timing::kNever;
  last_heard_ = now;
  updating_ = false;
  if (std::exchange(blocked_, false)) free_ = std::max(free_, now);
  if (outstanding_ > 0) return;
  if (settings_.batch != 0) free_ = std::max(free_, now);
  in_batch_ = 0;
  idle_since_ = now;
}

}  // namespace gridloom::hardware::pagoda
