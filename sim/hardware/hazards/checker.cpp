#include "sim/hardware/hazards/checker.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "rewriter/support/printable.h"
#include "sim/device/timing_spec.h"
#include "sim/timing/kernel_table.h"

namespace gridloom::hardware::hazards {

using timing::Cycle;
using timing::WorkId;

namespace {

constexpr std::uint64_t kLineBytes = sim::TimingSpec::kLineBytes;
constexpr std::uint64_t kPageSectors = SectorOrder::kSectors, kPageLines = kPageSectors / kLineSectors;
constexpr unsigned kSpaceAt = 44;  // above all sectors of an address space

std::string Hex(std::uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::uint64_t SectorOf(std::uint32_t space, std::uint64_t sector) { return std::uint64_t{space} << kSpaceAt ^ sector; }

/// Runs of sectors of a line that are set in the mask.
template <typename Function>
void ForEachRun(std::uint8_t mask, const Function& function) {
  for (std::uint32_t first = 0; first < kLineSectors;) {
    if ((mask >> first & 1) == 0) {
      ++first;
      continue;
    }
    std::uint32_t end = first;
    while (end < kLineSectors && (mask >> end & 1) != 0) ++end;
    function(first, end - first);
    first = end;
  }
}

}  // namespace

void Checker::Attach(timing::Ports& ports, timing::DeviceInput& input) {
  input_ = &input;
  ports.work_events.push_back(this);
  ports.cta_events.push_back(this);
  ports.access_events.push_back(&recorder_);
  ports.sources.push_back(this);
}

void Checker::Count(std::span<std::uint64_t> values) const { std::ranges::copy(counts_, values.begin()); }

// ---- works

void Checker::OnWorkGiven(const timing::WorkView& view) {
  clocks_.Give(view);
  Work& work = works_[view.id];
  work.space = view.use.address_space;
  work.name = view.kind == timing::WorkKind::kKernel ? "kernel " + view.source->code().name
                                                     : std::string(timing::Name(view.kind));
  if (view.memory != nullptr) spaces_.try_emplace(work.space, Space{.memory = *view.memory, .pages = {}});
}

void Checker::OnCtaStart(Cycle at, const timing::CtaPlace& place) {
  Cycle& started = works_.at(place.launch).started;
  started = std::min(started, at);
}

void Checker::OnWorkEnd(Cycle now, WorkId work) {
  Check(now);
  clocks_.End(work);
  works_.erase(work);
  if (!clocks_.idle()) return;
  issued_.Clear();
  taken_.Clear();
}

// ---- what they did

/// All that happened up to that cycle; SMs, partitions and copies may be further.
void Checker::Check(Cycle until) {
  recorder_.ForEachNewAccess([&](const Record& access) { NoteAccess(access); });
  recorder_.Take(until, records_, transfers_);
  // Within a cycle, transfers come before what goes by them.
  auto transfer = transfers_.begin();
  for (const Record& record : records_) {
    for (; transfer != transfers_.end() && transfer->at <= record.at; ++transfer) CheckTransfer(*transfer);
    CheckRecord(record);
  }
  for (; transfer != transfers_.end(); ++transfer) CheckTransfer(*transfer);
  CheckRequests();
}

void Checker::NoteAccess(const Record& access) {
  lines_.MarkGlobal(access.physical);
  const auto work = works_.find(access.work);
  const auto space = work == works_.end() ? spaces_.end() : spaces_.find(work->second.space);
  const std::uint64_t page = access.line / kPageLines;
  if (space != spaces_.end() && std::exchange(space->second.last, page) != page) space->second.pages.insert(page);
}

void Checker::CheckTransfer(const Transfer& transfer) {
  if (transfer.bytes == 0) return;
  ++counts_[kTransfersChecked];
  counts_[kEarlyAccesses] += clocks_.IsEarly(transfer.work);
  const std::uint64_t first = transfer.address / kSectorBytes,
                      end = (transfer.address + transfer.bytes - 1) / kSectorBytes + 1;
  issued_.Access(transfer.work, SectorOf(transfer.space, first), end - first, transfer.writes,
                 [&](std::uint64_t sector, std::uint64_t count, const Hazard& hazard) {
                   Find(transfer.work, hazard, sector * kSectorBytes, count, false);
                 });
  if (transfer.writes) NoteWritten(transfer);
}

/// Of the pages that it wrote to, those count in which kernels have accessed memory: no others can be in a cache.
void Checker::NoteWritten(const Transfer& transfer) {
  const auto space = spaces_.find(transfer.space);
  if (space == spaces_.end()) return;
  const std::uint64_t first = transfer.address / kSectorBytes,
                      end = (transfer.address + transfer.bytes - 1) / kSectorBytes + 1;
  const std::set<std::uint64_t>& pages = space->second.pages;
  for (auto page = pages.lower_bound(first / kPageSectors); page != pages.end() && *page <= (end - 1) / kPageSectors;
       ++page) {
    const std::uint64_t first_in_page = std::max(first, *page * kPageSectors),
                        end_in_page = std::min(end, (*page + 1) * kPageSectors);
    for (std::uint64_t line = first_in_page / kLineSectors; line <= (end_in_page - 1) / kLineSectors; ++line) {
      const std::uint64_t low = std::max(first, line * kLineSectors), high = std::min(end, (line + 1) * kLineSectors);
      const auto mask = static_cast<std::uint8_t>(((1u << (high - low)) - 1) << low % kLineSectors);
      lines_.Write(space->second.memory.PhysicalLine(line), mask,
                   {transfer.at, transfer.work, timing::Request::kNobody});
    }
  }
}

void Checker::CheckRecord(const Record& record) {
  switch (record.kind) {
    case Record::Kind::kFill:
      for (std::uint32_t sector = 0; sector < kLineSectors; ++sector) {
        if ((record.sectors >> sector & 1) != 0) FilledAt(record)[sector] = record.at;
      }
      return;
    case Record::Kind::kHit: return CheckHit(record);
    case Record::Kind::kAccess: return CheckAccess(record);
  }
}

void Checker::CheckAccess(const Record& access) {
  if (!access.counts) return;
  counts_[kAccessesChecked] += access.first;
  counts_[kEarlyAccesses] += access.first && clocks_.IsEarly(access.work);
  const std::uint64_t line = SectorOf(works_.at(access.work).space, access.line * kLineSectors);
  ForEachRun(access.sectors, [&](std::uint32_t first, std::uint32_t count) {
    issued_.Access(access.work, line + first, count, access.writes,
                   [&](std::uint64_t sector, std::uint64_t sectors, const Hazard& hazard) {
                     Find(access.work, hazard, sector * kSectorBytes, sectors, false);
                   });
  });
  if (access.writes) lines_.Write(access.physical, access.sectors, {access.at, access.work, access.sm});
}

Checker::Sectors& Checker::FilledAt(const Record& record) {
  std::vector<Sectors>& places = filled_[record.sm][record.cache];
  if (places.size() <= record.place) places.resize(record.place + std::size_t{1});
  return places[record.place];
}

/// What a kernel finds in its SM's cache must not be older than what a work before it has written; nor than what
/// anybody had written when the kernel began.
void Checker::CheckHit(const Record& hit) {
  const auto work = works_.find(hit.work);
  if (work == works_.end()) return;  // a prefetch that nobody has waited for
  const Sectors& filled = FilledAt(hit);
  for (std::uint32_t sector = 0; sector < kLineSectors; ++sector) {
    if ((hit.sectors >> sector & 1) == 0) continue;
    const LastWrite* const write = lines_.WriteOf(hit.physical, sector);
    if (write == nullptr || write->at < filled[sector] || write->work == hit.work || write->sm == hit.sm) continue;
    const bool known = clocks_.Precedes(write->work, hit.work) || write->at < work->second.started;
    if (write->work == timing::kNoWork || !known) continue;
    ++counts_[kStaleReads];
    Tell(NameOf(hit.work) + " read " + Hex(hit.physical * kLineBytes + sector * kSectorBytes) + " from a cache of SM " +
         std::to_string(hit.sm) + " that had it from before " + NameOf(write->work) + " wrote it");
  }
}

void Checker::CheckRequests() {
  recorder_.TakeRequests([&](const Taken& request) {
    if (!lines_.IsGlobal(request.line) || !works_.contains(request.work)) return;
    ForEachRun(request.sectors, [&](std::uint32_t first, std::uint32_t count) {
      taken_.Access(request.work, request.line * kLineSectors + first, count, request.writes,
                    [&](std::uint64_t sector, std::uint64_t sectors, const Hazard& hazard) {
                      Find(request.work, hazard, sector * kSectorBytes, sectors, true);
                    });
    });
  });
}

/// `sectors` of them, from that address on.
void Checker::Find(WorkId earlier, const Hazard& hazard, std::uint64_t address, std::uint64_t sectors, bool at_l2) {
  struct Words {
    Counter counter;
    const char *early, *late;
  };
  static constexpr Words kWords[] = {{kRaw, "read", "wrote"}, {kWar, "wrote", "read"}, {kWaw, "wrote", "wrote"}};
  const Words& words = kWords[static_cast<std::size_t>(hazard.kind)];
  counts_[at_l2 ? kL2Hazards : words.counter] += sectors;
  Tell(NameOf(hazard.later) + " " + words.early + " " + Hex(address & ((std::uint64_t{1} << (kSpaceAt + 5)) - 1)) +
       " before " + NameOf(earlier) + ", which comes before it, " + words.late + " it" +
       (at_l2 ? ", as L2 saw it" : ""));
}

void Checker::Tell(std::string sentence) {
  if (std::exchange(has_told_, true) || told_ == Told::kCount) return;
  if (told_ == Told::kStop) return input_->Fail(Error{"hazard: " + std::move(sentence)});
  std::fprintf(stderr, "gridloom: hazard: %s; more are only counted\n", Printable(sentence).c_str());
}

std::string Checker::NameOf(WorkId work) const {
  const auto found = works_.find(work);
  return (found == works_.end() ? "work" : found->second.name) + " (work " + std::to_string(work) + ")";
}

}  // namespace gridloom::hardware::hazards
