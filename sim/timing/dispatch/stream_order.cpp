#include "sim/timing/dispatch/stream_order.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace gridloom::timing {

Result<WorkId> StreamOrder::Append(WorkState work) {
  if (given_ > std::numeric_limits<WorkId>::max())
    return Error{"the model has been given as many works as it has numbers for: 2^32"};
  const auto id = static_cast<WorkId>(given_);
  for (const WorkId other : work.order.after) {
    if (other >= id)
      return Error{"a work waits for work " + std::to_string(other) + ", which has not been given before it"};
    if (!works_.contains(other))
      return Error{"a work waits for work " + std::to_string(other) + ", which has ended and was not kept"};
  }
  for (const WorkId other : work.order.after) ++works_.at(other).waiters;
  std::deque<WorkId>& stream = streams_[work.order.stream];
  work.has_predecessor = !stream.empty();
  stream.push_back(id);
  works_.emplace(id, std::move(work));
  ++given_;
  return id;
}

std::optional<WorkId> StreamOrder::LastOf(std::uint32_t stream) const {
  const auto found = streams_.find(stream);
  return found != streams_.end() ? std::optional(found->second.back()) : std::nullopt;
}

/// When `id` may start as far as one work is concerned that has not ended.
Cycle StreamOrder::Allowed(WorkId id, WorkId before, Cycle now) const {
  Cycle earliest = kNever;
  for (StartRule* const rule : ports_.start_rules) {
    earliest = std::min(earliest, rule->MayStart(now, works_.at(id).View(id), works_.at(before).View(before)));
  }
  return earliest;
}

Cycle StreamOrder::MayStart(WorkId id, Cycle now) const {
  const WorkState& work = works_.at(id);
  Cycle start = 0;
  for (const WorkId before : streams_.at(work.order.stream)) {
    if (before == id) break;
    start = std::max(start, Allowed(id, before, now));
    if (start == kNever) return kNever;
  }
  for (const WorkId before : std::span(work.order.after).subspan(EndedBefore(work))) {
    if (works_.at(before).stage == WorkState::Stage::kDone) continue;
    start = std::max(start, Allowed(id, before, now));
    if (start == kNever) return kNever;
  }
  return start;
}

/// How many of the works that it waits for, from the first one on, have ended. Nobody looks at them again.
std::size_t StreamOrder::EndedBefore(const WorkState& work) const {
  while (work.ended_before < work.order.after.size() &&
         works_.at(work.order.after[work.ended_before]).stage == WorkState::Stage::kDone) {
    work.last_ended = std::max(work.last_ended, works_.at(work.order.after[work.ended_before]).result.ended);
    ++work.ended_before;
  }
  return work.ended_before;
}

std::optional<WorkId> StreamOrder::Blocker(WorkId id) const {
  const WorkState& work = works_.at(id);
  const std::deque<WorkId>& stream = streams_.at(work.order.stream);
  const auto place = std::ranges::lower_bound(stream, id);  // the one before it ends after all others
  if (place != stream.begin()) return *std::prev(place);
  const std::size_t ended = EndedBefore(work);
  return ended < work.order.after.size() ? std::optional(work.order.after[ended]) : std::nullopt;
}

Cycle StreamOrder::MayLaunch(WorkId id, Cycle now) const {
  const WorkState& work = works_.at(id);
  const Cycle may_start = MayStart(id, now);
  if (may_start == kNever) return kNever;
  Cycle start = std::max(may_start, work.order.submitted + launch_.kernel_cycles);
  if (work.has_predecessor) start = std::max(start, work.predecessor_ended + launch_.dependent_cycles);
  const std::size_t looked_at = EndedBefore(work);
  if (looked_at != 0) start = std::max(start, work.last_ended + launch_.dependent_cycles);
  for (const WorkId other : std::span(work.order.after).subspan(looked_at)) {
    const Cycle ended = works_.at(other).result.ended;
    if (ended != kNever) start = std::max(start, ended + launch_.dependent_cycles);
  }
  return start;
}

bool StreamOrder::Followed(WorkId id) const {
  const std::deque<WorkId>& stream = streams_.at(works_.at(id).order.stream);
  return std::any_of(std::ranges::upper_bound(stream, id), stream.end(),
                     [&](WorkId behind) { return works_.at(behind).kind == WorkKind::kKernel; });
}

bool StreamOrder::MayEnd(WorkId id) const {
  const WorkState& work = works_.at(id);
  return streams_.at(work.order.stream).front() == id && EndedBefore(work) == work.order.after.size();
}

void StreamOrder::Finish(WorkId id, Cycle now) {
  WorkState& work = works_.at(id);
  work.stage = WorkState::Stage::kDone;
  work.kernel = {};
  forgettable_.push_back(id);
  for (const WorkId other : work.order.after) {
    if (--works_.at(other).waiters == 0) forgettable_.push_back(other);
  }
  std::vector<WorkId>().swap(work.order.after);
  work.result.ended = now;
  ++done_;
  const auto stream = streams_.find(work.order.stream);
  stream->second.pop_front();
  // Whoever waited can start now, or when the overhead of its launch has passed.
  if (stream->second.empty()) streams_.erase(stream);
  else works_.at(stream->second.front()).predecessor_ended = now;
}

void StreamOrder::Forget() {
  for (const WorkId id : forgettable_) {
    if (keep_ended_) break;
    const auto work = works_.find(id);
    if (work != works_.end() && work->second.stage == WorkState::Stage::kDone && work->second.waiters == 0)
      works_.erase(work);
  }
  forgettable_.clear();
}

std::vector<WorkResult> StreamOrder::results() const {
  std::vector<WorkResult> results;
  results.reserve(works_.size());
  for (WorkId id = 0; id < given_; ++id) {
    if (const auto work = works_.find(id); work != works_.end()) results.push_back(work->second.result);
  }
  return results;
}

bool StreamOrder::done(WorkId id) const {
  const auto work = works_.find(id);
  return work == works_.end() ? id < given_ : work->second.result.done();
}

}  // namespace gridloom::timing
