#include "sim/hardware/crcs/host_path.h"

#include <limits>
#include <numeric>
#include <random>

namespace gridloom::hardware::crcs {

using timing::Cycle;
using timing::kNoWork;
using timing::WorkId;
using timing::WorkKind;

namespace {

/// Bytes of a page of the source, as trace::HostAction::ranks counts pages.
constexpr std::uint64_t kRankedPage = 4096;

bool OnDevice(WorkKind kind) { return kind == WorkKind::kCopyOnDevice || kind == WorkKind::kFill; }

/// x * a / b without overflow.
std::uint64_t ScaleDown(std::uint64_t x, std::uint64_t a, std::uint64_t b) {
  return a == b ? x : static_cast<std::uint64_t>(static_cast<__uint128_t>(x) * a / b);
}

}  // namespace

std::uint64_t HostPath::Reading::RankOf(std::uint64_t piece, std::uint32_t read_bytes) const {
  const std::uint64_t page = piece * read_bytes / kRankedPage;
  if (ranks == nullptr || page >= ranks->size()) return std::numeric_limits<std::uint64_t>::max();
  return (*ranks)[page];
}

ByteRange HostPath::Reading::NextOnHost(std::uint32_t read_bytes) const {
  const std::uint64_t begin = Next() * read_bytes;
  return Extent{.bytes = bytes, .host_span = host_span}.OnHost({begin, std::min(begin + read_bytes, bytes)}, bytes);
}

// ---- what there is to do

void HostPath::Give(const timing::WorkView& work) {
  const timing::MemoryUse& use = work.use;
  if (work.kind == WorkKind::kStorageRead) {
    Reading& reading = readings_[work.id];
    reading.bytes = work.bytes;
    reading.ranks = use.ranks;
    reading.host_span = std::max(use.host_span, work.bytes);
    reading.reuses = use.reuses;
    reading.pieces = (work.bytes + settings_.read_bytes - 1) / settings_.read_bytes;
    SetOrder(work.id, reading);
    return;
  }
  if (work.kind == WorkKind::kStorageWrite) {
    writings_[work.id].left = work.bytes;
    return;
  }
  Copy& copy = copies_[work.id];
  copy.kind = work.kind;
  copy.space = use.address_space;
  copy.extent = {.address = use.address,
                 .span = std::max(use.span, work.bytes),
                 .bytes = work.bytes,
                 .host_span = std::max(use.host_span, work.bytes)};
  copy.reuses = use.reuses;
  copy.source = use.source;
  copy.source_span = std::max(use.source_span, work.kind == WorkKind::kCopyOnDevice ? work.bytes : 0);
  copy.partner = use.partner;
  if (const auto reading = readings_.find(use.partner); reading != readings_.end())
    reading->second.copies.push_back(work.id);
  if (OnDevice(work.kind)) return;
  const auto writing = writings_.find(use.partner);
  if (writing != writings_.end()) writing->second.of = copy.extent;
  host_pages_.Use(writing != writings_.end() ? use.partner : work.id, copy.extent);
}

void HostPath::StartCopy(Cycle now, WorkId id, bool pages) {
  Copy& copy = copies_.at(id);
  copy.paged = pages;
  if (copy.kind == WorkKind::kCopyToDevice) shares_.Loading(now, 1);
  agenda_.Add(now + settings_.after, EventKind::kEntered, id);
}

void HostPath::StartStorage(Cycle now, WorkId id) {
  if (readings_.contains(id)) shares_.Loading(now, 1);
  agenda_.Add(now + settings_.after, EventKind::kEntered, id);
}

void HostPath::Drop(Cycle now, WorkId id) {
  if (readings_.contains(id) || writings_.contains(id)) agenda_.Add(now + settings_.after, EventKind::kDropped, id);
  else if (copies_.erase(id) != 0) agenda_.Add(now + settings_.after, EventKind::kDropped, id);
}

/// The pages of a copy enter the table, or what was given to storage begins.
void HostPath::Enter(const Event& event) {
  if (const auto reading = readings_.find(event.work); reading != readings_.end()) {
    reading->second.begun = true;
    return ReadNext(event.at);
  }
  if (const auto writing = writings_.find(event.work); writing != writings_.end()) {
    writing->second.begun = true;
    return EndIfWritten(event.at, event.work);
  }
  Copy& copy = copies_.at(event.work);
  if (OnDevice(copy.kind)) return EnterMove(event.at, event.work, copy);
  EnterCopy(event.at, event.work, copy);
}

void HostPath::EnterCopy(Cycle at, WorkId id, Copy& copy) {
  copy.first = copy.extent.FirstPage(settings_.page_shift);
  copy.left = copy.extent.Pages(settings_.page_shift);
  const auto reading = readings_.find(copy.partner);
  const bool fills = copy.kind == WorkKind::kCopyToDevice && reading != readings_.end();
  copy.here.assign(copy.left, !fills);
  if (copy.paged) {
    const Role role = copy.kind == WorkKind::kCopyToDevice ? Role::kCopyToDevice : Role::kOtherCopy;
    ownership_.Add(id, role, copy.space);
  }
  for (std::uint64_t page = 0; page < copy.here.size(); ++page) {
    if (fills) {
      const ByteRange part = copy.extent.PartIn(page, settings_.page_shift);
      dat_.Expect(DatPage(id, page), static_cast<std::uint32_t>(part.end - part.begin));
    }
    if (copy.paged) ownership_.Enter(at, id, copy.first + page);
    else if (copy.kind == WorkKind::kCopyToHost) BringIfMayBe(at, id, copy, page);
    else SendIfMayBe(at, id, copy, page);
  }
  if (!fills) return;
  // Pieces that came before the copy was there.
  for (std::uint64_t i = 0; i < reading->second.done; ++i) {
    PutPiece(at, id, reading->second.order.empty() ? i : reading->second.order[i]);
  }
}

void HostPath::EnterMove(Cycle at, WorkId id, Copy& copy) {
  const auto add = [&](std::uint64_t address, std::uint64_t span) {
    if (span == 0) return;
    for (std::uint64_t page = address >> settings_.page_shift; page <= (address + span - 1) >> settings_.page_shift;
         ++page) {
      copy.all.push_back(page);
    }
  };
  if (copy.paged) {
    add(copy.extent.address, copy.extent.span);
    add(copy.source, copy.source_span);
    std::ranges::sort(copy.all);
    copy.all.erase(std::ranges::unique(copy.all).begin(), copy.all.end());
    ownership_.Add(id, Role::kOtherCopy, copy.space);
  }
  copy.unowned = copy.all.size();
  if (copy.all.empty()) return Move(at, id, copy);
  for (const std::uint64_t page : copy.all) ownership_.Enter(at, id, page);
}

void HostPath::OnCopyOwns(Cycle at, WorkId id, std::uint64_t page) {
  Copy& copy = copies_.at(id);
  if (copy.kind == WorkKind::kCopyToDevice) return SendIfMayBe(at, id, copy, page - copy.first);
  if (copy.kind == WorkKind::kCopyToHost) return BringIfMayBe(at, id, copy, page - copy.first);
  if (--copy.unowned == 0) Move(at, id, copy);
}

void HostPath::Handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kEntered: return Enter(event);
    case EventKind::kRead: return OnRead(event);
    case EventKind::kSendable: return OnFull(event);
    case EventKind::kArrived: return OnArrived(event);
    case EventKind::kBack: return OnBack(event);
    case EventKind::kWritten: return OnWritten(event);
    case EventKind::kMoved: return OnMoved(event);
    case EventKind::kDropped: return OnDropped(event);
    default: return;
  }
}

