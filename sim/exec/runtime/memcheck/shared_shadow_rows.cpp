// The shadow of shared memory, a warp at a time. Lanes that stand in rows are looked at with vector instructions, eight
// cells at once; others one by one, before anything is recorded.
#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/exec/contract/abi.h"
#include "sim/exec/runtime/memcheck/shared_shadow.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {

/// Neighbouring cells that a row of lanes touches.
struct CellRun {
  using Trace = SharedShadow::Trace;
  static constexpr unsigned kLaneShift = SharedShadow::kLineBits, kWarpShift = SharedShadow::kWarpShift;
  static constexpr Trace kLanes = SharedShadow::kLaneMask, kWarps = SharedShadow::kWarpMask;
  /// A lane that no trace has: several lanes that read are not the same thread as several that wrote before.
  static constexpr Trace kNoLane = Trace{32} << kLaneShift;

  Trace *writer, *reader, *other_reader;
  std::uint32_t cells;
  unsigned lane_shift;                   ///< cells of a lane, as a power of two
  std::uint32_t lanes;                   ///< which are on
  bool same, gaps;                       ///< all lanes are at one place; some between the first and the last are off
  Trace mine;                            ///< of the first lane
  Trace several;                         ///< what makes `mine` the trace of several lanes
  Trace unwritten_below, ordered_below;  ///< a writer is one; an earlier access needs no look
  Trace identity_mask;                   ///< what tells two threads apart that need order between them
  bool good;
};

