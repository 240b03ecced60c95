// A DRAM channel: a queue, the banks' timing, one command a cycle.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/timing/counters.h"
#include "sim/timing/hooks.h"
#include "sim/timing/memory/dram_queue.h"

namespace gridloom::timing {

/// Data of a read that has been transferred.
struct DramData {
  Cycle at = 0;  ///< command cycle after the last data
  std::uint32_t tag = 0;
};

class DramChannel {
 public:
  DramChannel(const sim::TimingSpec::Dram& spec, std::uint32_t partition, const Hooks& hooks, bool plain, MemoryCounters& counters);

  /// Requests that may still be added.
  std::uint32_t room() const { return spec_.queue - size_; }

  /// A request that is there from `now` on; `tag` comes back with the data of a read.
  void Add(Cycle now, std::uint32_t bank, std::uint32_t row, std::uint32_t bursts, bool writes, std::uint32_t tag);

  /// Gives at most one command; data of a read are appended to `data`, whose times never fall.
  void Step(Cycle now, std::vector<DramData>& data);

  /// Chooses the next command, if that was put off, so that next() is when it is given.
  void Settle() {
    if (plan_.kind == DramChoice::Kind::kNothing && plan_.at != kNever) plan_ = queue_->Choose(plan_.at, timing_);
  }

  /// Gives the row commands that come before `end` and before the next column command: nobody else is concerned by them.
  void StepRows(Cycle end) {
    while (plan_.kind == DramChoice::Kind::kRow && plan_.at < end) {
      Execute(plan_.at, nullptr);
      Settle();
    }
  }

  bool row_is_next() const { return plan_.kind == DramChoice::Kind::kRow; }

  /// Next cycle at which Step may do something; kNever when empty.
  Cycle next() const { return plan_.at; }

 private:
  void Execute(Cycle now, std::vector<DramData>* data);

  const sim::TimingSpec::Dram& spec_;
  const std::uint32_t partition_;
  const Hooks& hooks_;
  const std::uint64_t cycles_per_burst_;
  MemoryCounters& counters_;
  DramTiming timing_;
  std::unique_ptr<DramQueue> queue_;
  std::uint64_t arrivals_ = 0;
  std::uint32_t size_ = 0;  // of the queue
  DramChoice plan_;         // of kNothing: to be chosen at plan_.at
};

}  // namespace gridloom::timing
