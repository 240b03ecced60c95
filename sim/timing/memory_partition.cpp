#include "sim/timing/memory_partition.h"

#include <algorithm>

#include "rewriter/support/check.h"

namespace gridloom::timing {

MemoryPartition::MemoryPartition(const Parameters& parameters, const AddressMap& map, const Hooks& hooks, std::uint32_t index,
                                 std::uint32_t groups, bool plain)
    : parameters_(parameters),
      plain_(plain),
      dram_(parameters.timing().dram, index, hooks, plain, counters_),
      blocked_(parameters.slices_per_partition()),
      out_(groups) {
  for (std::uint32_t s = 0; s < parameters.slices_per_partition(); ++s) {
    slices_.push_back(std::make_unique<L2Slice>(parameters, map, hooks, index, s, dram_, counters_));
  }
}

void MemoryPartition::Add(Request request) {
  request.arrival = parameters_.sm_to_l2.Forward(request.arrival);
  slices_[request.slice]->inbox().Add(request);
}

void MemoryPartition::SortInboxes() {
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    slices_[s]->inbox().Sort();
    if (blocked_[s] == 0) next_ = std::min(next_, std::max(slices_[s]->next(), done_));
  }
}

void MemoryPartition::Run(Cycle end) {
  const Cycle limit = parameters_.sm_to_l2.Forward(end);
  if (plain_) {
    for (; done_ < limit; ++done_) Tick(done_);
    next_ = NextAfter(done_ - 1);
    return;
  }
  while (next_ < limit) {
    const Cycle now = next_;
    GL_CHECK(now >= done_, "a memory partition went back in time");
    Tick(now);
    done_ = now + 1;
    next_ = NextAfter(now);
  }
  done_ = limit;
}

/// Output end first: data that come and requests that DRAM takes make room for requests in the same cycle. A request that a slice
/// gives to DRAM is there from the next cycle on.
void MemoryPartition::Tick(Cycle now) {
  const auto slices = static_cast<std::uint32_t>(slices_.size());
  while (!fills_.empty() && fills_.front().at <= now) {
    const std::uint32_t tag = fills_.front().tag;
    fills_.pop_front();
    slices_[tag % slices]->Fill(now, tag / slices, out_);
    changed_ = true;
  }
  if (plain_ || dram_wake_ <= now) RunDram(now);
  const bool retry = changed_;
  changed_ = false;
  // Turns with the cycle, so that no slice is always first at DRAM's queue.
  for (std::uint32_t i = 0; i < slices; ++i) {
    const auto s = static_cast<std::uint32_t>((now + i) % slices);
    if (blocked_[s] == 0 || plain_ || (retry && slices_[s]->MayGoOn())) blocked_[s] = slices_[s]->Tick(now, out_) ? 0 : 1;
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

Cycle MemoryPartition::NextAfter(Cycle now) {
  dram_wake_ = parameters_.l2_to_dram.During(dram_.next());
  Cycle next = dram_wake_;
  if (!fills_.empty()) next = std::min(next, fills_.front().at);
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    if (blocked_[s] == 0) next = std::min(next, slices_[s]->next());
  }
  return std::max(next, now + 1);
}

}  // namespace gridloom::timing