namespace {

constexpr std::uint32_t kChunk = 8;
typedef std::uint64_t Chunk __attribute__((vector_size(64)));
constexpr Chunk kSteps = {0, 1, 2, 3, 4, 5, 6, 7};

GL_INLINE std::uint64_t Any(const Chunk& bad) {
  std::uint64_t words[kChunk], any = 0;
  std::memcpy(words, &bad, sizeof words);
  for (const std::uint64_t word : words) any |= word;
  return any;
}

template <typename T>
GL_INLINE void Load(const std::uint64_t* from, T& to) {
  std::memcpy(&to, from, sizeof to);
}
template <typename T>
GL_INLINE void Store(std::uint64_t* to, const T& from) {
  std::memcpy(to, &from, sizeof from);
}

/// Calls visit(writer, reader, other_reader, lanes) for the cells of a run, eight at a time and what is left one by
/// one: where their traces begin and, as a Chunk or a word, which lanes they belong to, counted from the run's first
/// one.
template <typename Visit>
GL_INLINE void ForRun(const CellRun& run, Visit visit) {
  std::uint32_t at = 0;
  for (; at + kChunk <= run.cells; at += kChunk) {
    const Chunk lanes = run.same ? Chunk{} : (kSteps + std::uint64_t{at}) >> std::uint64_t{run.lane_shift};
    visit(run.writer + at, run.reader + at, run.other_reader + at, lanes);
  }
  for (; at < run.cells; ++at) {
    const std::uint64_t lane = run.same ? 0 : at >> run.lane_shift;
    visit(run.writer + at, run.reader + at, run.other_reader + at, lane);
  }
}

/// All bits where a cell's lane is on. For a word or a chunk of words.
template <typename T>
GL_INLINE void OnOf(const CellRun& run, const T& lanes, T& on) {
  on = run.gaps && !run.same ? T{} - (((T{} + std::uint64_t{run.lanes}) >> lanes) & std::uint64_t{1})
                             : T{} - std::uint64_t{1};
}

GL_INLINE void MarkUnordered(const CellRun& run, const Chunk& trace, const Chunk& mine, Chunk& bad) {
  bad |= trace >= run.ordered_below ? (trace ^ mine) & run.identity_mask : Chunk{};
}
GL_INLINE void MarkUnordered(const CellRun& run, const std::uint64_t& trace, const std::uint64_t& mine,
                             std::uint64_t& bad) {
  bad |= trace >= run.ordered_below ? (trace ^ mine) & run.identity_mask : 0;
}

/// Cells are read or written by threads that nothing contradicts. Decides on the smallest known epoch: false may be
/// wrong.
template <bool write>
GL_INLINE void CheckRun(CellRun& run) {
  Chunk bad_chunk = {};
  std::uint64_t bad_word = 0;
  const auto note = [&](const auto& bad) __attribute__((always_inline)) {
    if constexpr (sizeof bad == sizeof(Chunk)) bad_chunk |= bad;
    else bad_word |= bad;
  };
  const auto look = [&](const auto* writer, [[maybe_unused]] const auto* reader,
                        [[maybe_unused]] const auto* other_reader, const auto& lanes) __attribute__((always_inline)) {
    using T = std::remove_cvref_t<decltype(lanes)>;
    const T mine = (lanes << CellRun::kLaneShift) + run.mine;
    T on, trace, bad = {};
    OnOf(run, lanes, on);
    Load(writer, trace);
    MarkUnordered(run, trace, mine, bad);
    if constexpr (write) {
      Load(reader, trace);
      MarkUnordered(run, trace, mine, bad);
      Load(other_reader, trace);
      MarkUnordered(run, trace, mine, bad);
    } else {
      bad |= trace < run.unwritten_below ? T{} + std::uint64_t{1} : T{};
    }
    note(T(bad & on));
  };
  ForRun(run, look);
  run.good = (Any(bad_chunk) | bad_word) == 0;
}

GL_INLINE void RecordReadRunBody(const CellRun& run) {
  const auto record = [&](const auto*, auto* reader, auto* other_reader, const auto& lanes)
      __attribute__((always_inline)) {
    using T = std::remove_cvref_t<decltype(lanes)>;
    const T mine = ((lanes << CellRun::kLaneShift) + run.mine) | run.several;
    T on, before, other;
    OnOf(run, lanes, on);
    Load(reader, before);
    Load(other_reader, other);
    const T change = before ^ mine;
    // As RecordRead: several lanes of an epoch become one trace; of two warps both are kept.
    const T shared = change < (CellRun::Trace{1} << CellRun::kWarpShift) ? change & CellRun::kLanes : T{};
    const T now = shared != 0 ? mine | CellRun::kLanes : mine;
    const T second = (change & CellRun::kWarps) != 0 ? before : other;
    Store(reader, T((now & on) | (before & ~on)));
    Store(other_reader, T((second & on) | (other & ~on)));
  };
  ForRun(run, record);
}

GL_INLINE void RecordWriteRunBody(const CellRun& run) {
  const auto record = [&](auto* writer, const auto*, const auto*, const auto& lanes) __attribute__((always_inline)) {
    using T = std::remove_cvref_t<decltype(lanes)>;
    T on, before;
    OnOf(run, lanes, on);
    Load(writer, before);
    Store(writer, T((((lanes << CellRun::kLaneShift) + run.mine) & on) | (before & ~on)));
  };
  ForRun(run, record);
}

GL_SIMD_FUNCTION(CheckReadRun, CheckRun<false>, (CellRun & run), (run))
GL_SIMD_FUNCTION(CheckWriteRun, CheckRun<true>, (CellRun & run), (run))
GL_SIMD_FUNCTION(RecordReadRun, RecordReadRunBody, (const CellRun& run), (run))
GL_SIMD_FUNCTION(RecordWriteRun, RecordWriteRunBody, (const CellRun& run), (run))

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------------------------------------------------

namespace {

/// Where the first lane of each group of kShortest is, or would be, if its lanes stand `step` apart; whether all do.
GL_INLINE bool StandApart(const std::uint64_t* offsets, std::uint32_t mask, std::uint64_t step,
                          std::uint64_t (&first)[LanePlaces::kMostRows]) {
  std::uint64_t differs = 0;
  for (std::uint32_t group = 0; group < LanePlaces::kMostRows; ++group) {
    const std::uint32_t begin = group * LanePlaces::kShortest, on = mask >> begin & ((1u << LanePlaces::kShortest) - 1);
    const auto lead = static_cast<std::uint32_t>(std::countr_zero(on | 1u << (LanePlaces::kShortest - 1)));
    first[group] = offsets[begin + lead] - lead * step;
    for (std::uint32_t i = 0; i < LanePlaces::kShortest; ++i)
      differs |= (offsets[begin + i] - first[group] - i * step) & -std::uint64_t{on >> i & 1};
  }
  return differs == 0;
}

GL_INLINE void ScanOffsetsBody(const std::uint64_t* offsets, std::uint32_t mask, std::uint32_t bytes, LanePlaces& out) {
  std::uint64_t least = ~std::uint64_t{0}, most = 0, bits = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t on = -std::uint64_t{mask >> lane & 1}, offset = offsets[lane] & on;
    least = std::min(least, offset | ~on);
    most = std::max(most, offset);
    bits |= offset;
  }
  out.least = least;
  out.most = most;
  out.bits = bits;
  out.same = false;
  out.row_lanes = 0;
  if (StandApart(offsets, mask, bytes, out.first)) out.row_lanes = LanePlaces::kShortest;
  else if (StandApart(offsets, mask, 0, out.first)) out.row_lanes = LanePlaces::kShortest, out.same = true;
}

}  // namespace

