#include "sim/timing/dram_bank.h"

#include <algorithm>

namespace gridloom::timing {

DramTiming::DramTiming(const sim::TimingSpec::Dram& spec) : spec_(spec), banks_(spec.banks), group_column_(spec.bank_groups) {
  for (std::uint32_t bank = 0; bank < spec.banks; ++bank) banks_[bank].group = bank % spec.bank_groups;
}

Cycle DramTiming::Column(Cycle now, std::uint32_t bank, bool writes, std::uint32_t bursts) {
  const Cycle last = now + Cycle{bursts - 1} * spec_.tCCD;  // command cycle of the last burst
  column_ = last + spec_.tCCD;
  group_column_[banks_[bank].group] = last + spec_.tCCDL;
  Cycle& precharge = banks_[bank].precharge;
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
  Bank& b = banks_[bank];
  b.row = row;
  b.column = now + spec_.tRCD;
  b.precharge = now + spec_.tRAS;
  b.activate = now + spec_.tRC;
  activate_ = now + spec_.tRRD;
}

void DramTiming::Precharge(Cycle now, std::uint32_t bank) {
  Bank& b = banks_[bank];
  b.row = kClosed;
  b.activate = std::max(b.activate, now + spec_.tRP);
}

}  // namespace gridloom::timing
