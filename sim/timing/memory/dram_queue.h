// Which request of a channel is served next: FR-FCFS, first ready, then first come. Two implementations that decide the
// same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/timing/memory/dram_bank.h"

namespace gridloom::timing {

struct DramEntry {
  std::uint32_t row = 0;
  std::uint32_t tag = 0;  ///< the owner's
  std::uint16_t bank = 0;
  std::uint8_t bursts = 0;
  bool writes = false;
};

/// The next command: a column command for an entry, a row command (precharge or activation) for its bank, or nothing.
/// Of commands that may be given at the same time, column commands come first; of several, the oldest entry's. Row
/// commands are for banks of which no entry has its row open, on behalf of the bank's oldest entry; of several, the
/// oldest.
struct DramChoice {
  enum class Kind : std::uint8_t { kNothing, kColumn, kRow } kind = Kind::kNothing;
  std::uint8_t bank = 0;
  std::uint16_t slot = 0;  ///< of the entry
  Cycle at = kNever;       ///< when it may be given; of kNothing, when to look again
};
static_assert(sizeof(DramChoice) == 16);  // returned in registers

class DramQueue {
 public:
  virtual ~DramQueue() = default;
  virtual DramEntry entry(std::uint32_t slot) const = 0;
  /// Returns the first cycle at which the entry may matter to Choose.
  virtual Cycle Add(const DramEntry& entry, const DramTiming& timing) = 0;
  /// What Choose gave for a column command has been done; its entry leaves.
  virtual void ColumnGiven(Cycle now, std::uint32_t slot, const DramTiming& timing) = 0;
  /// So has what it gave for a row command: the row of the entry is open now, or the bank is closed.
  virtual void RowOpened(Cycle now, std::uint32_t slot, const DramTiming& timing) = 0;
  virtual void RowClosed(Cycle now, std::uint32_t bank, const DramTiming& timing) = 0;
  /// The first command that may be given at or after `from`, if nothing is added before.
  virtual DramChoice Choose(Cycle from, const DramTiming& timing) = 0;
};

/// Looks at every entry: the reference for IndexedDramQueue.
std::unique_ptr<DramQueue> MakePlainDramQueue();

}  // namespace gridloom::timing
