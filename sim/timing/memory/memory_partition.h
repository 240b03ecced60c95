// A memory partition: the slices of L2 in front of one DRAM channel. Runs on L2's clock; shares nothing with other
// partitions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/timing/memory/fifo.h"
#include "sim/timing/memory/l2_slice.h"

namespace gridloom::timing {

class MemoryPartition {
 public:
  /// `plain`: every cycle of L2 and DRAM is simulated. `groups`: of SMs, whose answers are kept apart.
  MemoryPartition(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t index,
                  std::uint32_t groups, bool plain);
  MemoryPartition(const MemoryPartition&) = delete;
  MemoryPartition& operator=(const MemoryPartition&) = delete;

  /// Hands over a request; its arrival is in SM cycles.
  void Add(const Request& request);
  /// After the last Add of a phase.
  void SortInboxes();
  Outbox<Response>& outbox() { return out_; }
  const MemoryCounters& counters() const { return counters_; }

  /// Simulates the L2 cycles that begin before SM cycle `end`; all requests that arrive before it must have been added.
  void Run(Cycle end);
  /// First SM cycle at or after the next L2 cycle in which something happens, from what is known now; kNever when idle.
  Cycle next() const { return parameters_.sm_to_l2.Back(next_); }
  /// Answers on their way to SMs included, if they are sealed. Refuses while DRAM has something to do.
  void Walk(StateWalk& walk);

 private:
  struct DueFill {
    Cycle at = 0;
    std::uint32_t tag = 0;
  };

  void RunTicks(Cycle limit);
  void RunPlainly(Cycle limit);
  void FindNext();
  Cycle NextTick(Cycle limit);
  Cycle StepDram(Cycle end);
  void AdvanceDram(Cycle end);
  void TakeFills(Cycle now);
  void TickSlices(Cycle now, std::uint64_t due);
  void AddFill(const DramData& data) {
    slices_[data.tag & L2Slice::kTagSliceMask]->PrefetchFill(data.tag >> L2Slice::kTagSliceBits);
    fills_.push_back({.at = parameters_.l2_to_dram.Back(data.at) + parameters_.dram_delay, .tag = data.tag});
  }
  std::uint64_t HaveRoom() const;
  void NeedsRoom(std::uint64_t bit, std::uint32_t room);
  void LookAhead();
  std::uint64_t Due(Cycle now);
  Cycle NextRequest() const;

  const Parameters& parameters_;
  const bool plain_;
  MemoryCounters counters_;
  DramChannel dram_;
  std::vector<std::unique_ptr<L2Slice>> slices_;
  std::vector<Cycle>
      slice_at_;  // when it may take a request, if DRAM's queue has room; kNever when that depends on data
  // Masks of slices: whose next request was tried and has to wait for DRAM; that need not try before its queue has room
  // for one, for two; that may go on when data of theirs come, and of these, those whose data have come.
  std::uint64_t blocked_ = 0, needs_one_ = 0, needs_two_ = 0, waits_for_data_ = 0, retry_ = 0;
  std::uint64_t unknown_ = 0;  // slices that have not looked ahead
  const Divisor slice_count_;
  Outbox<Response> out_;
  Fifo<DueFill> fills_;
  Cycle done_ = 0;  // L2 cycles before this have been simulated
  Cycle next_ = kNever;
};

}  // namespace gridloom::timing
