#include "sim/timing/memory/dram_channel.h"

#include <algorithm>

#include "sim/timing/memory/dram_queue_indexed_inline.h"

namespace gridloom::timing {

DramChannel::DramChannel(const sim::TimingSpec::Dram& spec, std::uint32_t partition, const Ports& ports, bool plain,
                         MemoryCounters& counters)
    : spec_(spec),
      partition_(partition),
      ports_(ports),
      cycles_per_burst_(spec.access_bytes / spec.bytes_per_cycle),
      counters_(counters),
      timing_(spec),
      queue_(spec.queue, spec.banks, spec.bank_groups),
      plain_queue_(plain ? MakePlainDramQueue() : nullptr) {}

void DramChannel::Add(Cycle now, std::uint32_t bank, std::uint32_t row, std::uint32_t bursts, bool writes,
                      std::uint32_t tag) {
  for (DramEvents* const listener : ports_.dram_events) {
    listener->OnEnqueue(now, {.partition = partition_, .bank = bank, .row = row, .bursts = bursts, .writes = writes});
  }
  const DramEntry entry{.row = row,
                        .tag = tag,
                        .bank = static_cast<std::uint16_t>(bank),
                        .bursts = static_cast<std::uint8_t>(bursts),
                        .writes = writes};
  const Cycle matters = std::max(now, plain_queue_ ? plain_queue_->Add(entry, timing_) : queue_.Add(entry, timing_));
  if (size_ == 0) active_from_ = std::max(now, active_until_);
  ++size_;
  // It may come before what is planned, or want the row that a planned command for its bank would close.
  const bool same_bank = plan_.kind != DramChoice::Kind::kNothing && plan_.bank == bank;
  if (same_bank || matters <= plan_.at) plan_ = {.at = std::min(matters, plan_.at)};
}

void DramChannel::Step(Cycle now, std::vector<DramData>& data) {
  if (plain_queue_) StepOf(*plain_queue_, now, data);
  else StepOf(queue_, now, data);
}

template <typename Queue>
void DramChannel::StepOf(Queue& queue, Cycle now, std::vector<DramData>& data) {
  if (plan_.at > now) return;
  if (plan_.kind == DramChoice::Kind::kNothing || plan_.at < now) plan_ = queue.Choose(now, timing_);
  if (plan_.at > now || plan_.kind == DramChoice::Kind::kNothing) return;
  DramData read;
  Execute(queue, now, read);
  if (read.at != kNever) data.push_back(read);
}

Cycle DramChannel::RunToColumn(Cycle end, DramData& data) {
  while (plan_.at < end) {
    if (plan_.kind == DramChoice::Kind::kNothing) plan_ = queue_.Choose(plan_.at, timing_);
    if (plan_.at >= end) break;
    const bool column = plan_.kind == DramChoice::Kind::kColumn;
    const Cycle now = plan_.at;
    Execute(queue_, now, data);
    if (column) return now;
  }
  return kNever;
}

/// Gives the command that is planned for now.
template <typename Queue>
void DramChannel::Execute(Queue& queue, Cycle now, DramData& data) {
  if (plan_.kind == DramChoice::Kind::kColumn) {
    const DramEntry entry = queue.entry(plan_.slot);
    const Cycle end = timing_.Column(now, entry.bank, entry.writes, entry.bursts);
    counters_.dram_busy_cycles += entry.bursts * cycles_per_burst_;
    (entry.writes ? counters_.dram_write_bytes : counters_.dram_read_bytes) +=
        std::uint64_t{entry.bursts} * spec_.access_bytes;
    ++(entry.writes ? counters_.dram_writes : counters_.dram_reads);
    if (!entry.writes) data = {.at = end, .tag = entry.tag};
    queue.ColumnGiven(now, plan_.slot, timing_);
    if (--size_ == 0) {
      active_until_ = std::max(end, active_from_);
      counters_.dram_active_cycles += active_until_ - active_from_;
    }
  } else if (timing_.open_row(plan_.bank) == DramTiming::kClosed) {
    timing_.Activate(now, plan_.bank, queue.entry(plan_.slot).row);
    queue.RowOpened(now, plan_.slot, timing_);
    ++counters_.dram_activations;
  } else {
    timing_.Precharge(now, plan_.bank);
    queue.RowClosed(now, plan_.bank, timing_);
    ++counters_.dram_precharges;
  }
  plan_ = {.at = size_ == 0 ? kNever : now + 1};  // to be chosen when it is known what comes meanwhile
}

}  // namespace gridloom::timing
