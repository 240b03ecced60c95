// FR-FCFS by looking at every entry.
#include <algorithm>

#include "sim/timing/memory/dram_queue.h"

namespace gridloom::timing {
namespace {

class PlainDramQueue final : public DramQueue {
 public:
  DramEntry entry(std::uint32_t slot) const override { return entries_[slot]; }
  Cycle Add(const DramEntry& entry, const DramTiming&) override {
    entries_.push_back(entry);
    return 0;
  }
  void ColumnGiven(Cycle, std::uint32_t slot, const DramTiming&) override { entries_.erase(entries_.begin() + slot); }
  void RowOpened(Cycle, std::uint32_t, const DramTiming&) override {}
  void RowClosed(Cycle, std::uint32_t, const DramTiming&) override {}

  DramChoice Choose(Cycle from, const DramTiming& timing) override {
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      const DramEntry& entry = entries_[i];
      const bool hit = timing.open_row(entry.bank) == entry.row;
      if (hit && timing.ColumnAt(entry.bank, entry.writes) <= from) return Choice(DramChoice::Kind::kColumn, i, from);
    }
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      const DramEntry& entry = entries_[i];
      const auto same_bank = [&](const DramEntry& other) { return other.bank == entry.bank; };
      const auto hit = [&](const DramEntry& other) {
        return same_bank(other) && timing.open_row(other.bank) == other.row;
      };
      if (std::ranges::any_of(entries_, hit)) continue;
      const bool oldest = std::find_if(entries_.begin(), entries_.end(), same_bank) == entries_.begin() + i;
      if (oldest && timing.RowAt(entry.bank) <= from) return Choice(DramChoice::Kind::kRow, i, from);
    }
    return {.at = entries_.empty() ? kNever : from + 1};
  }

 private:
  DramChoice Choice(DramChoice::Kind kind, std::uint32_t i, Cycle at) const {
    return {.kind = kind,
            .bank = static_cast<std::uint8_t>(entries_[i].bank),
            .slot = static_cast<std::uint16_t>(i),
            .at = at};
  }

  std::vector<DramEntry> entries_;  // in order of arrival
};

}  // namespace

std::unique_ptr<DramQueue> MakePlainDramQueue() { return std::make_unique<PlainDramQueue>(); }

}  // namespace gridloom::timing