// ---- from storage to the device

void HostPath::SetOrder(WorkId id, Reading& reading) const {
  if (settings_.order != Order::kRandom && (settings_.order != Order::kRecorded || reading.ranks == nullptr)) return;
  reading.order.resize(reading.pieces);
  std::iota(reading.order.begin(), reading.order.end(), 0);
  if (settings_.order == Order::kRecorded) {
    std::ranges::stable_sort(reading.order, {},
                             [&](std::uint64_t piece) { return reading.RankOf(piece, settings_.read_bytes); });
    return;
  }
  // A shuffle of our own: the standard's is not the same everywhere.
  std::mt19937_64 random(settings_.seed * 0x9e3779b97f4a7c15u + id);
  for (std::size_t i = reading.order.size(); i > 1; --i) std::swap(reading.order[i - 1], reading.order[random() % i]);
}

/// Whose piece is read next; kNoWork: nobody's.
WorkId HostPath::NextReading() {
  const auto may = [&](const auto& entry) {
    const Reading& reading = entry.second;
    return reading.begun && reading.read < reading.pieces &&
           !host_pages_.InTheWay(reading.reuses, reading.NextOnHost(settings_.read_bytes));
  };
  auto chosen = readings_.end();
  if (settings_.order == Order::kInterleaved && last_reading_ != kNoWork) {
    chosen = std::find_if(readings_.upper_bound(last_reading_), readings_.end(), may);
  }
  if (chosen == readings_.end()) chosen = std::ranges::find_if(readings_, may);
  if (chosen == readings_.end()) return kNoWork;
  if (settings_.order == Order::kRecorded) {
    const auto rank = [&](const auto& entry) { return entry.second.RankOf(entry.second.Next(), settings_.read_bytes); };
    for (auto other = std::next(chosen); other != readings_.end(); ++other) {
      if (may(*other) && rank(*other) < rank(*chosen)) chosen = other;
    }
  }
  return chosen->first;
}

