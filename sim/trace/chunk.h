// A trace file is a header and then chunks, each with its own checksum (docs/trace-format.md): whatever stands before a
// damaged or missing one can be used.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rewriter/support/result.h"

struct ZSTD_CCtx_s;

namespace gridloom::trace {

inline constexpr char kFileMagic[8] = {'G', 'L', 'T', 'R', 'A', 'C', 'E', '\0'};
inline constexpr std::uint32_t kFormatVersion = 12, kOldestReadVersion = 5;

struct FileHeader {
  char magic[8];
  std::uint32_t version, zero;
};
static_assert(sizeof(FileHeader) == 16);

enum class ChunkType : std::uint32_t {
  kInfo = 1,         ///< text: what made the file
  kKernel = 2,       ///< a code table
  kLaunchBegin = 3,  ///< a launch and its shape
  kCtas = 4,         ///< some of its CTAs
  kLaunchEnd = 5,    ///< it is complete
  kHost = 6,         ///< what the host did
};

struct ChunkHeader {
  std::uint32_t type;
  std::uint32_t directory_bytes;  ///< at the front of the stored bytes, not compressed
  std::uint64_t raw_bytes;        ///< of the rest when it is decompressed
  std::uint64_t stored_bytes;     ///< directory and compressed rest
  std::uint64_t checksum;         ///< XXH3 of the stored bytes
};
static_assert(sizeof(ChunkHeader) == 32);

/// No chunk is larger when it is decompressed, unless one CTA alone is.
inline constexpr std::uint64_t kMaxRawBytes = std::uint64_t{1} << 31;

using ByteSpan = std::span<const std::uint8_t>;

/// Makes whole chunks, headers included. Used by one thread at a time.
class ChunkPacker {
 public:
  ChunkPacker();
  ~ChunkPacker();
  ChunkPacker(const ChunkPacker&) = delete;
  ChunkPacker& operator=(const ChunkPacker&) = delete;
  /// Large contents are compressed less thoroughly where those before gained little. Valid until the next call.
  ByteSpan Pack(ChunkType type, ByteSpan directory, ByteSpan content);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<std::uint8_t> chunk_;
  bool gains_little_ = false;
  std::uint32_t large_ = 0;  ///< large contents so far
};

/// Views into the file.
struct Chunk {
  ChunkType type = ChunkType::kInfo;
  ByteSpan directory, compressed;
  std::uint64_t raw_bytes = 0;
  std::uint64_t end = 0;  ///< offset of the next one
};
/// The chunk at `offset`, checked.
Result<Chunk> ReadChunk(ByteSpan file, std::uint64_t offset);
/// The chunk's content. Callers who do not trust the file look at raw_bytes before: few bytes can become many.
Result<std::vector<std::uint8_t>> Decompress(const Chunk& chunk);

}  // namespace gridloom::trace
