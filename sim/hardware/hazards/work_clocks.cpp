#include "sim/hardware/hazards/work_clocks.h"

#include <algorithm>

namespace gridloom::hardware::hazards {

using timing::WorkId;

namespace {

void Put(auto& clock, std::uint32_t stream, WorkId work) {
  const auto place = std::ranges::lower_bound(clock, stream, {}, [](const auto& entry) { return entry.first; });
  if (place == clock.end() || place->first != stream) clock.insert(place, {stream, work});
  else place->second = std::max(place->second, work);
}

}  // namespace

/// Works of a stream end in their order, so that an entry whose work has ended stands for nothing that is open.
void WorkClocks::Join(Clock& clock, const Clock& other) const {
  for (const auto& [stream, work] : other) {
    if (open_.contains(work)) Put(clock, stream, work);
  }
}

void WorkClocks::Give(const timing::WorkView& work) {
  stream_of_.resize(work.id + std::size_t{1});
  stream_of_[work.id] = work.stream;
  Open added;
  const auto put_behind = [&](WorkId before) {
    const auto open = open_.find(before);
    if (open == open_.end()) return;
    ++added.before;
    open->second.behind.push_back(work.id);
    Join(added.clock, open->second.clock);
    Put(added.clock, stream_of_[before], before);
  };
  if (const auto last = last_.find(work.stream); last != last_.end()) put_behind(last->second);
  for (const WorkId before : work.after) put_behind(before);
  last_[work.stream] = work.id;
  open_.emplace(work.id, std::move(added));
}

void WorkClocks::End(WorkId work) {
  const auto open = open_.extract(work);
  for (const WorkId behind : open.mapped().behind) --open_.at(behind).before;
  const auto last = last_.find(stream_of_[work]);
  if (last->second == work) last_.erase(last);
}

bool WorkClocks::Precedes(WorkId earlier, WorkId later) const {
  if (later <= earlier) return false;
  const auto open = open_.find(later);
  if (open == open_.end()) return false;
  const Clock& clock = open->second.clock;
  const std::uint32_t stream = stream_of_[earlier];
  const auto place = std::ranges::lower_bound(clock, stream, {}, [](const auto& entry) { return entry.first; });
  return place != clock.end() && place->first == stream && place->second >= earlier;
}

bool WorkClocks::IsEarly(WorkId work) const {
  const auto open = open_.find(work);
  return open != open_.end() && open->second.before != 0;
}

}  // namespace gridloom::hardware::hazards