void HostPath::ReadNext(Cycle now) {
  if (reads_) return;
  const WorkId id = NextReading();
  if (id == kNoWork) return;
  Reading& reading = readings_.at(id);
  const std::uint64_t piece = reading.Next();
  ++reading.read;
  last_reading_ = id;
  reads_ = true;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(settings_.read_bytes, reading.bytes - piece * settings_.read_bytes);
  agenda_.Add(from_storage_.Send(now, bytes), EventKind::kRead, id, piece);
}

void HostPath::OnRead(const Event& event) {
  reads_ = false;
  Reading& reading = readings_.at(event.work);
  ++reading.done;
  for (const WorkId id : reading.copies) {
    const auto copy = copies_.find(id);
    if (copy != copies_.end() && !copy->second.here.empty()) PutPiece(event.at, id, event.detail);
  }
  if (reading.done == reading.pieces) {
    shares_.Loading(event.at, -1);
    user_.OnWorkDone(event.at, event.work);
    FillRest(event.at, reading);
    readings_.erase(event.work);  // copies that come to the table later find all of it there
  }
  ReadNext(event.at);
}

/// Nothing more is read for its copies: what nobody has written of their sources stays as it is.
void HostPath::FillRest(Cycle at, const Reading& reading) {
  for (const WorkId id : reading.copies) {
    const auto copy = copies_.find(id);
    if (copy == copies_.end()) continue;
    for (std::uint64_t page = 0; page < copy->second.here.size(); ++page) {
      if (!copy->second.here[page] && dat_.Forget(DatPage(id, page))) agenda_.Add(at, EventKind::kSendable, id, page);
    }
  }
}

/// The host writes a piece of the copy's source: the tracker sees which pages are full.
void HostPath::PutPiece(Cycle at, WorkId id, std::uint64_t piece) {
  Copy& copy = copies_.at(id);
  const Extent& extent = copy.extent;
  const std::uint64_t begin =
      ScaleDown(std::min(piece * settings_.read_bytes, extent.bytes), extent.span, extent.bytes);
  const std::uint64_t end =
      ScaleDown(std::min((piece + 1) * settings_.read_bytes, extent.bytes), extent.span, extent.bytes);
  if (begin == end) return;
  const std::uint64_t from = ((extent.address + begin) >> settings_.page_shift) - copy.first;
  const std::uint64_t to = ((extent.address + end - 1) >> settings_.page_shift) - copy.first;
  for (std::uint64_t page = from; page <= to; ++page) {
    const ByteRange part = extent.PartIn(page, settings_.page_shift);
    const auto in_page = [&](std::uint64_t offset) {
      return static_cast<std::uint32_t>(std::clamp(offset, part.begin, part.end) - part.begin);
    };
    const auto written = dat_.Write(DatPage(id, page), in_page(begin), in_page(end));
    counts_.dat_misses += written.miss;
    if (written.full) agenda_.Add(at + (written.miss ? settings_.dat_miss : 0), EventKind::kSendable, id, page);
  }
}

void HostPath::OnFull(const Event& event) {
  Copy& copy = copies_.at(event.work);
  copy.here[event.detail] = true;
  SendIfMayBe(event.at, event.work, copy, event.detail);
}

void HostPath::SendIfMayBe(Cycle at, WorkId id, Copy& copy, std::uint64_t page) {
  if (!copy.here[page]) return;
  if (copy.paged && !ownership_.Owns(id, copy.first + page)) return;
  if (!MayWrite(id, copy, page)) return;
  const Cycle passed = to_device_.Send(at, copy.extent.BytesOf(copy.extent.PartIn(page, settings_.page_shift)));
  agenda_.Add(passed + settings_.dma, EventKind::kArrived, id, page);
}

void HostPath::OnArrived(const Event& event) {
  Copy& copy = copies_.at(event.work);
  ++counts_.pages_in;
  PageDone(event.at, event.work, copy, event.detail);
  Left(event.at, host_pages_.Leave({event.work, event.detail}));
}

/// Whether all earlier copies are done with the page's memory of the host's. If not, the page is looked at again when
/// one of them is.
bool HostPath::MayWrite(WorkId id, const Copy& copy, std::uint64_t page) {
  if (copy.reuses == nullptr) return true;
  const Extent& extent = copy.extent;
  const auto used =
      host_pages_.InTheWay(copy.reuses, extent.OnHost(extent.PartIn(page, settings_.page_shift), extent.span));
  if (used) host_pages_.Wait(*used, {id, page});
  return !used;
}

