#include "sim/timing/memory/memory_partition.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rewriter/support/check.h"

namespace gridloom::timing {

MemoryPartition::MemoryPartition(const Parameters& parameters, const AddressMap& map, const Ports& ports,
                                 std::uint32_t index, std::uint32_t groups, bool plain)
    : parameters_(parameters),
      plain_(plain),
      dram_(parameters.timing().dram, index, ports, plain, counters_),
      slice_at_(parameters.slices_per_partition(), kNever),
      slice_count_(parameters.slices_per_partition()),
      out_(groups) {
  for (std::uint32_t s = 0; s < parameters.slices_per_partition(); ++s) {
    slices_.push_back(std::make_unique<L2Slice>(parameters, map, ports, index, s, dram_, counters_));
  }
}

void MemoryPartition::Add(const Request& request) {
  slices_[request.slice()]->Add(request.At(parameters_.sm_to_l2.Forward(request.arrival())));
}

void MemoryPartition::SortInboxes() {
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    slices_[s]->SortInbox(done_);
    const std::uint64_t bit = std::uint64_t{1} << s;
    if ((blocked_ & bit) != 0) continue;
    slice_at_[s] = slices_[s]->next();
    if (!slices_[s]->looked_ahead()) {
      NeedsRoom(bit, 0);
      unknown_ |= bit;
    }
    next_ = std::min(next_, std::max(slice_at_[s], done_));
  }
}

/// Output end first: data that come and requests that DRAM takes make room for requests in the same cycle. A request
/// that a slice gives to DRAM is there from the next cycle on, and the data of a read come later than its command. So
/// commands and data need no cycle of their own, unless a slice waits for them: they are caught up with before the next
/// request is taken.
void MemoryPartition::Run(Cycle end) {
  const Cycle limit = parameters_.sm_to_l2.Forward(end);
  if (plain_) RunPlainly(limit);
  else if (next_ < limit) RunTicks(limit);
  else done_ = limit;
}

void MemoryPartition::RunTicks(Cycle limit) {
  for (Cycle now = NextTick(limit); now < limit; now = NextTick(limit)) {
    GL_CHECK(now >= done_, "a memory partition went back in time");
    AdvanceDram(parameters_.l2_to_dram.Forward(now + 1));
    TakeFills(now);
    TickSlices(now, Due(now));
    done_ = now + 1;
  }
  AdvanceDram(parameters_.l2_to_dram.Forward(limit));
  TakeFills(limit - 1);
  done_ = limit;
  FindNext();
}

void MemoryPartition::RunPlainly(Cycle limit) {
  std::vector<DramData> data;
  for (; done_ < limit; ++done_) {
    TakeFills(done_);
    const Cycle end = parameters_.l2_to_dram.Forward(done_ + 1);
    for (Cycle cycle = parameters_.l2_to_dram.Forward(done_); cycle < end; ++cycle) dram_.Step(cycle, data);
    for (const DramData& read : data) AddFill(read);
    data.clear();
    TickSlices(done_, ~std::uint64_t{0} >> (64 - slices_.size()));
  }
  FindNext();
}

/// When something happens next, from what is known now.
void MemoryPartition::FindNext() {
  next_ = std::min(NextRequest(), parameters_.l2_to_dram.During(dram_.next()));
  if (!fills_.empty()) next_ = std::min(next_, fills_.front().at);
  next_ = std::max(next_, done_);
}

/// When the first slice may take a request, of those for which DRAM's queue has room now.
Cycle MemoryPartition::NextRequest() const {
  const std::uint64_t may = ~(needs_one_ | needs_two_) | HaveRoom();
  Cycle next = kNever;
  for (std::size_t s = 0; s < slice_at_.size(); ++s) next = std::min(next, (may >> s & 1) != 0 ? slice_at_[s] : kNever);
  return next;
}

/// Slices that wait for room in DRAM's queue, which is there now, as a mask.
std::uint64_t MemoryPartition::HaveRoom() const {
  const std::uint32_t room = dram_.room();
  return (room >= 1 ? needs_one_ : 0) | (room >= 2 ? needs_two_ : 0);
}

/// Slices that may take a request now, as a mask.
std::uint64_t MemoryPartition::Due(Cycle now) {
  std::uint64_t due = 0;
  for (std::size_t s = 0; s < slice_at_.size(); ++s) due |= std::uint64_t{slice_at_[s] <= now} << s;
  due &= ~(needs_one_ | needs_two_) | HaveRoom();
  return due | std::exchange(retry_, 0);
}

/// The slices of `bit` cannot go on without so much room in DRAM's queue.
void MemoryPartition::NeedsRoom(std::uint64_t bit, std::uint32_t room) {
  needs_one_ = room == 1 ? needs_one_ | bit : needs_one_ & ~bit;
  needs_two_ = room == 2 ? needs_two_ | bit : needs_two_ & ~bit;
}

