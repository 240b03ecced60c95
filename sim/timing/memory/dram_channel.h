// A DRAM channel: a queue, the banks' timing, one command a cycle.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/timing/counters.h"
#include "sim/timing/memory/dram_queue_indexed.h"
#include "sim/timing/ports.h"

namespace gridloom::timing {

/// Data of a read that has been transferred.
struct DramData {
  Cycle at = kNever;  ///< command cycle after the last data
  std::uint32_t tag = 0;
};

class DramChannel {
 public:
  DramChannel(const sim::TimingSpec::Dram& spec, std::uint32_t partition, const Ports& ports, bool plain,
              MemoryCounters& counters);

  /// Requests that may still be added.
  std::uint32_t room() const { return spec_.queue - size_; }
  bool empty() const { return size_ == 0; }

  /// A request that is there from `now` on; `tag` comes back with the data of a read.
  void Add(Cycle now, std::uint32_t bank, std::uint32_t row, std::uint32_t bursts, bool writes, std::uint32_t tag);

  /// Gives at most one command; data of a read are appended to `data`, whose times never fall.
  void Step(Cycle now, std::vector<DramData>& data);

  /// Gives the commands before `end` up to and including the first for a column, and returns its cycle, kNever if there
  /// was none; the data of a read are put into `data`. The same as Step in each cycle, as long as nothing that is there
  /// before `end` is added later. Not of a plain channel.
  Cycle RunToColumn(Cycle end, DramData& data);

  /// Next cycle at which a command may be given; kNever when empty.
  Cycle next() const { return plan_.at; }

 private:
  template <typename Queue>
  void StepOf(Queue& queue, Cycle now, std::vector<DramData>& data);
  template <typename Queue>
  void Execute(Queue& queue, Cycle now, DramData& data);

  const sim::TimingSpec::Dram& spec_;
  const std::uint32_t partition_;
  const Ports& ports_;
  const std::uint64_t cycles_per_burst_;
  MemoryCounters& counters_;
  DramTiming timing_;
  IndexedDramQueue queue_;
  std::unique_ptr<DramQueue> plain_queue_;  // in its place, if there is one
  std::uint32_t size_ = 0;                  // of the queue
  DramChoice plan_;                         // of kNothing: to be chosen at plan_.at
  Cycle active_from_ = 0;                   // since when there has been a request
  Cycle active_until_ = 0;                  // when the last one that left the queue had its data
};

}  // namespace gridloom::timing
