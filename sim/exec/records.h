// Records: what code compiled with CompileOptions::record writes into its warp's buffer while it runs, in 64-bit words. A
// header, then what its kind says. The compiler writes them, RecordReader reads them, nobody else knows the layout.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/exec/abi.h"
#include "sim/exec/immediates.h"

namespace gridloom::exec {

/// How much is recorded.
enum class Recording : std::uint8_t {
  kNone,
  kGlobal,  ///< accesses through global and generic addresses
  kAll,     ///< accesses to every space, and the path: each basic block that is begun
};

enum class RecordKind : std::uint8_t {
  kBlock,    ///< nothing more: the lanes of the mask go on at this instruction
  kUniform,  ///< one address for all lanes
  kAffine,   ///< the address of lane 0 (kBaseBits bits), and above it the distance between lanes (16 bits, signed)
  kPattern,  ///< an address, and a pointer to what each of 32 lanes adds to it; lanes that are off may lie elsewhere
  kLanes,    ///< 32 addresses; 0 for lanes that are off
  kWarpEnd,  ///< nothing more: what follows in the buffer is of the CTA's next warp; the runtime writes it
};

/// Bits 0-31: mask; 32-34: kind; 35-36: AccessKind; 37-38: Space; 39-43: bytes per lane - 1; 44-63: instruction.
struct RecordHeader {
  static constexpr unsigned kInstructionBits = 20, kMaxBytes = 32;
  static constexpr unsigned kBaseBits = 48;
  static constexpr std::uint64_t kBaseMask = (std::uint64_t{1} << kBaseBits) - 1;
  std::uint32_t mask = 0;
  RecordKind kind = RecordKind::kBlock;
  AccessKind access = AccessKind::kRead;
  Space space = Space::kGlobal;
  std::uint32_t bytes = 1;        ///< per lane, at most kMaxBytes
  std::uint32_t instruction = 0;  ///< as InstructionNumbers counts (layout.h)

  constexpr std::uint64_t Pack() const {
    return mask | static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint64_t>(access) << 35 |
           static_cast<std::uint64_t>(space) << 37 | static_cast<std::uint64_t>((bytes - 1) & 31) << 39 |
           static_cast<std::uint64_t>(instruction) << 44;
  }
  static constexpr RecordHeader Unpack(std::uint64_t word) {
    return {.mask = static_cast<std::uint32_t>(word),
            .kind = static_cast<RecordKind>(word >> 32 & 7),
            .access = static_cast<AccessKind>(word >> 35 & 3),
            .space = static_cast<Space>(word >> 37 & 3),
            .bytes = static_cast<std::uint32_t>(word >> 39 & 31) + 1,
            .instruction = static_cast<std::uint32_t>(word >> 44)};
  }
};

/// Words of the longest record.
inline constexpr std::uint32_t kMaxRecordWords = 1 + kWarpSize;

/// Words for which compiled code makes room at once, at most. A buffer has as many, and one for kWarpEnd, beyond its limit.
inline constexpr std::uint32_t kMaxGroupWords = 256;

/// What is known of how an instruction's lanes lie where only the run tells: rows whose pitch is a parameter. Compiled code writes
/// lanes that lie like `pattern` as kPattern, others as kLanes; then, while `tries` are left, the runtime looks whether they
/// lie like another pattern it knows (Helper::kLearnRecord). Warps of one host thread share the sites.
struct RecordSite {
  const std::int64_t* pattern = nullptr;  ///< what each of 32 lanes adds to lane 0's address; never null while recording
  std::uint64_t tries = 0;
};
inline constexpr std::uint32_t kRecordSites = 512;

/// Goes through records in order.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::uint64_t> words) : words_(words) {}
  /// False at the end.
  bool Next() {
    if (next_ >= words_.size()) return false;
    at_ = next_;
    header_ = RecordHeader::Unpack(words_[next_]);
    payload_ = words_.data() + next_ + 1;
    next_ += 1 + PayloadWords(header_.kind);
    return next_ <= words_.size();
  }
  const RecordHeader& header() const { return header_; }
  /// Of kUniform and kAffine: lane 0's address and the distance between lanes.
  std::uint64_t base() const { return header_.kind == RecordKind::kAffine ? payload_[0] & RecordHeader::kBaseMask : payload_[0]; }
  std::int64_t stride() const {
    return header_.kind == RecordKind::kAffine ? static_cast<std::int64_t>(payload_[0]) >> RecordHeader::kBaseBits : 0;
  }
  bool affine() const { return header_.kind == RecordKind::kUniform || header_.kind == RecordKind::kAffine; }
  /// Of kPattern: what each of 32 lanes adds to base(); constant as long as the launch runs.
  const std::int64_t* pattern() const { return reinterpret_cast<const std::int64_t*>(payload_[1]); }
  /// Of any access: 32 addresses.
  const std::uint64_t* addresses();
  /// Of kLanes: the same, without a copy.
  const std::uint64_t* lanes() const { return payload_; }
  /// Where the record began, and where the next one does.
  std::size_t at() const { return at_; }
  std::size_t next() const { return next_; }

 private:
  static constexpr std::size_t PayloadWords(RecordKind kind) {
    constexpr std::uint8_t kWords[8] = {0, 1, 1, 2, kWarpSize, 0, 0, 0};
    return kWords[static_cast<std::size_t>(kind) & 7];
  }

  std::span<const std::uint64_t> words_;
  std::size_t at_ = 0, next_ = 0;
  RecordHeader header_;
  const std::uint64_t* payload_ = nullptr;
  std::array<std::uint64_t, kWarpSize> expanded_;
};

}  // namespace gridloom::exec
