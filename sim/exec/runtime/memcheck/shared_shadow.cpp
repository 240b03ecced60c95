#include "sim/exec/runtime/memcheck/shared_shadow.h"

#include <algorithm>
#include <bit>

#include "sim/exec/abi.h"
#include "sim/exec/simd.h"

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
  const std::size_t words = (std::size_t{bytes} + 3) / 4;
  if (words > writer_.size()) {
    for (auto* traces : {&writer_, &reader_, &other_reader_}) traces->resize(words, 0);
  }
  identity_mask_ = check_lanes ? kWarpMask | kLaneMask : kWarpMask;
  warps_ = warps;
  epoch_.resize(warps);
  used_.resize(warps);
  least_known_.resize(warps);
  known_.resize(std::size_t{warps} * warps);
  fence_.resize(warps);
  exited_.resize(warps);
  arrived_.clear();
}

void SharedShadow::BeginCta() {
  for (const std::uint32_t word : split_words_) writer_[word] = reader_[word] = other_reader_[word] = 0;
  split_words_.clear();
  split_.clear();
  if (exhausted_ || last_epoch_ > kLastEpoch / 2) {
    for (auto* traces : {&writer_, &reader_, &other_reader_}) std::ranges::fill(*traces, 0);
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

void SharedShadow::Complete(std::uint32_t barrier, std::span<const std::uint32_t> warps) {
  const auto it = arrived_.find(barrier);
  if (it == arrived_.end()) return;
  std::vector<std::uint32_t>& clock = it->second;
  Join(clock.data(), exited_.data(), warps_);
  // Those who waited have done nothing since they arrived: one common epoch for all of them, greater than any they had,
  // keeps clocks level, so that one comparison decides for most accesses.
  std::uint32_t most = 0;
  for (const std::uint32_t warp : warps) most = std::max(most, epoch_[warp]);
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
}

void SharedShadow::Exit(std::uint32_t warp) {
  Join(exited_.data(), Known(warp), warps_);
  exited_[warp] = kLastEpoch;  // whatever it did
}

// ---------------------------------------------------------------------------------------------------------------------
// One word or byte
// ---------------------------------------------------------------------------------------------------------------------

SharedShadow::Trace SharedShadow::TraceOf(std::uint32_t warp, std::uint32_t lane, std::uint32_t line) const {
  if (line >= 1u << kLineBits) line = 0;
  return Trace{epoch_[warp]} << kEpochShift | Trace{warp} << kWarpShift | Trace{lane} << kLaneShift | line;
}

/// An earlier access needs no order, or has it.
bool SharedShadow::Ordered(std::uint32_t warp, Trace trace, Trace mine) const {
  if (((trace ^ mine) & identity_mask_) == 0) return true;
  const auto epoch = static_cast<std::uint32_t>(trace >> kEpochShift);
  if (epoch < first_epoch_ || epoch <= least_known_[warp]) return true;
  const auto other = static_cast<std::uint32_t>((trace & kWarpMask) >> kWarpShift);
  return exhausted_ || other >= warps_ || epoch <= known_[std::size_t{warp} * warps_ + other];
}

bool SharedShadow::Readable(std::uint32_t warp, const Cell& cell, Trace mine) const {
  return cell.writer >> kEpochShift >= first_epoch_ - 1 && Ordered(warp, cell.writer, mine);
}

bool SharedShadow::Writable(std::uint32_t warp, const Cell& cell, Trace mine) const {
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

void SharedShadow::RecordWrite(const Cell& cell, Trace mine) {
  cell.writer = ((cell.writer ^ mine) & ~kLaneMask) == 0 && cell.writer != mine ? mine | kLaneMask : mine;
}

/// Gives the bytes of a word traces of their own.
SharedShadow::ByteTraces& SharedShadow::Split(std::uint32_t word) {
  if (writer_[word] == kSplit) return split_[reader_[word]];
  ByteTraces bytes;
  std::ranges::fill(bytes.writer, writer_[word]);
  std::ranges::fill(bytes.reader, reader_[word]);
  std::ranges::fill(bytes.other_reader, other_reader_[word]);
  writer_[word] = kSplit;
  reader_[word] = split_.size();
  split_words_.push_back(word);
  split_.push_back(bytes);
  return split_.back();
}

void SharedShadow::Name(Trace trace, AccessKind kind, Finding& finding) const {
  finding.kind = MemcheckKind::kRace;
  finding.other_kind = kind;
  finding.other_warp = static_cast<std::uint32_t>((trace & kWarpMask) >> kWarpShift);
  finding.other_lane = static_cast<std::uint32_t>((trace & kLaneMask) >> kLaneShift);
  finding.other_line = static_cast<std::uint32_t>(trace & ((Trace{1} << kLineBits) - 1));
}

bool SharedShadow::CheckCell(const Cell& cell, std::uint32_t warp, AccessKind kind, bool strong, bool silent, Trace mine,
                             Finding& finding) {
  const bool written = cell.writer >> kEpochShift >= first_epoch_ - 1;
  bool found = false;
  if (kind != AccessKind::kWrite && !written) {
    finding.kind = MemcheckKind::kUninitialized;
    found = true;
  }
  if (strong || kind == AccessKind::kAtomic) {
    // Made to be seen by others: takes no part in races, only fills memory.
    if (kind != AccessKind::kRead && !written) cell.writer = Trace{first_epoch_ - 1} << kEpochShift;
    return found;
  }
  if (kind == AccessKind::kRead) {
    if (written && !Ordered(warp, cell.writer, mine)) {
      Name(cell.writer, AccessKind::kWrite, finding);
      found = true;
    }
    RecordRead(cell, mine);
    return found;
  }
  if (silent && written) return false;
  // Lanes of one instruction that write to one place: one of them wins, as the ISA says.
  const bool same_instruction = ((cell.writer ^ mine) & ~kLaneMask) == 0;
  if (!same_instruction && !Ordered(warp, cell.writer, mine)) {
    Name(cell.writer, AccessKind::kWrite, finding);
    found = true;
  } else if (!Ordered(warp, cell.reader, mine)) {
    Name(cell.reader, AccessKind::kRead, finding);
    found = true;
  } else if (!Ordered(warp, cell.other_reader, mine)) {
    Name(cell.other_reader, AccessKind::kRead, finding);
    found = true;
  }
  RecordWrite(cell, mine);
  return found;
}

bool SharedShadow::Lane(std::uint32_t warp, std::uint32_t lane, std::uint32_t line, AccessKind kind, bool strong, bool silent,
                        std::uint32_t offset, std::uint32_t bytes, Finding& finding) {
  used_[warp] = 1;
  const Trace mine = TraceOf(warp, lane, line);
  bool found = false;
  const auto check = [&](const Cell& cell, std::uint32_t at) {
    Finding here;
    here.offset = at;
    if (!CheckCell(cell, warp, kind, strong, silent, mine, here) || found) return;
    finding = here;
    found = true;
  };
  for (std::uint32_t at = offset; at < offset + bytes;) {
    const std::uint32_t word = at / 4, end = std::min(offset + bytes, (word + 1) * 4);
    if (end - at == 4 && writer_[word] != kSplit) {
      check(WordCell(word), at);
      at = end;
      continue;
    }
    ByteTraces& traces = Split(word);
    for (; at < end; ++at) check({traces.writer[at % 4], traces.reader[at % 4], traces.other_reader[at % 4]}, at);
  }
  return found;
}

// ---------------------------------------------------------------------------------------------------------------------
// Whole warps
// ---------------------------------------------------------------------------------------------------------------------

/// Words one after the other, `words_per_lane` for each of `lanes` lanes.
struct ShadowRun {
  std::uint64_t *writer, *reader, *other_reader;
  std::uint32_t words, lane_shift;  ///< words per lane as a power of two
  std::uint64_t mine;               ///< trace of the first lane
  std::uint64_t unwritten_below, ordered_below, identity_mask;
  bool good = false;

  static constexpr std::uint64_t kLane = std::uint64_t{1} << SharedShadow::kLaneShift;
};

namespace {

/// Word i is read or written by a thread that nothing contradicts. Decides on the smallest known epoch: false may be wrong.
GL_INLINE void ReadRunBody(ShadowRun& run) {
  std::uint64_t bad = 0;
  for (std::uint32_t i = 0; i < run.words; ++i) {
    const std::uint64_t mine = run.mine + (i >> run.lane_shift) * ShadowRun::kLane, writer = run.writer[i];
    const std::uint64_t unordered = writer >= run.ordered_below ? (writer ^ mine) & run.identity_mask : 0;
    bad |= unordered | (writer < run.unwritten_below ? 1 : 0);
  }
  run.good = bad == 0;
  if (!run.good) return;
  constexpr std::uint64_t kLanes = 63 * ShadowRun::kLane;
  for (std::uint32_t i = 0; i < run.words; ++i) {
    const std::uint64_t mine = run.mine + (i >> run.lane_shift) * ShadowRun::kLane, before = run.reader[i];
    const std::uint64_t change = before ^ mine;
    constexpr unsigned kWarpShift = std::countr_zero(ShadowRun::kLane) + 6;
    const bool same_epoch = change >> kWarpShift == 0;
    const bool same_warp = (change >> kWarpShift & 511) == 0;
    run.other_reader[i] = same_warp ? run.other_reader[i] : before;
    run.reader[i] = same_epoch && (change & kLanes) != 0 ? mine | kLanes : mine;
  }
}

GL_INLINE void WriteRunBody(ShadowRun& run) {
  std::uint64_t bad = 0;
  for (std::uint32_t i = 0; i < run.words; ++i) {
    const std::uint64_t mine = run.mine + (i >> run.lane_shift) * ShadowRun::kLane;
    const std::uint64_t writer = run.writer[i], reader = run.reader[i], other = run.other_reader[i];
    bad |= (writer >= run.ordered_below ? (writer ^ mine) & run.identity_mask : 0) |
           (reader >= run.ordered_below ? (reader ^ mine) & run.identity_mask : 0) |
           (other >= run.ordered_below ? (other ^ mine) & run.identity_mask : 0);
  }
  run.good = bad == 0;
  if (!run.good) return;
  for (std::uint32_t i = 0; i < run.words; ++i) run.writer[i] = run.mine + (i >> run.lane_shift) * ShadowRun::kLane;
}

GL_INLINE void FindExtentBody(const std::uint64_t* offsets, OffsetExtent& out) {
  std::uint64_t most = 0, bits = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    most = std::max(most, offsets[lane]);
    bits |= offsets[lane];
  }
  out = {most, bits};
}

GL_SIMD_FUNCTION(ReadRun, ReadRunBody, (ShadowRun & run), (run))
GL_SIMD_FUNCTION(WriteRun, WriteRunBody, (ShadowRun & run), (run))

}  // namespace

GL_SIMD_FUNCTION(FindExtent, FindExtentBody, (const std::uint64_t* offsets, OffsetExtent& out), (offsets, out))

namespace {

/// Lanes without a gap, the usual case besides all.
bool IsRunOfLanes(std::uint32_t mask) {
  const std::uint32_t low = mask >> std::countr_zero(mask);
  return mask != 0 && (low & (low + 1)) == 0;
}

}  // namespace

bool SharedShadow::TryRun(const Access& access, std::uint32_t first_word, std::uint32_t first_lane, std::uint32_t lanes) {
  const std::uint32_t words_per_lane = access.what.bytes / 4;
  ShadowRun run{writer_.data() + first_word,
                reader_.data() + first_word,
                other_reader_.data() + first_word,
                lanes * words_per_lane,
                static_cast<std::uint32_t>(std::countr_zero(words_per_lane)),
                TraceOf(access.warp, first_lane, access.line),
                Trace{first_epoch_ - 1} << kEpochShift,
                (Trace{least_known_[access.warp]} + 1) << kEpochShift,
                identity_mask_};
  if (access.what.kind == AccessKind::kRead) ReadRun(run);
  else WriteRun(run);
  if (run.good) used_[access.warp] = 1;
  return run.good;
}

/// Any addresses: all lanes are looked at before anything is recorded.
bool SharedShadow::TryLanes(const Access& access) {
  const std::uint32_t words_per_lane = access.what.bytes / 4;
  const bool read = access.what.kind == AccessKind::kRead;
  const auto for_words = [&](auto visit) {
    for (std::uint32_t mask = access.mask; mask != 0; mask &= mask - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
      const auto first = static_cast<std::uint32_t>(access.offsets[lane] / 4);
      const Trace mine = TraceOf(access.warp, lane, access.line);
      for (std::uint32_t word = first; word < first + words_per_lane; ++word) {
        if (!visit(WordCell(word), mine)) return false;
      }
    }
    return true;
  };
  const bool good = for_words([&](const Cell& cell, Trace mine) {
    if (cell.writer == kSplit) return false;
    return read ? Readable(access.warp, cell, mine) : Writable(access.warp, cell, mine);
  });
  if (!good) return false;
  used_[access.warp] = 1;
  return for_words([&](const Cell& cell, Trace mine) {
    if (read) RecordRead(cell, mine);
    else RecordWrite(cell, mine);
    return true;
  });
}

bool SharedShadow::Try(const Access& access) {
  const SharedAccessImm& what = access.what;
  if (what.bytes < 4 || what.strong || what.kind == AccessKind::kAtomic) return false;
  if (access.warp == kWarpMask >> kWarpShift) return false;  // the last one a cluster can have: its traces look like kSplit
  const auto first_lane = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  const auto lanes = static_cast<std::uint32_t>(std::popcount(access.mask));
  const auto word = [](std::uint64_t offset) { return static_cast<std::uint32_t>(offset / 4); };
  if (what.pattern == SharedAccessImm::kUniform) {
    if (what.kind == AccessKind::kWrite && lanes > 1) return false;
    // Several lanes that wrote and several that read are not the same thread.
    const Trace writer = writer_[word(access.offsets[0])];
    if (lanes > 1 && (writer & kLaneMask) == kLaneMask && writer >> kEpochShift > least_known_[access.warp]) return false;
    return TryRun(access, word(access.offsets[0]), lanes > 1 ? kManyLanes : first_lane, 1);
  }
  if (what.pattern == SharedAccessImm::kConsecutive) {
    if (IsRunOfLanes(access.mask)) return TryRun(access, word(access.offsets[0]) + first_lane * (what.bytes / 4), first_lane, lanes);
    std::uint64_t offsets[kWarpSize];
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) offsets[lane] = access.offsets[0] + lane * what.bytes;
    Access every = access;
    every.offsets = offsets;
    return TryLanes(every);
  }
  // Addresses that turn out to be consecutive.
  if (IsRunOfLanes(access.mask)) {
    std::uint64_t differs = 0;
    for (std::uint32_t lane = first_lane; lane < first_lane + lanes; ++lane)
      differs |= access.offsets[lane] ^ (access.offsets[first_lane] + (lane - first_lane) * what.bytes);
    if (differs == 0) return TryRun(access, word(access.offsets[first_lane]), first_lane, lanes);
  }
  return TryPieces(access);
}

/// Rows of 8 or 16 lanes that are consecutive or all at one place, as in blocks that are narrower than a warp. All are
/// looked at before anything is recorded.
bool SharedShadow::TryPieces(const Access& access) {
  constexpr std::uint32_t kMostPieces = 4;
  if (access.mask != ~0u || (access.what.kind == AccessKind::kWrite && access.offsets[0] == access.offsets[1])) return TryLanes(access);
  struct Piece {
    std::uint32_t first_word, first_lane, lanes;
  };
  Piece pieces[kMostPieces];
  std::uint32_t count = 0;
  const bool uniform = access.offsets[0] == access.offsets[1];
  const std::uint64_t step = uniform ? 0 : access.what.bytes;
  for (std::uint32_t lane = 0; lane < kWarpSize;) {
    std::uint32_t end = lane + 1;
    while (end < kWarpSize && access.offsets[end] == access.offsets[lane] + (end - lane) * step) ++end;
    if (count == kMostPieces) return TryLanes(access);
    pieces[count++] = {static_cast<std::uint32_t>(access.offsets[lane] / 4), lane, end - lane};
    lane = end;
  }
  // Pieces that overlap would meet each other's traces in the middle of the access.
  if (access.what.kind == AccessKind::kWrite) return TryLanes(access);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Piece& piece = pieces[i];
    const std::uint32_t lanes = uniform ? 1 : piece.lanes;
    const std::uint32_t first_lane = uniform && piece.lanes > 1 ? kManyLanes : piece.first_lane;
    const Trace writer = writer_[piece.first_word];
    const bool several = uniform && (writer & kLaneMask) == kLaneMask && writer >> kEpochShift > least_known_[access.warp];
    // A piece that is recorded twice is no harm: reads by the same lanes of the same instruction.
    if (several || !TryRun(access, piece.first_word, first_lane, lanes)) return TryLanes(access);
  }
  return true;
}

}  // namespace gridloom::exec
