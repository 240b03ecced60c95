// The timing rules of a DRAM channel: when a command may be given, and what giving it does. No queue and no choice.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/device/timing_spec.h"
#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// Cycles are command cycles. The data of a request of several bursts follow each other on the data bus (their banks
/// groups are taken to alternate); tCCDL holds between requests of one bank group.
class DramTiming {
 public:
  static constexpr std::uint32_t kClosed = ~std::uint32_t{0};

  explicit DramTiming(const sim::TimingSpec::Dram& spec);

  std::uint32_t open_row(std::uint32_t bank) const { return row_[bank]; }

  /// First cycle at which the command may be given.
  Cycle ColumnAt(std::uint32_t bank, bool writes) const {
    return std::max(all_columns_at(writes), bank_column_at(bank));
  }
  /// Precharge of an open bank, activation of a closed one.
  Cycle RowAt(std::uint32_t bank) const { return std::max(row_at_[bank], IsClosed(bank) ? activate_ : 0); }

  /// The parts of RowAt: what holds for all activations; what holds for one bank. And of ColumnAt.
  Cycle activate_at() const { return activate_; }
  Cycle bank_row_at(std::uint32_t bank) const { return row_at_[bank]; }
  Cycle all_columns_at(bool writes) const { return std::max(column_, writes ? write_ : read_); }
  std::uint32_t group(std::uint32_t bank) const { return group_[bank]; }
  Cycle group_column_at(std::uint32_t bank) const { return group_column_[group_[bank]]; }
  Cycle bank_column_at(std::uint32_t bank) const { return std::max(bank_column_[bank], group_column_[group_[bank]]); }

  /// Reads or writes `bursts` of the open row; the cycle after the last data.
  Cycle Column(Cycle now, std::uint32_t bank, bool writes, std::uint32_t bursts);
  void Activate(Cycle now, std::uint32_t bank, std::uint32_t row);
  void Precharge(Cycle now, std::uint32_t bank);

 private:
  bool IsClosed(std::uint32_t bank) const { return row_[bank] == kClosed; }

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
  Cycle activate_ = 0, column_ = 0, read_ = 0, write_ = 0;  // not before, whole channel
};

inline Cycle DramTiming::Column(Cycle now, std::uint32_t bank, bool writes, std::uint32_t bursts) {
  const Cycle last = now + Cycle{bursts - 1} * spec_.tCCD;  // command cycle of the last burst
  column_ = last + spec_.tCCD;
  group_column_[group_[bank]] = last + spec_.tCCDL;
  Cycle& precharge = row_at_[bank];
  if (writes) {
    const Cycle end = last + spec_.tCCD + spec_.tWL;
    read_ = std::max(read_, end + spec_.tCDLR);
    precharge = std::max(precharge, end + spec_.tWR);
    return end;
  }
  const Cycle end = last + spec_.tCCD + spec_.tCL;
  // The bus is turned round in two cycles between the last data read and the first written.
  const Cycle turned = end + 2;
  write_ = std::max(write_, turned > spec_.tWL ? turned - spec_.tWL : 0);
  precharge = std::max(precharge, last + spec_.tRTP);
  return end;
}

inline void DramTiming::Activate(Cycle now, std::uint32_t bank, std::uint32_t row) {
  row_[bank] = row;
  bank_column_[bank] = now + spec_.tRCD;
  row_at_[bank] = now + spec_.tRAS;
  next_activate_[bank] = now + spec_.tRC;
  activate_ = now + spec_.tRRD;
}

inline void DramTiming::Precharge(Cycle now, std::uint32_t bank) {
  row_[bank] = kClosed;
  row_at_[bank] = std::max(next_activate_[bank], now + spec_.tRP);
}

}  // namespace gridloom::timing
