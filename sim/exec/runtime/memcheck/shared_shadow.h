// What memcheck knows about the shared memory of a CTA (or of all CTAs of a cluster): for every word, or byte, who
// wrote it last and who read it, and for every warp which accesses of the others come before what it does next.
//
// Memory is known in *cells*: words, and in blocks where anything smaller than a word has been touched, bytes. What is
// known of a whole block decides about most accesses: everything in it was written before, and nothing since the last
// barrier. Reads are only logged: who read a cell matters when it is written, and a barrier of all warps ends that.
//
// Order is kept as vector clocks of warps. A warp's *epoch* counts what it gave to others (barrier arrivals, fences);
// known(w, v) is the last epoch of v whose accesses are ordered before w's next one. Lanes of one warp are ordered by
// OrderWarp. Epochs go on from CTA to CTA, so that nothing has to be cleared between them: what is older than the CTA's
// first epoch counts as never written. docs/memcheck.md says what counts as order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/read_group.h"
#include "sim/exec/memcheck.h"

namespace gridloom::exec {

/// Where the lanes of an access are. They may stand in rows: those of a row are at consecutive places, or all at the
/// same one. (Not initialised: filled for each access, and clearing it first would cost more than the rest.)
struct LanePlaces {
  static constexpr std::uint32_t kShortest = 8, kMostRows = kWarpSize / kShortest;
  std::uint64_t least, most, bits;  ///< of the offsets of lanes that are on: the extremes, and all their bits together
  std::uint32_t row_lanes;          ///< 8, 16 or 32; 0: the lanes do not stand in rows
  bool same;                        ///< those of a row are at one place
  std::uint64_t first[kMostRows];   ///< offset of the first lane of each row, or what it would be if that one is off
};
void ScanOffsets(const std::uint64_t* offsets, std::uint32_t mask, std::uint32_t bytes, LanePlaces& out);

struct CellRun;

class SharedShadow {
 public:
  static constexpr std::uint32_t kManyLanes = 63;  ///< an earlier access by several lanes of a warp

  /// `check_lanes`: lanes of one warp need order between them, too (from sm_70 on).
  void Prepare(std::uint32_t bytes, std::uint32_t warps, bool check_lanes);
  void BeginCta();
  /// The CTA begins with this memory written, by nobody.
  void Fill(std::uint32_t offset, std::uint32_t bytes);

  // --- order ---
  void OrderWarp(std::uint32_t warp);
  /// What `warp` did so far comes before what any warp does after its own next call, and the other way round.
  void OrderCta(std::uint32_t warp);
  void Arrive(std::uint32_t barrier, std::uint32_t warp);
  /// A barrier's phase ends: what those who arrived did before comes before what `warps` do next.
  /// `of_all`: it waited for all threads, among which those count that have ended.
  void Complete(std::uint32_t barrier, std::span<const std::uint32_t> warps, bool of_all);
  /// The warp has ended: what it did comes before the end of every later phase of a barrier of all threads.
  void Exit(std::uint32_t warp);

  // --- accesses ---
  struct Access {
    std::uint32_t warp = 0, mask = 0, line = 0;
    SharedAccessImm what;
    const std::uint64_t* offsets = nullptr;  ///< of 32 lanes, in bounds and aligned; null: the rows tell them
    LanePlaces places;

    std::uint64_t OffsetOf(std::uint32_t lane) const {
      if (offsets) return offsets[lane];
      return places.first[lane / places.row_lanes] +
             (places.same ? 0 : std::uint64_t{lane % places.row_lanes} * what.bytes);
    }
  };
  /// The usual read, and nothing but that: by all lanes, in rows that begin at `first`, of places that were all written
  /// before the last barrier. False says nothing; nothing is recorded then.
  bool TryUsualRead(std::uint32_t warp, std::uint32_t line, SharedAccessImm what, const std::uint64_t* first);
  /// The same of many reads, all or none; `bases` as ReadGroup says. They are logged in the group's order.
  bool TryReads(std::uint32_t warp, const ReadGroup& group, const std::uint64_t* bases);
  /// Records the access of a whole warp when nothing is wrong with it; otherwise records nothing and returns false.
  bool Try(const Access& access);

