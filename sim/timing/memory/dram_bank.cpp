#include "sim/timing/memory/dram_bank.h"

namespace gridloom::timing {

DramTiming::DramTiming(const sim::TimingSpec::Dram& spec) : spec_(spec) {
  row_.fill(kClosed);
  for (std::uint32_t bank = 0; bank < spec.banks; ++bank) group_[bank] = bank % spec.bank_groups;
}

}  // namespace gridloom::timing
