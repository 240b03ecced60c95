#include "sim/timing/memory/memory_partition.h"

#include <algorithm>
#include <bit>

#include "rewriter/support/check.h"

namespace gridloom::timing {

MemoryPartition::MemoryPartition(const Parameters& parameters, const AddressMap& map, const Hooks& hooks, std::uint32_t index,
                                 std::uint32_t groups, bool plain)
    : parameters_(parameters),
      plain_(plain),
      dram_(parameters.timing().dram, index, hooks, plain, counters_),
      slice_at_(parameters.slices_per_partition(), kNever),
      room_needed_(parameters.slices_per_partition()),
      slice_count_(parameters.slices_per_partition()),
      out_(groups) {
  for (std::uint32_t s = 0; s < parameters.slices_per_partition(); ++s) {
    slices_.push_back(std::make_unique<L2Slice>(parameters, map, hooks, index, s, dram_, counters_));
  }
}

void MemoryPartition::Add(Request request) {
  request.arrival = parameters_.sm_to_l2.Forward(request.arrival);
  slices_[request.slice]->Add(request);
}

void MemoryPartition::SortInboxes() {
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    slices_[s]->SortInbox();
    if ((blocked_ >> s & 1) != 0) continue;
    slice_at_[s] = slices_[s]->next();
    next_ = std::min(next_, std::max(slice_at_[s], done_));
  }
}

void MemoryPartition::Run(Cycle end) {
  const Cycle limit = parameters_.sm_to_l2.Forward(end);
  if (plain_) {
    for (; done_ < limit; ++done_) Tick(done_);
    next_ = NextAfter(done_ - 1, 0);
    return;
  }
  while (next_ < limit) {
    const Cycle now = next_;
    GL_CHECK(now >= done_, "a memory partition went back in time");
    Tick(now);
    done_ = now + 1;
    next_ = NextAfter(now, limit);
  }
  done_ = limit;
}

/// Output end first: data that come and requests that DRAM takes make room for requests in the same cycle. A request that a slice
/// gives to DRAM is there from the next cycle on.
void MemoryPartition::Tick(Cycle now) {
  while (!fills_.empty() && fills_.front().at <= now) {
    const std::uint32_t tag = fills_.front().tag;
    fills_.pop_front();
    const std::uint32_t s = tag & L2Slice::kTagSliceMask;
    slices_[s]->Fill(now, tag >> L2Slice::kTagSliceBits, out_);
    room_needed_[s] = slices_[s]->room_needed();
    changed_ = true;
  }
  if (plain_ || dram_wake_ <= now) RunDram(now);
  std::uint64_t due = 0;
  for (std::size_t i = 0; i < slice_at_.size(); ++i) due |= std::uint64_t{slice_at_[i] <= now} << i;
  if (changed_ && blocked_ != 0) {
    const std::uint32_t room = dram_.room();
    for (std::size_t i = 0; i < room_needed_.size(); ++i) due |= blocked_ & std::uint64_t{room_needed_[i] <= room} << i;
  }
  changed_ = false;
  if (plain_) due = ~std::uint64_t{0} >> (64 - slices_.size());
  if (due != 0) TickSlices(now, due);
}

/// Those of the mask `due`. The first turns with the cycle, so that no slice is always first at DRAM's queue.
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
    if ((blocked_ & bit) != 0 && room_needed_[s] > dram_.room() && !plain_) continue;
    L2Slice& slice = *slices_[s];
    const bool done = slice.Tick(now, out_);
    blocked_ = done ? blocked_ & ~bit : blocked_ | bit;
    room_needed_[s] = slice.room_needed();
    slice_at_[s] = done ? slice.next() : kNever;
  }
}

/// The command cycles that begin during this cycle of L2.
void MemoryPartition::RunDram(Cycle now) {
  const Cycle begin = parameters_.l2_to_dram.Forward(now), end = parameters_.l2_to_dram.Forward(now + 1);
  const std::uint32_t room = dram_.room();
  if (plain_) {
    for (Cycle cycle = begin; cycle < end; ++cycle) dram_.Step(cycle, data_);
  } else {
    while (dram_.next() < end) dram_.Step(std::max(dram_.next(), begin), data_);
  }
  if (dram_.room() != room) changed_ = true;
  for (const DramData& data : data_) {
    fills_.push_back({.at = parameters_.l2_to_dram.Back(data.at) + parameters_.dram_delay, .tag = data.tag});
  }
  data_.clear();
}

/// Row commands of DRAM before the next event, and before `limit`, from when on requests are not known yet, need no tick.
Cycle MemoryPartition::NextAfter(Cycle now, Cycle limit) {
  Cycle next = fills_.empty() ? kNever : fills_.front().at;
  for (const Cycle at : slice_at_) next = std::min(next, at);
  next = std::max(next, now + 1);
  if (!plain_) dram_.Settle();
  if (dram_.row_is_next() && limit != 0) dram_.StepRows(parameters_.l2_to_dram.Forward(std::min(next, limit)));
  dram_wake_ = parameters_.l2_to_dram.During(dram_.next());
  return std::max(std::min(next, dram_wake_), now + 1);
}

}  // namespace gridloom::timing