  /// Whether a byte has been written in this CTA.
  bool IsWritten(std::uint32_t offset) const;
  /// Bytes have no value any more: what was stored there had none.
  void Unwrite(std::uint32_t offset, std::uint32_t bytes);

  struct Finding {
    MemcheckKind kind = MemcheckKind::kRace;
    std::uint32_t offset = 0;
    AccessKind other_kind = AccessKind::kWrite;
    std::uint32_t other_warp = 0, other_lane = 0, other_line = 0;
  };
  /// Records one lane's access; true when `finding` says what is wrong with it. `silent`: a write of what is there
  /// already.
  bool Lane(std::uint32_t warp, std::uint32_t lane, std::uint32_t line, AccessKind kind, bool strong, bool silent,
            std::uint32_t offset, std::uint32_t bytes, Finding& finding);

 private:
  // A trace of an access: epoch, warp, lane and PTX line in one word, so that older ones are smaller.
  using Trace = std::uint64_t;
  static constexpr unsigned kLineBits = 22, kLaneShift = kLineBits, kWarpShift = kLaneShift + 6,
                            kEpochShift = kWarpShift + 9;
  static constexpr std::uint64_t kLaneMask = std::uint64_t{63} << kLaneShift,
                                 kWarpMask = std::uint64_t{511} << kWarpShift;
  static constexpr std::uint32_t kLastEpoch = (1u << (64 - kEpochShift)) - 2;
  static constexpr unsigned kBlockShift = 8;        ///< bytes of a block, as a power of two
  static constexpr std::size_t kMostReads = 16384;  ///< for which the log has room at most

  /// The traces of a word or a byte. `atomic`: of its last atomic operation.
  struct Cell {
    Trace& writer;
    Trace& reader;
    Trace& other_reader;
    Trace& atomic;
  };
  struct Cells {
    unsigned shift;  ///< bytes of one, as a power of two
    std::vector<Trace> writer, reader, other_reader, atomic;
    void Resize(std::size_t bytes);
    void Clear();
    Cell At(std::uint32_t offset) {
      const std::size_t at = offset >> shift;
      return {writer[at], reader[at], other_reader[at], atomic[at]};
    }
  };
  struct Block {
    std::uint32_t newest_write = 0, newest_read = 0;  ///< no trace in it is of a later epoch
    std::uint32_t newest_atomic = 0;
    std::uint32_t oldest_write = 0;   ///< no cell was last written in an earlier one
    bool in_bytes = false;            ///< its cells are in bytes_
    bool scanned = false;             ///< oldest_write is as great as it can be
    std::uint32_t words_of = 0;       ///< the first epoch of the CTA that written_words are of
    std::uint64_t written_words = 0;  ///< of cells that are words, those that have been written, at least
  };
  /// The lanes of a row that are on, from the first to the last one.
  struct Row {
    std::uint32_t first, end;  ///< offsets
    Trace mine;                ///< of the first lane
    std::uint32_t lanes;       ///< bit by bit; that of the first one is bit 0
    std::uint8_t bytes;        ///< of a lane
    bool same;                 ///< all at one place
    bool several() const { return same && lanes != 1; }
    bool gaps() const { return (lanes & (lanes + 1)) != 0; }
    bool Append(const Row& next);  ///< false: it does not go on where this one ends
  };