GL_SIMD_FUNCTION(ScanOffsets, ScanOffsetsBody,
                 (const std::uint64_t* offsets, std::uint32_t mask, std::uint32_t bytes, LanePlaces& out),
                 (offsets, mask, bytes, out))

namespace {

GL_INLINE void FindLeastBody(const std::uint64_t* begin, const std::uint64_t* end, std::uint64_t& least) {
  least = ~std::uint64_t{0};
  for (; begin != end; ++begin) least = std::min(least, *begin);
}
GL_SIMD_FUNCTION(FindLeast, FindLeastBody, (const std::uint64_t* begin, const std::uint64_t* end, std::uint64_t& least),
                 (begin, end, least))

}  // namespace

/// Every cell of the block has been written in this CTA. A scan is good until the next write, which may have filled a
/// gap.
inline bool SharedShadow::AllWritten(Block& block) {
  return block.oldest_write >= first_epoch_ - 1 || (!block.scanned && Scan(block));
}

bool SharedShadow::Scan(Block& block) {
  block.scanned = true;
  const auto index = static_cast<std::size_t>(&block - blocks_.data());
  const Cells& cells = block.in_bytes ? bytes_ : words_;
  const std::size_t begin = index << kBlockShift >> cells.shift;
  const std::size_t end =
      (std::min<std::size_t>((index + 1) << kBlockShift, size_) + (1u << cells.shift) - 1) >> cells.shift;
  Trace least = 0;
  FindLeast(cells.writer.data() + begin, cells.writer.data() + end, least);
  block.oldest_write = static_cast<std::uint32_t>(least >> kEpochShift);
  if (block.oldest_write >= first_epoch_ - 1) return true;
  block.words_of = first_epoch_;
  block.written_words = 0;
  const Trace unwritten_below = Trace{first_epoch_ - 1} << kEpochShift;
  for (std::size_t at = begin; at < end && !block.in_bytes; ++at)
    block.written_words |= std::uint64_t{cells.writer[at] >= unwritten_below} << (at - begin);
  return false;
}

/// What the lanes touch has been written, word by word. Of blocks whose cells are words.
bool SharedShadow::AreWritten(const Access& access) {
  const std::uint32_t bytes = access.what.bytes;
  bool all = true;
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const auto first = static_cast<std::uint32_t>(access.offsets[lane]);
    for (std::uint32_t at = first; at < first + bytes; at += 4) {
      const Block& block = blocks_[at >> kBlockShift];
      all &= block.oldest_write >= first_epoch_ - 1 ||
             (block.words_of == first_epoch_ && (block.written_words >> (at >> 2 & 63) & 1) != 0);
    }
  }
  return all;
}

bool SharedShadow::Row::Append(const Row& next) {
  if (same) {
    if (next.first != first) return false;
    lanes |= 3;  // more than one
    return true;
  }
  const auto count = static_cast<std::uint32_t>(std::bit_width(lanes));
  if (next.first != end || next.mine - mine != Trace{count} << kLaneShift) return false;
  lanes |= next.lanes << count;
  end = next.end;
  return true;
}

/// Writes at most LanePlaces::kMostRows rows to `out` and returns how many. Rows that go on from one to the next become
/// one.
inline std::uint32_t SharedShadow::RowsOf(const Access& access, Row* out) const {
  std::uint32_t count = 0;
  const std::uint32_t length = access.places.row_lanes, bytes = access.what.bytes,
                      step = access.places.same ? 0 : bytes;
  const Trace lane_zero = TraceOf(access.warp, 0, access.line);
  for (std::uint32_t begin = 0, number = 0; begin < kWarpSize; begin += length, ++number) {
    const std::uint32_t on = access.mask >> begin & (~0u >> (kWarpSize - length));
    if (on == 0) continue;
    const auto first = static_cast<std::uint32_t>(std::countr_zero(on)),
               last = 31u - static_cast<std::uint32_t>(std::countl_zero(on));
    const auto base = static_cast<std::uint32_t>(access.places.first[number]);
    Row& row = out[count];
    row.first = base + first * step;
    row.end = base + last * step + bytes;
    row.mine = lane_zero | Trace{begin + first} << kLaneShift;
    row.lanes = on >> first;
    row.bytes = access.what.bytes;
    row.same = access.places.same;
    if (count == 0 || !out[count - 1].Append(row)) ++count;
  }
  return count;
}

