// Which request of a channel is served next: FR-FCFS, first ready, then first come. Two implementations that decide the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/timing/memory/dram_bank.h"

namespace gridloom::timing {

struct DramEntry {
  std::uint64_t order = 0;  ///< of arrival
  std::uint32_t row = 0;
  std::uint32_t tag = 0;  ///< the owner's
  std::uint16_t bank = 0;
  std::uint8_t bursts = 0;
  bool writes = false;
};

/// The next command: a column command for an entry, a row command (precharge or activation) for its bank, or nothing. Of commands
/// that may be given at the same time, column commands come first; of several, the oldest entry's. Row commands are for banks of
/// which no entry has its row open, on behalf of the bank's oldest entry; of several, the oldest.
struct DramChoice {
  enum class Kind : std::uint8_t { kNothing, kColumn, kRow } kind = Kind::kNothing;
  std::uint16_t bank = 0;
  std::uint32_t slot = 0;  ///< of the entry
  Cycle at = kNever;       ///< when it may be given; of kNothing, when to look again
};

class DramQueue {
 public:
  virtual ~DramQueue() = default;
  virtual const DramEntry& entry(std::uint32_t slot) const = 0;
  /// Returns the first cycle at which the entry may matter to Choose.
  virtual Cycle Add(const DramEntry& entry, const DramTiming& timing) = 0;
  /// Only of an entry that Choose gave for a column command.
  virtual void Remove(std::uint32_t slot, const DramTiming& timing) = 0;
  /// A row of the bank has been opened, the open one closed.
  virtual void RowOpened(std::uint32_t bank, std::uint32_t row) = 0;
  virtual void RowClosed(std::uint32_t bank) = 0;
  /// The first command that may be given at or after `from`, if nothing is added before.
  virtual DramChoice Choose(Cycle from, const DramTiming& timing) = 0;
};

/// Looks at the banks that have entries only: each keeps its entries in order of arrival and the first with the open row.
std::unique_ptr<DramQueue> MakeIndexedDramQueue(std::uint32_t capacity, std::uint32_t banks);
/// Looks at every entry: the reference.
std::unique_ptr<DramQueue> MakePlainDramQueue();

}  // namespace gridloom::timing
