// From the records of one CTA (sim/exec/records.h) to its trace.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/exec/record_sink.h"
#include "sim/exec/records.h"
#include "sim/trace/code_table.h"
#include "sim/trace/kernel_trace.h"

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

  /// `sites`, if not null, is filled.
  CtaTrace Decode(const exec::RecordPlace& place, const RecordBuffers& buffers, RecordSites* sites);
  /// Accesses of the last CTA that the trace has no place for: loops inside of one instruction (bulk copies) keep their first.
  std::uint64_t dropped() const { return dropped_; }

 private:
  /// What is kept about an entry of the code.
  struct Entry {
    std::uint8_t kind = 0;          ///< what it accesses and how: KindOf
    std::uint8_t width = 0;         ///< bytes per lane
    std::uint8_t new_patterns = 0;  ///< of this CTA, found here
    std::uint16_t site = 0;         ///< of this CTA; 0: none yet
    std::uint32_t number = 0;       ///< memory instructions before it
    std::int32_t pattern = -1;      ///< of this CTA, the last one
    std::uint32_t offsets = 0;      ///< its, in wide_
  };
  using Offsets = std::array<std::uint64_t, kWarpSize>;
  /// Of an instruction whose first entry is an access of its own: the record that is that and nothing else.
  struct Plain {
    std::uint32_t at = 0;     ///< entry
    std::uint32_t key = ~0u;  ///< KeyOf of its header
  };

  static std::uint32_t KeyOf(const exec::RecordHeader& header);
  static std::uint8_t KindOf(const exec::RecordHeader& header);
  void BeginCta(const exec::RecordPlace& place, RecordSites* sites, std::size_t buffers);
  void DecodeBuffer(std::span<const std::uint64_t> words, std::size_t buffer);
  void BeginWarp();
  void EndWarp();
  void SkipTo(std::uint32_t entry);
  void BeginBlock(const exec::RecordHeader& header);
  /// The access of the next memory instruction that it can be; those before it were off. The record's site.
  std::uint16_t AddAccess(exec::RecordReader& reader);
  bool AddPlainAccess(const exec::RecordReader& reader);
  void AddLanes(const std::uint64_t* lanes, MemoryAccess& access);
  MemoryAccess AccessOf(exec::RecordReader& reader, std::uint32_t at, std::uint32_t done);
  bool FindPattern(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access);
  bool IsPattern(const Entry& entry, const std::uint64_t* lanes, MemoryAccess& access) const;
  exec::Space SpaceOfGeneric(exec::RecordReader& reader) const;
  bool Linear(exec::RecordReader& reader, std::uint64_t add, MemoryAccess& access);
  std::optional<std::int32_t> KnownPattern(const std::int64_t* pattern);
  std::uint16_t SiteOf(std::uint32_t from, std::uint32_t to, bool moves);

  const CodeTable& table_;
  std::vector<Entry> entries_;  ///< by instruction of the code, and one behind the last
  std::vector<Plain> plain_;    ///< by instruction of the PTX

  CtaTrace trace_;
  exec::RecordPlace place_;
  std::uint64_t local_base_ = 0;  ///< of the warp
  RecordSites* sites_ = nullptr;
  std::vector<std::pair<const std::int64_t*, std::int32_t>> known_;  ///< the records' patterns, with what they are in the trace
  std::vector<Offsets> wide_;                                        ///< of the trace's patterns, those found among lanes
  std::uint32_t next_ = 0, end_ = 0;                                 ///< what is left of the block being visited
  std::uint64_t dropped_ = 0;
};

}  // namespace gridloom::trace