/// Memory of the host's is not used any more: what has waited for that goes on, and what is read may be put there.
void HostPath::Left(Cycle at, const std::vector<HostPages::Page>& waiting) {
  for (const HostPages::Page& page : waiting) {
    const auto copy = copies_.find(page.user);
    if (copy == copies_.end()) continue;
    if (copy->second.kind == WorkKind::kCopyToDevice) SendIfMayBe(at, page.user, copy->second, page.number);
    else BringIfMayBe(at, page.user, copy->second, page.number);
  }
  ReadNext(at);
}

/// The page has come to where it is copied to.
void HostPath::PageDone(Cycle at, WorkId id, Copy& copy, std::uint64_t page) {
  const bool writes = copy.kind == WorkKind::kCopyToDevice;
  const ByteRange part = copy.extent.PartIn(page, settings_.page_shift);
  user_.OnTransferred(at, id, copy.extent.address + part.begin, part.end - part.begin, writes);
  if (copy.paged) ownership_.Leave(at, id, copy.first + page, writes);
  if (--copy.left != 0) return;
  if (writes) shares_.Loading(at, -1);
  if (copy.paged) ownership_.Forget(id);
  user_.OnWorkDone(at, id);
  copies_.erase(id);
}

// ---- from the device to storage

void HostPath::BringIfMayBe(Cycle at, WorkId id, const Copy& copy, std::uint64_t page) {
  if (!MayWrite(id, copy, page)) return;
  const Cycle passed = to_host_.Send(at, copy.extent.BytesOf(copy.extent.PartIn(page, settings_.page_shift)));
  agenda_.Add(passed + settings_.dma, EventKind::kBack, id, page);
}

void HostPath::OnBack(const Event& event) {
  Copy& copy = copies_.at(event.work);
  ++counts_.pages_out;
  const std::uint64_t bytes = copy.extent.BytesOf(copy.extent.PartIn(event.detail, settings_.page_shift));
  if (writings_.contains(copy.partner))
    agenda_.Add(to_storage_.Send(event.at, bytes), EventKind::kWritten, copy.partner, event.detail);
  PageDone(event.at, event.work, copy, event.detail);
  Left(event.at, host_pages_.Leave({event.work, event.detail}));
}

void HostPath::OnWritten(const Event& event) {
  const auto found = writings_.find(event.work);
  if (found == writings_.end()) return;
  Writing& writing = found->second;
  writing.left -= std::min(writing.left, writing.of.BytesOf(writing.of.PartIn(event.detail, settings_.page_shift)));
  EndIfWritten(event.at, event.work);
  Left(event.at, host_pages_.Leave({event.work, event.detail}));
}

void HostPath::EndIfWritten(Cycle at, WorkId id) {
  const Writing& writing = writings_.at(id);
  if (!writing.begun || writing.left != 0) return;
  user_.OnWorkDone(at, id);
  writings_.erase(id);
}

/// Nothing is copied, read or written any more.
void HostPath::OnDropped(const Event& event) {
  writings_.erase(event.work);
  if (const auto reading = readings_.extract(event.work); !reading.empty()) FillRest(event.at, reading.mapped());
  Left(event.at, host_pages_.LeaveAll(event.work));
}

// ---- on the device

void HostPath::Move(Cycle at, WorkId id, const Copy& copy) {
  mover_free_ = std::max(at, mover_free_) +
                settings_.MoveCycles(copy.kind == WorkKind::kFill ? copy.extent.bytes : 2 * copy.extent.bytes);
  agenda_.Add(mover_free_, EventKind::kMoved, id);
}

void HostPath::OnMoved(const Event& event) {
  const auto copy = copies_.extract(event.work);
  const Copy& moved = copy.mapped();
  if (moved.source_span != 0) user_.OnTransferred(event.at, event.work, moved.source, moved.source_span, false);
  user_.OnTransferred(event.at, event.work, moved.extent.address, moved.extent.span, true);
  const std::uint64_t first = moved.extent.FirstPage(settings_.page_shift);
  const std::uint64_t last = first + moved.extent.Pages(settings_.page_shift) - 1;
  for (const std::uint64_t page : moved.all)
    ownership_.Leave(event.at, event.work, page, page >= first && page <= last);
  if (moved.paged) ownership_.Forget(event.work);
  user_.OnWorkDone(event.at, event.work);
}

}  // namespace gridloom::hardware::crcs