CellRun SharedShadow::RunOf(const Row& row, std::uint32_t warp) {
  Cells& cells = CellsOf(row.first, row.end, row.bytes);
  const std::size_t at = row.first >> cells.shift;
  CellRun run;
  run.writer = cells.writer.data() + at;
  run.reader = cells.reader.data() + at;
  run.other_reader = cells.other_reader.data() + at;
  run.cells = (row.end - row.first) >> cells.shift;
  run.lane_shift = static_cast<unsigned>(std::countr_zero(unsigned{row.bytes})) - cells.shift;
  run.lanes = row.lanes;
  run.same = row.same;
  run.gaps = row.gaps();
  run.mine = row.several() ? (row.mine & ~kLaneMask) | CellRun::kNoLane : row.mine;
  run.several = row.several() ? kLaneMask : 0;
  run.unwritten_below = Trace{first_epoch_ - 1} << kEpochShift;
  run.ordered_below = (Trace{least_known_[warp]} + 1) << kEpochShift;
  run.identity_mask = identity_mask_;
  run.good = false;
  return run;
}

/// Brings the cells' readers up to date. Whoever reads or changes them does this first.
void SharedShadow::RecordLoggedReads() {
  for (std::size_t i = 0; i < logged_count_; ++i) {
    const Row& row = logged_[i];
    if (row.lanes != 0) RecordReadRun(RunOf(row, 0));
    else if (row.bytes == kReadGroup) RecordGroup(groups_[row.first]);
    else RecordScattered(scattered_[row.first]);
  }
  DropLoggedReads();
}

void SharedShadow::MakeRoomInLog() {
  if (logged_.size() - logged_count_ >= LanePlaces::kMostRows) return;
  constexpr std::size_t kFirst = 256;
  if (logged_.size() < kMostReads) logged_.resize(std::max(kFirst, logged_.size() * 2));
  else RecordLoggedReads();
}

void SharedShadow::RecordGroup(const LoggedGroup& logged) {
  const ReadGroup& group = *logged.group;
  for (std::uint32_t i = 0; i < group.read_count; ++i) {
    const ReadGroup::Read& read = group.reads()[i];
    const ReadGroup::Family& family = group.families()[read.family];
    const bool same = family.what.pattern == SharedAccessImm::kUniform;
    const std::uint32_t lanes = family.what.row_lanes, span = same ? family.what.bytes : lanes * family.what.bytes;
    Trace mine = logged.mine | (read.line < 1u << kLineBits ? read.line : 0);
    for (std::uint32_t row = 0; row < family.rows; ++row, mine += Trace{lanes} << kLaneShift) {
      const std::uint32_t first = logged.bases[family.first_base + row] + static_cast<std::uint32_t>(read.offset);
      RecordReadRun(RunOf({first, first + span, mine, ~0u >> (kWarpSize - lanes), family.what.bytes, same}, 0));
    }
  }
}

bool SharedShadow::TryReads(std::uint32_t warp, const ReadGroup& group, const std::uint64_t* bases) {
  constexpr std::size_t kMostGroups = 4096;
  const std::uint32_t known = least_known_[warp], epoch = epoch_[warp];
  for (std::uint32_t number = 0; number < group.family_count; ++number) {
    const ReadGroup::Family& family = group.families()[number];
    const auto span = static_cast<std::uint64_t>(std::int64_t{family.end} - family.least);
    std::uint64_t before = ~std::uint64_t{0};
    for (std::uint32_t row = 0; row < family.rows; ++row) {
      const std::uint64_t first =
          bases[family.first_base + row] + static_cast<std::uint64_t>(std::int64_t{family.least});
      if (first == before) continue;
      before = first;
      if (first >= size_ || span > size_ - first || (first & (family.what.bytes - 1u)) != 0) return false;
      for (Block& block : BlocksOf(first, first + span)) {
        if (block.newest_write > known || block.newest_atomic > known || !AllWritten(block)) return false;
        block.newest_read = std::max(block.newest_read, epoch);  // too much is no harm: then cells are looked at
      }
    }
  }
  MakeRoomInLog();
  if (group_count_ == kMostGroups) RecordLoggedReads();
  if (group_count_ == groups_.size()) groups_.resize(std::max<std::size_t>(64, groups_.size() * 2));
  LoggedGroup& logged = groups_[group_count_];
  logged.group = &group;
  logged.mine = TraceOf(warp, 0, 0);
  for (std::uint32_t number = 0; number < group.family_count; ++number) {
    const ReadGroup::Family& family = group.families()[number];
    for (std::uint32_t base = family.first_base; base < family.first_base + family.rows; ++base)
      logged.bases[base] = static_cast<std::uint32_t>(bases[base]);
  }
  Row& row = logged_[logged_count_++];
  row = {};
  row.first = static_cast<std::uint32_t>(group_count_++);
  row.bytes = kReadGroup;
  newest_logged_ = std::max(newest_logged_, epoch);
  used_[warp] = 1;
  return true;
}

