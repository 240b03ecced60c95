// The timing rules of a DRAM channel: when a command may be given, and what giving it does. No queue and no choice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/hardware/timing_spec.h"
#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// Cycles are command cycles. The data of a request of several bursts follow each other on the data bus (their banks groups are
/// taken to alternate); tCCDL holds between requests of one bank group.
class DramTiming {
 public:
  static constexpr std::uint32_t kClosed = ~std::uint32_t{0};

  explicit DramTiming(const sim::TimingSpec::Dram& spec);

  std::uint32_t open_row(std::uint32_t bank) const { return banks_[bank].row; }

  /// First cycle at which the command may be given.
  Cycle ColumnAt(std::uint32_t bank, bool writes) const {
    const Bank& b = banks_[bank];
    return std::max(std::max(b.column, column_), std::max(group_column_[b.group], writes ? write_ : read_));
  }
  /// Precharge of an open bank, activation of a closed one.
  Cycle RowAt(std::uint32_t bank) const {
    const Bank& b = banks_[bank];
    return b.row == kClosed ? std::max(b.activate, activate_) : b.precharge;
  }

  /// Reads or writes `bursts` of the open row; the cycle after the last data.
  Cycle Column(Cycle now, std::uint32_t bank, bool writes, std::uint32_t bursts);
  void Activate(Cycle now, std::uint32_t bank, std::uint32_t row);
  void Precharge(Cycle now, std::uint32_t bank);

 private:
  struct Bank {
    std::uint32_t row = kClosed;
    std::uint32_t group = 0;
    Cycle activate = 0, column = 0, precharge = 0;  // not before
  };
  const sim::TimingSpec::Dram& spec_;
  std::vector<Bank> banks_;
  std::vector<Cycle> group_column_;                         // not before, by bank group
  Cycle activate_ = 0, column_ = 0, read_ = 0, write_ = 0;  // not before, whole channel
};

}  // namespace gridloom::timing