/// While DRAM's queue is full: finds out which slices need not try their next requests before it has room.
void MemoryPartition::LookAhead() {
  for (std::uint64_t rest = std::exchange(unknown_, 0); rest != 0; rest &= rest - 1) {
    L2Slice& slice = *slices_[static_cast<std::size_t>(std::countr_zero(rest))];
    if (!slice.empty()) NeedsRoom(rest & -rest, slice.RoomForNext());
  }
}

/// The next cycle in which a slice may take a request, or `limit`. Gives DRAM's commands as far as that depends on
/// them; they do not depend on what is taken in that cycle or later.
Cycle MemoryPartition::NextTick(Cycle limit) {
  if (unknown_ != 0 && dram_.room() == 0) LookAhead();
  Cycle until = std::max(NextRequest(), done_);
  if ((needs_one_ | needs_two_ | waits_for_data_) == 0) return until;
  until = std::min(until, limit);
  Cycle end = parameters_.l2_to_dram.Forward(std::min(until + 1, limit));
  while (true) {
    if (waits_for_data_ != 0 && !fills_.empty() && fills_.front().at < until) {
      until = fills_.front().at;
      end = parameters_.l2_to_dram.Forward(until + 1);
    }
    const Cycle column = StepDram(end);
    if (column == kNever) return until;
    const Cycle now = parameters_.l2_to_dram.During(column), next = std::max(NextRequest(), now);
    if (next < until) {
      until = next;
      end = parameters_.l2_to_dram.Forward(until + 1);
    }
    if (until <= now) return until;
  }
}

/// Gives the commands before `end`, a command cycle, up to and including the first for a column; returns its cycle, or
/// kNever.
Cycle MemoryPartition::StepDram(Cycle end) {
  DramData data;
  const Cycle column = dram_.RunToColumn(end, data);
  if (data.at != kNever) AddFill(data);
  return column;
}

void MemoryPartition::AdvanceDram(Cycle end) {
  while (StepDram(end) != kNever) {
  }
}

/// Data that come until `now`. Those that nobody waited for in their own cycle are taken late, with their time.
void MemoryPartition::TakeFills(Cycle now) {
  while (!fills_.empty() && fills_.front().at <= now) {
    const DueFill fill = fills_.front();
    fills_.pop_front();
    const std::uint32_t s = fill.tag & L2Slice::kTagSliceMask;
    slices_[s]->Fill(fill.at, fill.tag >> L2Slice::kTagSliceBits, out_);
    retry_ |= waits_for_data_ & std::uint64_t{1} << s;
  }
}

/// Simulates the slices of the mask `due`. The first of them changes with the cycle, so that no slice is always first
/// at DRAM's queue.
void MemoryPartition::TickSlices(Cycle now, std::uint64_t due) {
  std::uint64_t before = 0;
  if ((due & (due - 1)) != 0) {
    const std::uint64_t first = now - slice_count_.ExactQuotient(now) * slices_.size();
    before = (std::uint64_t{1} << first) - 1;
  }
  std::uint64_t rest = due & ~before;
  while (due != 0) {
    if (rest == 0) rest = due;
    const auto s = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint64_t bit = std::uint64_t{1} << s;
    rest &= ~bit;
    due &= ~bit;
    // One before it may have taken the room.
    if (((needs_one_ | needs_two_) & bit & ~waits_for_data_ & ~HaveRoom()) != 0 && !plain_) continue;
    L2Slice& slice = *slices_[s];
    const bool done = slice.Tick(now, out_);
    const auto set = [bit](std::uint64_t& mask, bool value) { mask = value ? mask | bit : mask & ~bit; };
    set(blocked_, !done);
    set(unknown_, done);
    set(waits_for_data_, !done && !slice.waits_for_room_only());
    NeedsRoom(bit, done ? 0 : slice.room_needed());
    if (done) slice_at_[s] = slice.next();
    else slice_at_[s] = slice.room_needed() > 0 ? now + 1 : kNever;
  }
}

void MemoryPartition::Walk(StateWalk& walk) {
  if (!dram_.empty() || !fills_.empty() || !out_.all_sealed()) return walk.Refuse();
  for (const auto& slice : slices_) slice->Walk(walk);
  for (Cycle& at : slice_at_) walk.L2NotBefore(at);
  for (const std::uint64_t mask : {blocked_, needs_one_, needs_two_, waits_for_data_, retry_, unknown_})
    walk.Word(mask);
  walk.L2NotBefore(done_);
  walk.L2NotBefore(next_);
  std::size_t answers = 0;
  out_.ForEachSealed([&](const Response&) { ++answers; });
  walk.Word(answers);
  out_.ForEachSealed([&](Response& response) { response.Walk(walk); });
  counters_.ForEach([&](std::uint64_t& counter) { walk.Count(counter); });
}

}  // namespace gridloom::timing
