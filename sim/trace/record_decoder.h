// From the records of one CTA (sim/exec/records.h) to its trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/exec/record_sink.h"
#include "sim/exec/records.h"
#include "sim/trace/code_table.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/lane_shape.h"

namespace gridloom::trace {

/// The records of a CTA by buffer (RecordPlace::buffer); unused ones are empty.
using RecordBuffers = std::vector<std::span<const std::uint64_t>>;

/// Which words of a CTA's records move when its accesses do.
struct RecordSites {
  static constexpr std::uint16_t kFixed = 0;
  struct Site {
    std::uint32_t first = 0, count = 0;  ///< memory instructions (AccessCount counts them) that take its addresses; maybe none
  };
  bool usable = true;                              ///< else there are too many, or they overlap
  std::vector<Site> sites = {{}};                  ///< the first stands for kFixed
  std::vector<std::vector<std::uint16_t>> number;  ///< by buffer and word
};

class RecordDecoder {
 public:
  explicit RecordDecoder(const CodeTable& table);

  /// `sites`, if not null, is filled. A trace that nobody has kept is used again for a later CTA.
  std::shared_ptr<const CtaTrace> Decode(const exec::RecordPlace& place, const RecordBuffers& buffers, RecordSites* sites);
  /// Accesses of the last CTA that the trace has no place for: loops inside of one instruction (bulk copies) keep their first.
  std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr std::uint8_t kPatience = 4;  ///< patterns of one instruction, found among its lanes and not met again

  /// What is kept about an entry of the code.
  struct Entry {
    std::uint8_t kind = 0;              ///< what it accesses and how: KindOf
    std::uint8_t width = 0;             ///< bytes per lane
    std::uint32_t number = 0;           ///< memory instructions before it
    std::uint8_t patience = kPatience;  ///< patterns that it may still make before one of them is met again
    // Of one CTA: EntryOf begins anew.
    std::uint16_t site = 0;     ///< 0: none yet
    std::uint32_t cta = 0;      ///< which, as ctas_ counts
    std::int32_t pattern = -1;  ///< the last one found here
    std::uint32_t offsets = 0;  ///< its, in wide_
  };
  /// Of an instruction whose first entry is an access of its own: the record that is that and nothing else.
  struct Plain {
    std::uint32_t at = 0;     ///< entry
    std::uint32_t key = ~0u;  ///< KeyOf its header
    bool moves = false;       ///< not in shared memory
  };
  /// Of an instruction that begins a block.
  struct Block {
    std::uint32_t number = CodeTable::kNoBlock;
    std::uint32_t first = 0, end = 0;          ///< entries
    std::uint32_t plain = 0, plain_count = 0;  ///< in in_order_: its accesses up to the first one that is not plain
  };
  /// A pattern of the records, and what the trace calls it.
  struct Known {
    const std::int64_t* pattern = nullptr;
    std::int32_t stride = 0;
  };
  using Words = const std::uint64_t*;

  static std::uint32_t KeyOf(std::uint64_t header) { return static_cast<std::uint32_t>(header >> 35); }
  /// Patterns lie 256 bytes and more apart.
  static std::size_t SlotOf(const std::int64_t* pattern) { return reinterpret_cast<std::uintptr_t>(pattern) >> 8; }
  static std::uint8_t KindOf(const exec::RecordHeader& header);
  void MakePlans();
  Entry& EntryOf(std::uint32_t at);
  void BeginCta(const exec::RecordPlace& place, RecordSites* sites, std::size_t buffers);
  std::shared_ptr<CtaTrace> UnusedTrace();
  void DecodeBuffer(std::span<const std::uint64_t> words, std::size_t buffer);
  void BeginWarp();
  void EndWarp();
  void SkipTo(std::uint32_t entry);
  Words TakeBlock(Words at, Words end);
  Words TakeAccess(Words at, Words end);
  Words TakePlain(const Plain& plain, Words at, Words end);
  void MarkSite(Words record, std::uint16_t site);
  /// The access of the next memory instruction that it can be; those before it were off. The record's site.
  std::uint16_t AddAccess(exec::RecordReader& reader);
  void AddLanes(const std::uint64_t* lanes, MemoryAccess& access);
  MemoryAccess AccessOf(exec::RecordReader& reader, std::uint32_t at, std::uint32_t done);
  bool FindPattern(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access);
  exec::Space SpaceOfGeneric(exec::RecordReader& reader) const;
  bool Linear(exec::RecordReader& reader, std::uint64_t add, MemoryAccess& access);
  std::optional<std::int32_t> KnownPattern(const std::int64_t* pattern);
  std::optional<std::int32_t> AddKnownPattern(const std::int64_t* pattern);
  std::uint16_t SiteOf(std::uint32_t from, std::uint32_t to, bool moves);

  const CodeTable& table_;
  std::vector<Entry> entries_;   ///< by instruction of the code, and one behind the last
  std::vector<Plain> plain_;     ///< by instruction of the PTX
  std::vector<Block> blocks_;    ///< likewise
  std::vector<Plain> in_order_;  ///< by block and place in it

  std::vector<std::shared_ptr<CtaTrace>> traces_;  ///< the last ones
  std::size_t oldest_ = 0;                         ///< of them
  std::shared_ptr<CtaTrace> trace_;
  exec::RecordPlace place_;
  std::uint64_t local_base_ = 0;  ///< of the warp
  RecordSites* sites_ = nullptr;
  std::uint16_t* site_numbers_ = nullptr;  ///< of the buffer, beside its words; null without sites_
  Words words_ = nullptr;                  ///< of the buffer
  std::vector<Known> known_;               ///< of the CTA
  std::array<Known, 64> last_known_;       ///< some of them, by SlotOf
  std::vector<LaneOffsets> wide_;          ///< of the trace's patterns, those found among lanes
  std::uint32_t next_ = 0, end_ = 0;       ///< what is left of the block being visited
  std::uint32_t ctas_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace gridloom::trace