bool SharedShadow::TryRead(const Access& access) {
  MakeRoomInLog();
  Row* const rows = logged_.data() + logged_count_;
  const std::uint32_t count = RowsOf(access, rows), known = least_known_[access.warp];
  const std::uint32_t epoch = epoch_[access.warp];
  for (const Row* row = rows; row != rows + count; ++row) {
    bool good = true, atomics = false;
    for (Block& block : BlocksOf(row->first, row->end)) {
      good &= block.newest_write <= known && AllWritten(block);
      atomics |= block.newest_atomic > known;
      block.newest_read = std::max(block.newest_read, epoch);  // also when it is not good: then every lane is recorded
    }
    if (atomics) return false;  // lane by lane
    if (good) continue;
    CellRun run = RunOf(*row, access.warp);
    CheckReadRun(run);
    if (!run.good) return false;
  }
  used_[access.warp] = 1;
  logged_count_ += count;
  newest_logged_ = std::max(newest_logged_, epoch);
  return true;
}

bool SharedShadow::TryWrite(const Access& access) {
  Row rows[LanePlaces::kMostRows];
  const std::uint32_t count = RowsOf(access, rows), known = least_known_[access.warp];
  bool good = true;
  for (const Row* row = rows; row != rows + count; ++row) {
    // Which of several lanes wins is for the caller to see; one row would meet the traces of the other.
    if (row->several()) return false;
    for (const Row* other = rows; other != row; ++other)
      if (row->first < other->end && other->first < row->end) return false;
    for (const Block& block : BlocksOf(row->first, row->end)) {
      if (block.newest_atomic > known) return false;  // lane by lane
      good &= block.newest_write <= known && block.newest_read <= known;
    }
  }
  if (!good) RecordLoggedReads();
  CellRun runs[LanePlaces::kMostRows];
  for (std::uint32_t i = 0; i < count; ++i) {
    runs[i] = RunOf(rows[i], access.warp);
    if (good) continue;
    CheckWriteRun(runs[i]);
    if (!runs[i].good) return false;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    RecordWriteRun(runs[i]);
    Mark(rows[i].first, rows[i].end, access.warp, true);
  }
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------
// Any lanes
// ---------------------------------------------------------------------------------------------------------------------

/// Calls visit(cell, trace) for each cell of each lane, until one gives false.
template <typename Visit>
bool SharedShadow::ForCells(const Access& access, Visit visit) {
  const std::uint32_t bytes = access.what.bytes;
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const Trace mine = TraceOf(access.warp, lane, access.line);
    const auto offset = static_cast<std::uint32_t>(access.OffsetOf(lane));
    Cells& cells = CellsOf(offset, offset + bytes, bytes);
    for (std::uint32_t at = offset; at < offset + bytes; at += 1u << cells.shift)
      if (!visit(cells.At(at), mine)) return false;
  }
  return true;
}

void SharedShadow::RecordScattered(const ScatteredRead& read) {
  for (std::uint32_t left = read.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint32_t offset = read.offsets[lane];
    Cells& cells = CellsOf(offset, offset + read.bytes, read.bytes);
    for (std::uint32_t at = offset; at < offset + read.bytes; at += 1u << cells.shift)
      RecordRead(cells.At(at), read.mine | Trace{lane} << kLaneShift);
  }
}

