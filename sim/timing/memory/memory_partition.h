// A memory partition: the slices of L2 in front of one DRAM channel. Runs on L2's clock; shares nothing with other partitions.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/timing/memory/l2_slice.h"

namespace gridloom::timing {

class MemoryPartition {
 public:
  /// `plain`: every cycle of L2 and DRAM is simulated. `groups`: of SMs, whose answers are kept apart.
  MemoryPartition(const Parameters& parameters, const AddressMap& map, const Hooks& hooks, std::uint32_t index, std::uint32_t groups,
                  bool plain);
  MemoryPartition(const MemoryPartition&) = delete;
  MemoryPartition& operator=(const MemoryPartition&) = delete;

  /// Hands over a request; its arrival is in SM cycles.
  void Add(Request request);
  /// After the last Add of a phase.
  void SortInboxes();
  std::vector<Response>& outbox(std::size_t group) { return out_[group]; }
  const MemoryCounters& counters() const { return counters_; }

  /// Simulates the L2 cycles that begin before SM cycle `end`; all requests that arrive before it must have been added.
  void Run(Cycle end);
  /// First SM cycle at or after the next L2 cycle in which something happens, from what is known now; kNever when idle.
  Cycle next() const { return parameters_.sm_to_l2.Back(next_); }

 private:
  struct DueFill {
    Cycle at = 0;
    std::uint32_t tag = 0;
  };

  void Tick(Cycle now);
  void TickSlices(Cycle now, std::uint64_t due);
  void RunDram(Cycle now);
  Cycle NextAfter(Cycle now, Cycle limit);

  const Parameters& parameters_;
  const bool plain_;
  MemoryCounters counters_;
  DramChannel dram_;
  std::vector<std::unique_ptr<L2Slice>> slices_;
  std::vector<Cycle> slice_at_;             // when it may take a request; kNever when that depends on others
  std::vector<std::uint32_t> room_needed_;  // in DRAM's queue, by a slice that waits for DRAM
  std::uint64_t blocked_ = 0;               // mask of these
  const Divisor slice_count_;
  bool changed_ = false;  // DRAM took a request or gave data: blocked slices may go on
  Outbox<Response> out_;
  std::deque<DueFill> fills_;
  std::vector<DramData> data_;
  Cycle dram_wake_ = kNever;  // L2 cycle during which DRAM may do something next
  Cycle done_ = 0;            // L2 cycles before this have been simulated
  Cycle next_ = kNever;
};

}  // namespace gridloom::timing
