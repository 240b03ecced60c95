// The timing rules of a DRAM channel: when a command may be given, and what giving it does. No queue and no choice.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/hardware/timing_spec.h"
#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// Cycles are command cycles. The data of a request of several bursts follow each other on the data bus (their banks groups are
/// taken to alternate); tCCDL holds between requests of one bank group.
class DramTiming {
 public:
  static constexpr std::uint32_t kClosed = ~std::uint32_t{0};

  explicit DramTiming(const sim::TimingSpec::Dram& spec);

  std::uint32_t open_row(std::uint32_t bank) const { return row_[bank]; }

  /// First cycle at which the command may be given.
  Cycle ColumnAt(std::uint32_t bank, bool writes) const { return std::max(all_columns_at(writes), bank_column_at(bank)); }
  /// Precharge of an open bank, activation of a closed one.
  Cycle RowAt(std::uint32_t bank) const { return std::max(row_at_[bank], IsClosed(bank) ? activate_ : 0); }

  /// The parts of RowAt: closed banks, as a mask; what holds for all of them; what holds for one bank. And of ColumnAt.
  std::uint64_t closed() const { return closed_; }
  Cycle activate_at() const { return activate_; }
  Cycle all_columns_at(bool writes) const { return std::max(column_, writes ? write_ : read_); }
  Cycle bank_column_at(std::uint32_t bank) const { return std::max(bank_column_[bank], group_column_[group_[bank]]); }
  Cycle bank_row_at(std::uint32_t bank) const { return row_at_[bank]; }

  /// Reads or writes `bursts` of the open row; the cycle after the last data.
  Cycle Column(Cycle now, std::uint32_t bank, bool writes, std::uint32_t bursts);
  void Activate(Cycle now, std::uint32_t bank, std::uint32_t row);
  void Precharge(Cycle now, std::uint32_t bank);

 private:
  bool IsClosed(std::uint32_t bank) const { return (closed_ >> bank & 1) != 0; }

  static constexpr std::size_t kMaxBanks = 64;
  const sim::TimingSpec::Dram& spec_;
  // By bank, an array each, so that a look at all banks touches few lines.
  template <typename T>
  using ByBank = std::array<T, kMaxBanks>;
  ByBank<std::uint32_t> row_{}, group_{};
  ByBank<Cycle> bank_column_{};    // not before
  ByBank<Cycle> row_at_{};         // not before: the precharge of an open bank, the activation of a closed one
  ByBank<Cycle> next_activate_{};  // not before
  ByBank<Cycle> group_column_{};   // not before, by bank group
  std::uint64_t closed_ = 0;
  Cycle activate_ = 0, column_ = 0, read_ = 0, write_ = 0;  // not before, whole channel
};

}  // namespace gridloom::timing