/// A read of what was written before the last barrier, in blocks that have not been since: lanes stand where they may,
/// and it is only logged.
bool SharedShadow::TryScatteredRead(const Access& access) {
  constexpr std::size_t kMostBlocks = 64, kMostScattered = 4096;
  if (!access.offsets || access.places.least > access.places.most) return false;
  const std::span<Block> blocks = BlocksOf(access.places.least, access.places.most + access.what.bytes);
  if (blocks.size() > kMostBlocks) return false;
  const std::uint32_t known = least_known_[access.warp], epoch = epoch_[access.warp];
  bool all_written = true, in_bytes = false;
  for (Block& block : blocks) {
    if (block.newest_write > known || block.newest_atomic > known) return false;
    all_written &= AllWritten(block);
    in_bytes |= block.in_bytes;
  }
  // Between rows there may be words that nobody writes.
  if (!all_written && (in_bytes || !AreWritten(access))) return false;
  MakeRoomInLog();
  if (scattered_count_ == kMostScattered) RecordLoggedReads();
  if (scattered_count_ == scattered_.size()) scattered_.resize(std::max<std::size_t>(64, scattered_.size() * 2));
  for (Block& block : blocks) block.newest_read = std::max(block.newest_read, epoch);
  ScatteredRead& read = scattered_[scattered_count_];
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    read.offsets[lane] = static_cast<std::uint32_t>(access.offsets[lane]);
  read.mask = access.mask;
  read.bytes = access.what.bytes;
  read.mine = TraceOf(access.warp, 0, access.line);
  Row& row = logged_[logged_count_++];
  row = {};
  row.first = static_cast<std::uint32_t>(scattered_count_++);
  row.bytes = kScatteredRead;
  newest_logged_ = std::max(newest_logged_, epoch);
  used_[access.warp] = 1;
  return true;
}

bool SharedShadow::TryLanes(const Access& access) {
  const bool read = access.what.kind == AccessKind::kRead;
  if (read && TryScatteredRead(access)) return true;
  RecordLoggedReads();
  const auto is_good = [&](const Cell& cell, Trace mine) {
    return read ? Readable(access.warp, cell, mine) : Writable(access.warp, cell, mine);
  };
  const auto record = [&](const Cell& cell, Trace mine) {
    if (read) RecordRead(cell, mine);
    else RecordWrite(cell, mine);
    return true;
  };
  if (!ForCells(access, is_good)) return false;
  ForCells(access, record);
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const std::uint64_t offset = access.OffsetOf(static_cast<std::uint32_t>(std::countr_zero(left)));
    Mark(offset, offset + access.what.bytes, access.warp, !read);
  }
  return true;
}

/// Accesses that take no part in races, of places that have been written: nothing to record.
bool SharedShadow::TryStrong(const Access& access) {
  bool all_written = access.places.least <= access.places.most;
  if (all_written)
    for (Block& block : BlocksOf(access.places.least, access.places.most + access.what.bytes))
      all_written &= AllWritten(block);
  const Trace unwritten_below = Trace{first_epoch_ - 1} << kEpochShift;
  return all_written || ForCells(access, [&](const Cell& cell, Trace) { return cell.writer >= unwritten_below; });
}

bool SharedShadow::TryAtomic(const Access& access) {
  if (access.places.least > access.places.most) return true;
  const std::uint64_t first = access.places.least, end = access.places.most + access.what.bytes;
  const std::uint32_t known = least_known_[access.warp];
  bool good = true;
  for (Block& block : BlocksOf(first, end))
    good &= block.newest_write <= known && block.newest_read <= known && AllWritten(block);
  if (!good) {
    RecordLoggedReads();
    const Trace unwritten_below = Trace{first_epoch_ - 1} << kEpochShift;
    const auto is_good = [&](const Cell& cell, Trace mine) {
      return cell.writer >= unwritten_below && IsOrderedPlain(access.warp, cell, mine);
    };
    if (!ForCells(access, is_good)) return false;
  }
  ForCells(access, [&](const Cell& cell, Trace mine) {
    RecordAtomic(cell, mine);
    return true;
  });
  MarkAtomic(first, end, access.warp);
  return true;
}

bool SharedShadow::Try(const Access& access) {
  if (access.what.kind == AccessKind::kAtomic && !access.what.strong) return TryAtomic(access);
  if (access.what.strong || access.what.kind == AccessKind::kAtomic) return TryStrong(access);
  const bool write = access.what.kind == AccessKind::kWrite;
  if (access.places.row_lanes != 0) {
    if (write ? TryWrite(access) : TryRead(access)) return true;
    if (write && access.places.same && access.places.least == access.places.most) return false;
  }
  return TryLanes(access);
}

}  // namespace gridloom::exec
