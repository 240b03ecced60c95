#include "sim/exec/runtime/memcheck/shared_shadow.h"

#include <algorithm>
#include <bit>

namespace gridloom::exec {

// ---------------------------------------------------------------------------------------------------------------------
// Order
// ---------------------------------------------------------------------------------------------------------------------

namespace {

void Join(std::uint32_t* into, const std::uint32_t* from, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

void SharedShadow::Prepare(std::uint32_t bytes, std::uint32_t warps, bool check_lanes) {
  words_.Resize(bytes);
  size_ = bytes;
  blocks_.assign((std::size_t{bytes} >> kBlockShift) + 1, {});
  identity_mask_ = check_lanes ? kWarpMask | kLaneMask : kWarpMask;
  warps_ = warps;
  epoch_.resize(warps);
  used_.resize(warps);
  least_known_.assign(warps, 0);
  known_.resize(std::size_t{warps} * warps);
  fence_.resize(warps);
  exited_.resize(warps);
  arrived_.clear();
}

void SharedShadow::BeginCta() {
  DropLoggedReads();
  newest_logged_ = 0;
  any_exited_ = false;
  if (exhausted_ || last_epoch_ > kLastEpoch / 2) {
    words_.Clear();
    bytes_.Clear();
    for (Block& block : blocks_)
      block.newest_write = block.newest_read = block.newest_atomic = block.oldest_write = block.words_of = 0;
    last_epoch_ = 0;
    exhausted_ = false;
  }
  first_epoch_ = last_epoch_ = last_epoch_ + 2;
  std::ranges::fill(epoch_, first_epoch_);
  std::ranges::fill(known_, first_epoch_ - 1);
  std::ranges::fill(least_known_, first_epoch_ - 1);
  std::ranges::fill(used_, std::uint8_t{0});
  std::ranges::fill(fence_, first_epoch_ - 1);
  std::ranges::fill(exited_, first_epoch_ - 1);
  for (auto& [barrier, clock] : arrived_) std::ranges::fill(clock, first_epoch_ - 1);
}

void SharedShadow::Fill(std::uint32_t offset, std::uint32_t bytes) {
  if (bytes == 0) return;
  Cells& cells = CellsOf(offset, offset + bytes, 4);
  const auto first = cells.writer.begin() + (offset >> cells.shift);
  std::fill(first, first + (bytes >> cells.shift), Trace{first_epoch_ - 1} << kEpochShift);
  for (Block& block : BlocksOf(offset, offset + bytes)) block.scanned = false;
}

bool SharedShadow::IsWritten(std::uint32_t offset) const {
  const Cells& cells = blocks_[offset >> kBlockShift].in_bytes ? bytes_ : words_;
  return cells.writer[offset >> cells.shift] >> kEpochShift >= first_epoch_ - 1;
}

void SharedShadow::Unwrite(std::uint32_t offset, std::uint32_t bytes) {
  Cells& cells = CellsOf(offset, offset + bytes, bytes);
  const auto first = cells.writer.begin() + (offset >> cells.shift);
  std::fill(first, first + (bytes >> cells.shift), Trace{0});
  for (Block& block : BlocksOf(offset, offset + bytes)) {
    block.oldest_write = block.words_of = 0;
    block.scanned = true;
  }
}

/// The warp begins a new epoch, so that what it does next differs from what it has given to others.
void SharedShadow::Advance(std::uint32_t warp) {
  if (!used_[warp]) return;
  used_[warp] = 0;
  if (epoch_[warp] >= kLastEpoch) {
    exhausted_ = true;
    return;
  }
  last_epoch_ = std::max(last_epoch_, ++epoch_[warp]);
  Known(warp)[warp] = epoch_[warp] - 1;
}

void SharedShadow::Renew(std::uint32_t warp) {
  const std::uint32_t* const known = Known(warp);
  least_known_[warp] = *std::min_element(known, known + warps_);
}

void SharedShadow::OrderWarp(std::uint32_t warp) {
  Advance(warp);
  if (warps_ == 1) Renew(warp);
}

void SharedShadow::OrderCta(std::uint32_t warp) {
  std::uint32_t* const known = Known(warp);
  const std::uint32_t given = Given(warp);
  Join(fence_.data(), known, warps_);
  fence_[warp] = std::max(fence_[warp], given);
  Advance(warp);
  Join(known, fence_.data(), warps_);
  known[warp] = epoch_[warp] - 1;
  Renew(warp);
}

void SharedShadow::Arrive(std::uint32_t barrier, std::uint32_t warp) {
  auto [it, inserted] = arrived_.try_emplace(barrier);
  if (inserted) it->second.assign(warps_, first_epoch_ - 1);
  const std::uint32_t given = Given(warp);
  Join(it->second.data(), Known(warp), warps_);
  it->second[warp] = std::max(it->second[warp], given);
  Advance(warp);
}

void SharedShadow::Complete(std::uint32_t barrier, std::span<const std::uint32_t> warps, bool of_all) {
  const auto it = arrived_.find(barrier);
  if (it == arrived_.end()) return;
  std::vector<std::uint32_t>& clock = it->second;
  if (of_all) Join(clock.data(), exited_.data(), warps_);
  // Those who waited have done nothing since they arrived: one common epoch for all of them, greater than any they had,
  // keeps clocks level, so that one comparison decides for most accesses.
  std::uint32_t most = 0;
  std::uint64_t numbers = 0;
  for (const std::uint32_t warp : warps) {
    most = std::max(most, epoch_[warp]);
    numbers |= std::uint64_t{1} << warp % 64;
  }
  const bool all = warps_ <= 64 && static_cast<std::uint32_t>(std::popcount(numbers)) == warps_;
  if (of_all && all && !any_exited_) {
    // Nobody has done anything in a later epoch, and everybody knows what was done in earlier ones.
    std::ranges::fill(epoch_, most);
    std::ranges::fill(known_, most - 1);
    std::ranges::fill(least_known_, most - 1);
    std::ranges::fill(clock, first_epoch_ - 1);
    if (most > newest_logged_) DropLoggedReads();
    return;
  }
  for (const std::uint32_t warp : warps) {
    clock[warp] = std::max(clock[warp], most - 1);
    epoch_[warp] = most;
  }
  for (const std::uint32_t warp : warps) {
    Join(Known(warp), clock.data(), warps_);
    Known(warp)[warp] = epoch_[warp] - 1;
    Renew(warp);
  }
  std::ranges::fill(clock, first_epoch_ - 1);
  // What every warp knows to be over is nobody's race any more.
  if (*std::ranges::min_element(least_known_) >= newest_logged_) DropLoggedReads();
}

void SharedShadow::Exit(std::uint32_t warp) {
  any_exited_ = true;
  Join(exited_.data(), Known(warp), warps_);
  exited_[warp] = kLastEpoch;  // whatever it did
  least_known_[warp] = kLastEpoch;
}

// ---------------------------------------------------------------------------------------------------------------------
// One word or byte
// ---------------------------------------------------------------------------------------------------------------------

/// An earlier access needs no order, or has it.
bool SharedShadow::Ordered(std::uint32_t warp, Trace trace, Trace mine) const {
  if (((trace ^ mine) & identity_mask_) == 0) return true;
  const auto epoch = static_cast<std::uint32_t>(trace >> kEpochShift);
  if (epoch < first_epoch_ || epoch <= least_known_[warp]) return true;
  const auto other = static_cast<std::uint32_t>((trace & kWarpMask) >> kWarpShift);
  return exhausted_ || other >= warps_ || epoch <= known_[std::size_t{warp} * warps_ + other];
}

bool SharedShadow::Readable(std::uint32_t warp, const Cell& cell, Trace mine) const {
  return cell.writer >> kEpochShift >= first_epoch_ - 1 && Ordered(warp, cell.writer, mine) &&
         Ordered(warp, cell.atomic, mine);
}

bool SharedShadow::Writable(std::uint32_t warp, const Cell& cell, Trace mine) const {
  return Ordered(warp, cell.atomic, mine) && IsOrderedPlain(warp, cell, mine);
}

/// All accesses that are not atomic.
bool SharedShadow::IsOrderedPlain(std::uint32_t warp, const Cell& cell, Trace mine) const {
  return Ordered(warp, cell.writer, mine) && Ordered(warp, cell.reader, mine) && Ordered(warp, cell.other_reader, mine);
}

/// Two readers are kept, of different warps: whoever writes is none of at least one of them.
void SharedShadow::RecordRead(const Cell& cell, Trace mine) {
  const Trace before = cell.reader;
  if ((before ^ mine) >> kWarpShift == 0) {
    cell.reader = ((before ^ mine) & kLaneMask) != 0 ? mine | kLaneMask : mine;
    return;
  }
  if (((before ^ mine) & kWarpMask) != 0) cell.other_reader = before;
  cell.reader = mine;
}

namespace {

/// What is left of a trace when `mine` comes after it: several lanes of one instruction become one trace.
template <typename Trace>
Trace Merged(Trace before, Trace mine, Trace lanes) {
  return ((before ^ mine) & ~lanes) == 0 && before != mine ? mine | lanes : mine;
}

}  // namespace

void SharedShadow::RecordWrite(const Cell& cell, Trace mine) {
  cell.writer = Merged(cell.writer, mine, Trace{kLaneMask});
}
void SharedShadow::RecordAtomic(const Cell& cell, Trace mine) {
  cell.atomic = Merged(cell.atomic, mine, Trace{kLaneMask});
}

void SharedShadow::Cells::Resize(std::size_t bytes) {
  const std::size_t cells = (bytes + (std::size_t{1} << shift) - 1) >> shift;
  if (cells <= writer.size()) return;
  for (auto* traces : {&writer, &reader, &other_reader, &atomic}) traces->resize(cells, 0);
}

void SharedShadow::Cells::Clear() {
  for (auto* traces : {&writer, &reader, &other_reader, &atomic}) std::ranges::fill(*traces, 0);
}

/// From now on the block is known by bytes. It stays so until the next grid: a kernel whose CTAs touch bytes somewhere
/// does it in all of them.
void SharedShadow::Refine(std::size_t block) {
  if (blocks_[block].in_bytes) return;
  blocks_[block].in_bytes = true;
  bytes_.Resize(words_.writer.size() * 4);
  const auto spread = [&](const std::vector<Trace>& from, std::vector<Trace>& to) {
    const std::size_t end = std::min((block + 1) << kBlockShift, to.size());
    for (std::size_t at = block << kBlockShift; at < end; ++at) to[at] = from[at / 4];
  };
  spread(words_.writer, bytes_.writer);
  spread(words_.reader, bytes_.reader);
  spread(words_.other_reader, bytes_.other_reader);
  spread(words_.atomic, bytes_.atomic);
}

/// The cells in which an access of `bytes` a lane to [first, end) is to be looked at.
SharedShadow::Cells& SharedShadow::CellsOf(std::uint64_t first, std::uint64_t end, std::uint32_t bytes) {
  bool by_bytes = (first | bytes) % 4 != 0;
  for (const Block& block : BlocksOf(first, end)) by_bytes |= block.in_bytes;
  if (!by_bytes) return words_;
  for (Block& block : BlocksOf(first, end)) Refine(static_cast<std::size_t>(&block - blocks_.data()));
  return bytes_;
}

void SharedShadow::MarkAtomic(std::uint64_t first, std::uint64_t end, std::uint32_t warp) {
  used_[warp] = 1;
  for (Block& block : BlocksOf(first, end)) block.newest_atomic = std::max(block.newest_atomic, epoch_[warp]);
}

void SharedShadow::Name(Trace trace, AccessKind kind, Finding& finding) const {
  finding.kind = MemcheckKind::kRace;
  finding.other_kind = kind;
  finding.other_warp = static_cast<std::uint32_t>((trace & kWarpMask) >> kWarpShift);
  finding.other_lane = static_cast<std::uint32_t>((trace & kLaneMask) >> kLaneShift);
  finding.other_line = static_cast<std::uint32_t>(trace & ((Trace{1} << kLineBits) - 1));
}

/// Whether an earlier access of that kind is unordered; `finding` is about it then.
bool SharedShadow::Conflicts(std::uint32_t warp, Trace before, AccessKind kind, Trace mine, Finding& finding) const {
  if (Ordered(warp, before, mine)) return false;
  Name(before, kind, finding);
  return true;
}

bool SharedShadow::CheckCell(const Cell& cell, std::uint32_t warp, AccessKind kind, bool strong, bool silent,
                             Trace mine, Finding& finding) {
  const bool written = cell.writer >> kEpochShift >= first_epoch_ - 1;
  const auto reads_conflict = [&] {
    return Conflicts(warp, cell.reader, AccessKind::kRead, mine, finding) ||
           Conflicts(warp, cell.other_reader, AccessKind::kRead, mine, finding);
  };
  bool found = false;
  if (kind != AccessKind::kWrite && !written) {
    finding.kind = MemcheckKind::kUninitialized;
    found = true;
  }
  if (strong || kind == AccessKind::kAtomic) {
    // Made to be seen by others of their sort: only with other accesses atomic ones can be a race.
    if (!strong) {
      found = found || (written && Conflicts(warp, cell.writer, AccessKind::kWrite, mine, finding)) || reads_conflict();
      RecordAtomic(cell, mine);
    }
    if (kind != AccessKind::kRead && !written) cell.writer = Trace{first_epoch_ - 1} << kEpochShift;
    return found;
  }
  if (kind == AccessKind::kRead) {
    found = found || Conflicts(warp, cell.writer, AccessKind::kWrite, mine, finding) ||
            Conflicts(warp, cell.atomic, AccessKind::kAtomic, mine, finding);
    RecordRead(cell, mine);
    return found;
  }
  if (silent && written) return false;
  // Lanes of one instruction that write to one place: one of them wins, as the ISA says.
  const bool same_instruction = ((cell.writer ^ mine) & ~kLaneMask) == 0;
  found = (!same_instruction && Conflicts(warp, cell.writer, AccessKind::kWrite, mine, finding)) || reads_conflict() ||
          Conflicts(warp, cell.atomic, AccessKind::kAtomic, mine, finding);
  RecordWrite(cell, mine);
  return found;
}

bool SharedShadow::Lane(std::uint32_t warp, std::uint32_t lane, std::uint32_t line, AccessKind kind, bool strong,
                        bool silent, std::uint32_t offset, std::uint32_t bytes, Finding& finding) {
  RecordLoggedReads();
  used_[warp] = 1;
  if (strong || kind == AccessKind::kAtomic) {
    for (Block& block : BlocksOf(offset, offset + bytes))
      block.scanned = false;  // a write of what nobody has written yet is noted
    if (!strong) MarkAtomic(offset, offset + bytes, warp);
  } else {
    Mark(offset, offset + bytes, warp, kind == AccessKind::kWrite);
  }
  const Trace mine = TraceOf(warp, lane, line);
  bool found = false;
  const auto check = [&](const Cell& cell, std::uint32_t at) {
    Finding here;
    here.offset = at;
    if (!CheckCell(cell, warp, kind, strong, silent, mine, here) || found) return;
    finding = here;
    found = true;
  };
  Cells& cells = CellsOf(offset, offset + bytes, bytes);
  for (std::uint32_t at = offset; at < offset + bytes; at += 1u << cells.shift) check(cells.At(at), at);
  return found;
}

}  // namespace gridloom::exec