  // What is no row stands in the log as a row without lanes, whose `first` is its number and whose `bytes` say what it
  // is.
  static constexpr std::uint8_t kScatteredRead = 0, kReadGroup = 1;
  /// A read by lanes that stand in no rows.
  struct ScatteredRead {
    std::uint32_t offsets[kWarpSize];
    std::uint32_t mask;
    std::uint32_t bytes;  ///< of a lane
    Trace mine;           ///< of lane 0
  };
  struct LoggedGroup {
    const ReadGroup* group;
    Trace mine;  ///< of lane 0, without a line
    std::uint32_t bases[ReadGroup::kMostBases];
  };

  friend struct CellRun;
  Trace TraceOf(std::uint32_t warp, std::uint32_t lane, std::uint32_t line) const;
  bool Ordered(std::uint32_t warp, Trace trace, Trace mine) const;
  bool Readable(std::uint32_t warp, const Cell& cell, Trace mine) const;
  bool Writable(std::uint32_t warp, const Cell& cell, Trace mine) const;
  static void RecordRead(const Cell& cell, Trace mine);
  bool IsOrderedPlain(std::uint32_t warp, const Cell& cell, Trace mine) const;
  bool Conflicts(std::uint32_t warp, Trace before, AccessKind kind, Trace mine, Finding& finding) const;
  static void RecordWrite(const Cell& cell, Trace mine);
  static void RecordAtomic(const Cell& cell, Trace mine);
  // Blocks of [first, end).
  std::span<Block> BlocksOf(std::uint64_t first, std::uint64_t end);
  Cells& CellsOf(std::uint64_t first, std::uint64_t end, std::uint32_t bytes);
  void Refine(std::size_t block);
  bool AllWritten(Block& block);
  bool AreWritten(const Access& access);
  bool Scan(Block& block);
  void Mark(std::uint64_t first, std::uint64_t end, std::uint32_t warp, bool write);

  std::uint32_t RowsOf(const Access& access, Row* out) const;
  CellRun RunOf(const Row& row, std::uint32_t warp);
  bool TryRead(const Access& access);
  bool TryWrite(const Access& access);
  bool TryLanes(const Access& access);
  bool TryStrong(const Access& access);
  bool TryAtomic(const Access& access);
  void MarkAtomic(std::uint64_t first, std::uint64_t end, std::uint32_t warp);
  void RecordLoggedReads();
  void DropLoggedReads() { logged_count_ = scattered_count_ = group_count_ = 0; }
  bool TryScatteredRead(const Access& access);
  void RecordScattered(const ScatteredRead& read);
  void RecordGroup(const LoggedGroup& logged);
  template <std::uint32_t row_lanes>
  bool TryUsualRows(std::uint32_t warp, std::uint32_t line, SharedAccessImm what, const std::uint64_t* first);
  void MakeRoomInLog();
  template <typename Visit>
  bool ForCells(const Access& access, Visit visit);
  bool CheckCell(const Cell& cell, std::uint32_t warp, AccessKind kind, bool strong, bool silent, Trace mine,
                 Finding& finding);
  void Name(Trace trace, AccessKind kind, Finding& finding) const;
  void Advance(std::uint32_t warp);
  void Renew(std::uint32_t warp);
  std::uint32_t* Known(std::uint32_t warp) { return known_.data() + std::size_t{warp} * warps_; }
  std::uint32_t Given(std::uint32_t warp) const { return used_[warp] ? epoch_[warp] : epoch_[warp] - 1; }

