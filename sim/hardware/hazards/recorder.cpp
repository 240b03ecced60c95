#include "sim/hardware/hazards/recorder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "sim/timing/sm/memory_instruction.h"

namespace gridloom::hardware::hazards {

using timing::Cycle;
using timing::RequestKind;

namespace {

/// Sectors that the instruction touches, rising; how many there are.
std::size_t SectorsOf(const timing::MemoryInstruction& instruction,
                      std::array<std::uint64_t, 2 * trace::kWarpSize>& sectors) {
  std::array<std::uint64_t, trace::kWarpSize> addresses;
  trace::LaneAddresses(*instruction.cta, instruction.access, addresses);
  const std::uint64_t width = std::max<std::uint64_t>(instruction.op->width, 1);
  std::size_t count = 0;
  for (std::uint32_t lanes = instruction.access.mask; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t address = addresses[static_cast<std::size_t>(std::countr_zero(lanes))] + instruction.shift;
    sectors[count++] = address / kSectorBytes;
    sectors[count++] = (address + width - 1) / kSectorBytes;
  }
  const auto end = sectors.begin() + static_cast<std::ptrdiff_t>(count);
  if (!std::is_sorted(sectors.begin(), end)) std::sort(sectors.begin(), end);
  return static_cast<std::size_t>(std::unique(sectors.begin(), end) - sectors.begin());
}

}  // namespace

void Recorder::OnIssue(Cycle now, const timing::GatedAccess& access) {
  const timing::MemoryInstruction& instruction = access.instruction;
  if (instruction.access.mask == 0) return;
  const trace::AccessWindow window =
      trace::WindowOf(instruction.op->space, instruction.op->flags, *instruction.cta, instruction.access);
  if (window.space != trace::Space::kGlobal && window.space != trace::Space::kTexture) return;
  std::array<std::uint64_t, 2 * trace::kWarpSize> sectors;
  const std::size_t count = SectorsOf(instruction, sectors);
  std::vector<Record>& records = sms_[access.sm].records;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t line = sectors[i] / kLineSectors;
    if (i == 0 || sectors[i - 1] / kLineSectors != line) {
      records.push_back({.at = now,
                         .line = line,
                         .physical = instruction.memory->PhysicalLine(line),
                         .work = instruction.launch,
                         .sm = static_cast<std::uint16_t>(access.sm),
                         .first = i == 0,
                         .writes = (instruction.op->flags & (trace::kStore | trace::kAtomic)) != 0,
                         .counts = (instruction.op->flags & trace::kPrefetch) == 0});
    }
    records.back().sectors |= static_cast<std::uint8_t>(1u << sectors[i] % kLineSectors);
  }
}

void Recorder::OnHit(Cycle now, const timing::CachedSectors& hit) {
  sms_[hit.sm].records.push_back({.at = now,
                                  .physical = hit.line,
                                  .work = hit.launch,
                                  .place = hit.place,
                                  .sm = static_cast<std::uint16_t>(hit.sm),
                                  .kind = Record::Kind::kHit,
                                  .sectors = hit.sectors,
                                  .cache = static_cast<std::uint8_t>(hit.cache)});
}

void Recorder::OnFill(Cycle now, const timing::CachedSectors& fill) {
  sms_[fill.sm].records.push_back({.at = now,
                                   .physical = fill.line,
                                   .place = fill.place,
                                   .sm = static_cast<std::uint16_t>(fill.sm),
                                   .kind = Record::Kind::kFill,
                                   .sectors = fill.sectors,
                                   .cache = static_cast<std::uint8_t>(fill.cache)});
}

void Recorder::OnL2(Cycle, const timing::L2Access& access) {
  const bool write_back = access.kind == RequestKind::kWriteBack;  // of local memory
  if (access.sm == timing::Request::kNobody || write_back) return;
  partitions_[access.partition].requests.push_back({.line = access.line,
                                                    .work = access.launch,
                                                    .sectors = access.sectors,
                                                    .writes = access.kind != RequestKind::kRead});
}

void Recorder::Take(Cycle until, std::vector<Record>& records, std::vector<Transfer>& transfers) {
  records.clear();
  for (OnSm& sm : sms_) {
    const auto end = std::ranges::partition_point(sm.records, [&](const Record& record) { return record.at <= until; });
    const auto taken = static_cast<std::size_t>(end - sm.records.begin());
    records.insert(records.end(), sm.records.begin(), end);
    sm.records.erase(sm.records.begin(), end);
    sm.told -= std::min(sm.told, taken);
  }
  // The records of one SM are in their order.
  std::ranges::stable_sort(records, [](const Record& a, const Record& b) {
    return std::tie(a.at, a.kind, a.work, a.sm) < std::tie(b.at, b.kind, b.work, b.sm);
  });
  const auto later =
      std::ranges::stable_partition(transfers_, [&](const Transfer& transfer) { return transfer.at <= until; });
  transfers.assign(transfers_.begin(), later.begin());
  transfers_.erase(transfers_.begin(), later.begin());
  std::ranges::stable_sort(transfers, [](const Transfer& a, const Transfer& b) {
    return std::tie(a.at, a.work, a.address, a.writes) < std::tie(b.at, b.work, b.address, b.writes);
  });
}

std::size_t Recorder::waiting() const {
  std::size_t sum = 0;
  for (const OnSm& sm : sms_) sum += sm.records.size();
  for (const OnPartition& partition : partitions_) sum += partition.requests.size();
  return sum;
}

}  // namespace gridloom::hardware::hazards
