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
  kAffine,   ///< the address of lane 0, and the distance between lanes
  kPattern,  ///< an address, and a pointer to what each of 32 lanes adds to it
  kLanes,    ///< 32 addresses; those of lanes that are off mean nothing
};

/// Bits 0-31: mask; 32-34: kind; 35-36: AccessKind; 37-38: Space; 39-43: bytes per lane - 1; 44-63: instruction.
struct RecordHeader {
  static constexpr unsigned kInstructionBits = 20, kMaxBytes = 32;
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

/// Goes through the records of one warp in order.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::uint64_t> words) : words_(words) {}
  /// False at the end.
  bool Next();
  const RecordHeader& header() const { return header_; }
  /// Of kUniform and kAffine: lane 0's address and the distance between lanes.
  std::uint64_t base() const { return payload_[0]; }
  std::int64_t stride() const { return header_.kind == RecordKind::kAffine ? static_cast<std::int64_t>(payload_[1]) : 0; }
  bool affine() const { return header_.kind == RecordKind::kUniform || header_.kind == RecordKind::kAffine; }
  /// Of kPattern: what each of 32 lanes adds to base(); constant as long as the kernel is loaded.
  const std::int64_t* pattern() const { return reinterpret_cast<const std::int64_t*>(payload_[1]); }
  /// Of any access: 32 addresses.
  const std::uint64_t* addresses();

 private:
  std::span<const std::uint64_t> words_;
  std::size_t next_ = 0;
  RecordHeader header_;
  const std::uint64_t* payload_ = nullptr;
  std::array<std::uint64_t, kWarpSize> expanded_;
};

}  // namespace gridloom::exec
