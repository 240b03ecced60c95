// A walk through all that the components of a device keep and that may change. It is the same walk for three ends: to
// write down the state, to look whether it is the same again some time later, and to move the device from one such time
// to a later one (recurrence.h).
//
// What a component shows of itself is all that says what it does next, with times relative to now. Left out is what
// says nothing: times that have passed, the order of free places in tables, and in caches which line was used last, as
// long as none is brought in or dropped (what caches hold is too much to be shown; they count its changes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// What a walk has written down.
struct StateImage {
  Cycle at = 0;
  std::vector<std::uint64_t> words;   ///< that are the same in the same state
  std::vector<std::uint64_t> counts;  ///< sums so far; what comes next does not depend on them
  /// Turns that warps have still to make (trace::Repeat). How many does not matter either, as long as any are left.
  std::vector<std::uint64_t> turns;
};

class StateWalk {
 public:
  /// A time of the SMs' clock, and the same of L2's.
  struct Clocks {
    Cycle sm = 0, l2 = 0;
  };
  /// Walks the entry `id` of the load/store unit of an SM, which a message will come back to.
  using WalkEntry = std::function<void(std::uint16_t sm, std::uint16_t id)>;

  /// Writes `image`.
  static StateWalk Record(Clocks now, StateImage& image) { return {Kind::kRecord, now, nullptr, 0, image}; }
  /// Compares with `earlier`; counts and turns are written to `image`.
  static StateWalk Compare(Clocks now, const StateImage& earlier, StateImage& image) {
    return {Kind::kCompare, now, &earlier, 0, image};
  }
  /// Moves all times on by `by`, and adds `times` as much to counts and turns as came to them between `earlier` and
  /// `image`.
  static StateWalk Move(Clocks by, std::uint64_t times, const StateImage& earlier, StateImage& image) {
    return {Kind::kMove, by, &earlier, times, image};
  }
  void set_entries(WalkEntry entries) { entries_ = std::move(entries); }

  /// Nothing was refused so far and, if it compares, everything was as in `earlier`. If not, nothing more need be
  /// shown.
  bool goes_on() const { return goes_on_; }
  /// At the end: likewise, and nothing was missing.
  bool succeeded() const { return goes_on_ && (kind_ != Kind::kCompare || next_word_ == earlier_->words.size()); }
  /// A component is in a state that it does not show.
  void Refuse() { goes_on_ = false; }

  /// Something that is no time.
  void Word(std::uint64_t value) {
    if (kind_ == Kind::kRecord) Put(value);
    else if (kind_ == Kind::kCompare)
      goes_on_ = goes_on_ && next_word_ < earlier_->words.size() && earlier_->words[next_word_++] == value;
  }
  void Pointer(const void* value) { Word(reinterpret_cast<std::uintptr_t>(value)); }

  /// Something is not to be before that time; those that have passed are all alike. `parts`: of a cycle, that `at`
  /// counts.
  void NotBefore(Cycle& at, std::uint64_t parts = 1) { Time(at, clocks_.sm * parts); }
  void L2NotBefore(Cycle& at) { Time(at, clocks_.l2); }
  /// How long ago it was matters.
  void Since(Cycle& at) {
    if (kind_ == Kind::kMove) at += clocks_.sm;
    else Word(clocks_.sm - at);
  }

  void Count(std::uint64_t& count) {
    if (kind_ != Kind::kMove) return image_->counts.push_back(count);
    count += times_ * (image_->counts[next_count_] - earlier_->counts[next_count_]);
    ++next_count_;
  }
  void Turns(std::uint64_t& left) {
    if (kind_ != Kind::kMove) return image_->turns.push_back(left);
    left -= times_ * (earlier_->turns[next_turns_] - image_->turns[next_turns_]);
    ++next_turns_;
  }

  /// A load of an SM, which has no name that is the same again: its number, in the order in which the walk meets loads.
  /// Whether it is the first time, so that the load shows itself.
  bool MeetsLoad(std::uint16_t sm, std::uint32_t load) {
    const auto [met, first] = loads_.try_emplace(std::uint64_t{sm} << 32 | load, loads_.size());
    Word(met->second);
    return first;
  }
  void Entry(std::uint16_t sm, std::uint16_t id) const { entries_(sm, id); }

 private:
  /// Words of a state at most, 32 MiB: several times what most devices keep that are full of warps. Larger states are
  /// not looked at.
  static constexpr std::size_t kMostWords = std::size_t{1} << 22;
  enum class Kind : std::uint8_t { kRecord, kCompare, kMove };
  StateWalk(Kind kind, Clocks clocks, const StateImage* earlier, std::uint64_t times, StateImage& image)
      : kind_(kind), clocks_(clocks), times_(times), earlier_(earlier), image_(&image) {}

  void Put(std::uint64_t value) {
    if (image_->words.size() == kMostWords) return Refuse();
    image_->words.push_back(value);
  }
  void Time(Cycle& at, Cycle by) {
    if (kind_ != Kind::kMove) return Word(at == kNever ? kNever : at > by ? at - by : 0);
    if (at != kNever) at += by;
  }

  Kind kind_;
  Clocks clocks_;  // now; kMove: by how much
  std::uint64_t times_;
  const StateImage* earlier_;
  StateImage* image_;
  bool goes_on_ = true;
  std::size_t next_word_ = 0, next_count_ = 0, next_turns_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> loads_;
  WalkEntry entries_;
};

}  // namespace gridloom::timing
