#include "sim/timing/memory/dram_bank.h"

#include <algorithm>

namespace gridloom::timing {

DramTiming::DramTiming(const sim::TimingSpec::Dram& spec) : spec_(spec) {
  row_.fill(kClosed);
  for (std::uint32_t bank = 0; bank < spec.banks; ++bank) {
    group_[bank] = bank % spec.bank_groups;
    closed_ |= std::uint64_t{1} << bank;
  }
}

Cycle DramTiming::Column(Cycle now, std::uint32_t bank, bool writes, std::uint32_t bursts) {
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

void DramTiming::Activate(Cycle now, std::uint32_t bank, std::uint32_t row) {
  row_[bank] = row;
  closed_ &= ~(std::uint64_t{1} << bank);
  bank_column_[bank] = now + spec_.tRCD;
  row_at_[bank] = now + spec_.tRAS;
  next_activate_[bank] = now + spec_.tRC;
  activate_ = now + spec_.tRRD;
}

void DramTiming::Precharge(Cycle now, std::uint32_t bank) {
  row_[bank] = kClosed;
  closed_ |= std::uint64_t{1} << bank;
  row_at_[bank] = std::max(next_activate_[bank], now + spec_.tRP);
}

}  // namespace gridloom::timing
