// What memcheck knows about the shared memory of a CTA (or of all CTAs of a cluster): for every word who wrote it last and
// who read it, and for every warp which accesses of the others come before what it does next.
//
// Order is kept as vector clocks of warps. A warp's *epoch* counts what it gave to others (barrier arrivals, fences);
// known(w, v) is the last epoch of v whose accesses are ordered before w's next one. Lanes of one warp are ordered by
// OrderWarp. Epochs go on from CTA to CTA, so that nothing has to be cleared between them: what is older than the CTA's
// first epoch counts as never written. docs/memcheck.md says what counts as order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/exec/memcheck.h"

namespace gridloom::exec {

/// The greatest of 32 offsets, and all their bits together.
struct OffsetExtent {
  std::uint64_t most = 0, bits = 0;
};
void FindExtent(const std::uint64_t* offsets, OffsetExtent& out);

class SharedShadow {
 public:
  static constexpr std::uint32_t kManyLanes = 63;  ///< an earlier access by several lanes of a warp

  /// `check_lanes`: lanes of one warp need order between them, too (from sm_70 on).
  void Prepare(std::uint32_t bytes, std::uint32_t warps, bool check_lanes);
  void BeginCta();

  // --- order ---
  void OrderWarp(std::uint32_t warp);
  /// What `warp` did so far comes before what any warp does after its own next call, and the other way round.
  void OrderCta(std::uint32_t warp);
  void Arrive(std::uint32_t barrier, std::uint32_t warp);
  /// A barrier's phase ends: what those who arrived did before comes before what `warps` do next.
  void Complete(std::uint32_t barrier, std::span<const std::uint32_t> warps);
  /// The warp has ended: what it did comes before the end of every later barrier phase.
  void Exit(std::uint32_t warp);

  // --- accesses ---
  struct Access {
    std::uint32_t warp = 0, mask = 0, line = 0;
    SharedAccessImm what;
    const std::uint64_t* offsets = nullptr;  ///< of 32 lanes, or of lane 0 as the pattern says; in bounds and aligned
  };
  /// Records the access of a whole warp when nothing is wrong with it; otherwise records nothing and returns false.
  bool Try(const Access& access);

  struct Finding {
    MemcheckKind kind = MemcheckKind::kRace;
    std::uint32_t offset = 0;
    AccessKind other_kind = AccessKind::kWrite;
    std::uint32_t other_warp = 0, other_lane = 0, other_line = 0;
  };
  /// Records one lane's access; true when `finding` says what is wrong with it. `silent`: a write of what is there already.
  bool Lane(std::uint32_t warp, std::uint32_t lane, std::uint32_t line, AccessKind kind, bool strong, bool silent, std::uint32_t offset,
            std::uint32_t bytes, Finding& finding);

 private:
  // A trace of an access: epoch, warp, lane and PTX line in one word, so that older ones are smaller.
  using Trace = std::uint64_t;
  static constexpr unsigned kLineBits = 22, kLaneShift = kLineBits, kWarpShift = kLaneShift + 6, kEpochShift = kWarpShift + 9;
  static constexpr std::uint64_t kLaneMask = std::uint64_t{63} << kLaneShift, kWarpMask = std::uint64_t{511} << kWarpShift;
  static constexpr std::uint32_t kLastEpoch = (1u << (64 - kEpochShift)) - 2;
  static constexpr Trace kSplit = ~Trace{0};  ///< in writer_: the word's bytes have traces of their own

  struct ByteTraces {
    Trace writer[4], reader[4], other_reader[4];
  };
  /// The three traces of a word or a byte.
  struct Cell {
    Trace& writer;
    Trace& reader;
    Trace& other_reader;
  };

  friend struct ShadowRun;
  Trace TraceOf(std::uint32_t warp, std::uint32_t lane, std::uint32_t line) const;
  bool Ordered(std::uint32_t warp, Trace trace, Trace mine) const;
  bool Readable(std::uint32_t warp, const Cell& cell, Trace mine) const;
  bool Writable(std::uint32_t warp, const Cell& cell, Trace mine) const;
  static void RecordRead(const Cell& cell, Trace mine);
  static void RecordWrite(const Cell& cell, Trace mine);
  Cell WordCell(std::uint32_t word) { return {writer_[word], reader_[word], other_reader_[word]}; }
  ByteTraces& Split(std::uint32_t word);
  bool TryRun(const Access& access, std::uint32_t first_word, std::uint32_t first_lane, std::uint32_t lanes);
  bool TryPieces(const Access& access);
  bool TryLanes(const Access& access);
  bool CheckCell(const Cell& cell, std::uint32_t warp, AccessKind kind, bool strong, bool silent, Trace mine, Finding& finding);
  void Name(Trace trace, AccessKind kind, Finding& finding) const;
  void Advance(std::uint32_t warp);
  void Renew(std::uint32_t warp);
  std::uint32_t* Known(std::uint32_t warp) { return known_.data() + std::size_t{warp} * warps_; }
  std::uint32_t Given(std::uint32_t warp) const { return used_[warp] ? epoch_[warp] : epoch_[warp] - 1; }

  std::vector<Trace> writer_, reader_, other_reader_;  // per word
  std::vector<std::uint32_t> split_words_;
  std::vector<ByteTraces> split_;  // writer_ is kSplit: reader_ holds the index in it
  std::uint32_t warps_ = 0;
  std::uint64_t identity_mask_ = 0;  // what tells two threads apart that need order between them
  std::uint32_t first_epoch_ = 2, last_epoch_ = 0;
  bool exhausted_ = false;                                                 // out of epochs: no races are looked for in this CTA
  std::vector<std::uint32_t> epoch_, known_, least_known_;                 // least_known_: the smallest of a warp's known epochs
  std::vector<std::uint8_t> used_;                                         // the warp has made accesses in its epoch
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> arrived_;  // barrier -> joined clocks
  std::vector<std::uint32_t> fence_, exited_;                              // joined clocks of warps that made fences, that ended
};

}  // namespace gridloom::exec
