#include "interpose/observe/stream_order.h"

#include <algorithm>
#include <utility>

#include "interpose/objects/stream.h"

namespace gridloom::session {

void StreamOrder::Clock::Join(std::uint64_t stream, std::uint64_t number) {
  if (number <= floor) return;
  std::uint64_t& known = last[stream];
  known = std::max(known, number);
}

void StreamOrder::Clock::Join(const Clock& other) {
  all |= other.all;
  if (other.floor > floor) {
    floor = other.floor;
    std::erase_if(last, [&](const auto& entry) { return entry.second <= floor; });
  }
  for (const auto& [stream, number] : other.last) Join(stream, number);
}

bool StreamOrder::Clock::Holds(std::uint64_t stream, std::uint64_t number) const {
  const auto found = last.find(stream);
  return all || number <= floor || (found != last.end() && found->second >= number);
}

bool StreamOrder::Clock::Holds(const Clock& other) const {
  if (all) return true;
  if (other.all || other.floor > floor) return false;
  return std::ranges::all_of(other.last, [&](const auto& entry) { return Holds(entry.first, entry.second); });
}

bool StreamOrder::IsBefore(const Place& earlier, const Place& later) const {
  if (earlier.stream == later.stream) return earlier.number < later.number;
  if (later.before->Holds(earlier.stream, earlier.number)) return true;
  const std::lock_guard lock(mutex_);
  Clock known = *later.before;
  known.Join(later.stream, later.number);
  // What works have learned from the host that come before may hold others that have.
  std::vector<const decltype(looks_)::value_type*> left;
  for (const auto& look : looks_) left.push_back(&look);
  const auto join = [&](const auto* look) {
    if (!known.Holds(look->first.first, look->first.second)) return false;
    known.Join(look->second);
    return true;
  };
  while (std::erase_if(left, join) != 0) {
  }
  return known.Holds(earlier.stream, earlier.number);
}

void StreamOrder::LooksAtHost(const Place& work) {
  const std::lock_guard lock(mutex_);
  if (!work.before->Holds(host_)) looks_[{work.stream, work.number}].Join(host_);
}

StreamOrder::State& StreamOrder::StateOf(const Stream& stream) {
  const auto [at, added] = streams_.try_emplace(stream.id());
  State& state = at->second;
  if (added) {
    state.context = &stream.context();
    state.legacy = stream.kind() == Stream::Kind::kLegacy;
    state.blocking = stream.blocking();
    state.made = works_;
    if (state.legacy) legacy_.push_back(stream.id());
  }
  return state;
}

/// Most works of a stream come after the same ones of others: these share their clock.
void StreamOrder::Add(State& state, const Clock& clock) {
  if (state.before->Holds(clock)) return;
  auto joined = std::make_shared<Clock>(*state.before);
  joined->Join(clock);
  state.before = std::move(joined);
}

/// With the works of the stream itself.
StreamOrder::Clock StreamOrder::WholeOf(std::uint64_t id, const State& state) const {
  Clock clock = *state.before;
  if (state.number != 0) clock.Join(id, state.number);
  return clock;
}

void StreamOrder::HostJoins(const Clock& clock) {
  Clock seen = clock;
  if (std::exchange(seen.all, false)) seen.floor = works_;
  host_.Join(seen);
}

/// Of what the host has seen, nothing more need be known.
void StreamOrder::Forget() {
  std::erase_if(streams_, [&](const auto& entry) {
    const auto& [id, state] = entry;
    return host_.Holds(id, state.number) && host_.Holds(*state.before);
  });
  std::erase_if(legacy_, [&](std::uint64_t id) { return !streams_.contains(id); });
  RaiseFloor();
  if (events_.size() >= most_events_) {
    std::erase_if(events_, [&](const auto& entry) { return host_.Holds(entry.second); });
    most_events_ = std::max<std::size_t>(1024, 2 * events_.size());
  }
  if (looks_.size() >= most_looks_) {
    std::erase_if(looks_, [&](const auto& entry) { return host_.Holds(entry.first.first, entry.first.second); });
    most_looks_ = std::max<std::size_t>(1024, 2 * looks_.size());
  }
}

/// To a work up to which the host has seen all.
void StreamOrder::RaiseFloor() {
  Clock raised;
  raised.floor = works_;
  for (const auto& [id, state] : streams_) {
    if (host_.Holds(id, state.number)) continue;
    const auto seen = host_.last.find(id);
    raised.floor = std::min(raised.floor, std::max(state.made, seen != host_.last.end() ? seen->second : 0));
  }
  host_.Join(raised);
}

void StreamOrder::JoinAll(Clock& clock, const Context* context, bool blocking_alone) const {
  for (const auto& [id, state] : streams_)
    if (state.context == context && (state.blocking || !blocking_alone)) clock.Join(WholeOf(id, state));
}

StreamOrder::Place StreamOrder::Add(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  State& state = StateOf(stream);
  Add(state, host_);
  if (state.legacy) {
    Clock others;
    JoinAll(others, state.context, true);
    Add(state, others);
  } else if (state.blocking) {
    for (const std::uint64_t id : legacy_)
      if (const State& other = streams_.at(id); other.context == state.context) Add(state, WholeOf(id, other));
  }
  return {stream.id(), state.number = ++works_, state.before,
          state.legacy ? "the default stream" : "stream " + std::to_string(stream.id())};
}

void StreamOrder::Record(const Stream& stream, const Event& event) {
  const Place place = Add(stream);
  const std::lock_guard lock(mutex_);
  Clock clock = *place.before;
  clock.Join(place.stream, place.number);
  events_[&event] = std::move(clock);
}

void StreamOrder::WaitForEvent(const Stream& stream, const Event& event) {
  {
    const std::lock_guard lock(mutex_);
    State& state = StateOf(stream);
    if (const auto found = events_.find(&event); found != events_.end()) Add(state, found->second);
    if (!state.legacy) return;
  }
  static_cast<void>(Add(stream));  // it stands between works of blocking streams, even if the event is over
}

void StreamOrder::WaitForWork(const Stream& stream, const Place& work) {
  const std::lock_guard lock(mutex_);
  Clock clock = *work.before;
  clock.Join(work.stream, work.number);
  Add(StateOf(stream), clock);
}

void StreamOrder::WaitForValue(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  Clock everything;
  everything.all = true;
  Add(StateOf(stream), everything);
}

void StreamOrder::HostSees(const Place& place) {
  const std::lock_guard lock(mutex_);
  HostJoins(*place.before);
  host_.Join(place.stream, place.number);
  Forget();
}

void StreamOrder::HostSees(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto found = events_.find(&event); found != events_.end()) HostJoins(found->second);
  Forget();
}

void StreamOrder::HostSees(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  State& state = StateOf(stream);
  Clock seen = WholeOf(stream.id(), state);
  if (state.legacy) JoinAll(seen, state.context, true);
  HostJoins(seen);
  Forget();
}

void StreamOrder::HostSeesAll(const Context& context) {
  const std::lock_guard lock(mutex_);
  Clock seen;
  JoinAll(seen, &context, false);
  HostJoins(seen);
  Forget();
}

}  // namespace gridloom::session