  Cells words_{2, {}, {}, {}, {}}, bytes_{0, {}, {}, {}, {}};  // bytes_: empty until a block needs it
  std::vector<Block> blocks_;
  std::uint32_t size_ = 0;   // bytes of memory
  std::vector<Row> logged_;  // room for reads; those that are not in their cells yet come first
  std::size_t logged_count_ = 0;
  std::vector<ScatteredRead> scattered_;  // likewise
  std::size_t scattered_count_ = 0;
  std::vector<LoggedGroup> groups_;  // likewise
  std::size_t group_count_ = 0;
  std::uint32_t newest_logged_ = 0;  // no later epoch is among them
  std::uint32_t warps_ = 0;
  std::uint64_t identity_mask_ = 0;  // what tells two threads apart that need order between them
  std::uint32_t first_epoch_ = 2, last_epoch_ = 0;
  bool any_exited_ = false;                                 // a warp of the CTA has ended
  bool exhausted_ = false;                                  // out of epochs: no races are looked for in this CTA
  std::vector<std::uint32_t> epoch_, known_, least_known_;  // least_known_: the smallest of a warp's known epochs
  std::vector<std::uint8_t> used_;                          // the warp has made accesses in its epoch
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> arrived_;  // barrier -> joined clocks
  std::vector<std::uint32_t> fence_, exited_;  // joined clocks of warps that made fences, that ended
};

inline SharedShadow::Trace SharedShadow::TraceOf(std::uint32_t warp, std::uint32_t lane, std::uint32_t line) const {
  if (line >= 1u << kLineBits) line = 0;
  return Trace{epoch_[warp]} << kEpochShift | Trace{warp} << kWarpShift | Trace{lane} << kLaneShift | line;
}

inline std::span<SharedShadow::Block> SharedShadow::BlocksOf(std::uint64_t first, std::uint64_t end) {
  const std::size_t begin = first >> kBlockShift;
  return {blocks_.data() + begin, ((end - 1) >> kBlockShift) + 1 - begin};
}

/// The warp has read or written something of [first, end) in its epoch.
inline void SharedShadow::Mark(std::uint64_t first, std::uint64_t end, std::uint32_t warp, bool write) {
  used_[warp] = 1;
  for (Block& block : BlocksOf(first, end)) {
    std::uint32_t& newest = write ? block.newest_write : block.newest_read;
    newest = std::max(newest, epoch_[warp]);
    if (write) block.scanned = false;
  }
}

template <std::uint32_t row_lanes>
inline bool SharedShadow::TryUsualRows(std::uint32_t warp, std::uint32_t line, SharedAccessImm what,
                                       const std::uint64_t* first) {
  constexpr std::uint32_t kRows = kWarpSize / row_lanes;
  if (logged_.size() - logged_count_ < kRows) return false;
  const bool same = what.pattern == SharedAccessImm::kUniform;
  const std::uint32_t span = same ? what.bytes : row_lanes * what.bytes;
  const std::uint32_t epoch = epoch_[warp], known = least_known_[warp];
  Row* out = logged_.data() + logged_count_;
  Trace mine = TraceOf(warp, 0, line);
  for (std::uint32_t row = 0; row < kRows; ++row, ++out, mine += Trace{row_lanes} << kLaneShift) {
    if (first[row] >= size_ || span > size_ - first[row] || (first[row] & (what.bytes - 1u)) != 0) return false;
    const auto offset = static_cast<std::uint32_t>(first[row]);
    for (Block& block : BlocksOf(offset, offset + span)) {
      if (block.newest_write > known || block.newest_atomic > known || block.oldest_write < first_epoch_ - 1)
        return false;
      block.newest_read = std::max(block.newest_read, epoch);
    }
    *out = {offset, offset + span, mine, ~0u >> (kWarpSize - row_lanes), what.bytes, same};
  }
  logged_count_ += kRows;
  newest_logged_ = std::max(newest_logged_, epoch);
  used_[warp] = 1;
  return true;
}

inline bool SharedShadow::TryUsualRead(std::uint32_t warp, std::uint32_t line, SharedAccessImm what,
                                       const std::uint64_t* first) {
  switch (what.row_lanes) {
    case kWarpSize: return TryUsualRows<kWarpSize>(warp, line, what, first);
    case kWarpSize / 2: return TryUsualRows<kWarpSize / 2>(warp, line, what, first);
    case kWarpSize / 4: return TryUsualRows<kWarpSize / 4>(warp, line, what, first);
    default: return false;
  }
}

}  // namespace gridloom::exec
