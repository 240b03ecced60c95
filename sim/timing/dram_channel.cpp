#include "sim/timing/dram_channel.h"

#include <algorithm>

namespace gridloom::timing {

DramChannel::DramChannel(const sim::TimingSpec::Dram& spec, std::uint32_t partition, const Hooks& hooks, bool plain,
                         MemoryCounters& counters)
    : spec_(spec),
      partition_(partition),
      hooks_(hooks),
      counters_(counters),
      timing_(spec),
      queue_(plain ? MakePlainDramQueue() : MakeIndexedDramQueue(spec.queue, spec.banks)) {}

void DramChannel::Add(Cycle now, std::uint32_t bank, std::uint32_t row, std::uint32_t bursts, bool writes, std::uint32_t tag) {
  if (hooks_.dram != nullptr) {
    hooks_.dram->OnEnqueue(now, {.partition = partition_, .bank = bank, .row = row, .bursts = bursts, .writes = writes});
  }
  const Cycle matters =
      queue_->Add({.order = arrivals_++, .bank = bank, .row = row, .bursts = bursts, .tag = tag, .writes = writes}, timing_);
  ++size_;
  next_ = std::min(next_, std::max(now, matters));
}

void DramChannel::Step(Cycle now, std::vector<DramData>& data) {
  const DramChoice choice = queue_->Choose(now, timing_);
  if (choice.kind == DramChoice::Kind::kColumn) {
    const DramEntry entry = queue_->entry(choice.slot);
    const Cycle end = timing_.Column(now, entry.bank, entry.writes, entry.bursts);
    counters_.dram_busy_cycles += std::uint64_t{entry.bursts} * (spec_.access_bytes / spec_.bytes_per_cycle);
    (entry.writes ? counters_.dram_write_bytes : counters_.dram_read_bytes) += std::uint64_t{entry.bursts} * spec_.access_bytes;
    ++(entry.writes ? counters_.dram_writes : counters_.dram_reads);
    if (!entry.writes) data.push_back({.at = end, .tag = entry.tag});
    queue_->Remove(choice.slot, timing_);
    --size_;
  } else if (choice.kind == DramChoice::Kind::kRow) {
    const DramEntry& entry = queue_->entry(choice.slot);
    const std::uint32_t bank = entry.bank;
    if (timing_.open_row(bank) == DramTiming::kClosed) {
      timing_.Activate(now, bank, entry.row);
      ++counters_.dram_activations;
    } else {
      timing_.Precharge(now, bank);
      ++counters_.dram_precharges;
    }
    queue_->RowChanged(bank, timing_);
  }
  next_ = queue_->Next(now + 1, timing_);
}

}  // namespace gridloom::timing
