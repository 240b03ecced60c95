#include "sim/trace/chunk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <cstring>

namespace gridloom::trace {
namespace {

constexpr int kLevel = 1;  // higher ones gain next to nothing on what the predictors leave
// Scattered addresses: matches are rare and chance, and most of what level 1 gains on them is their high bytes' few
// values.
constexpr int kHastyLevel = -4;
constexpr std::size_t kLargeContent = 128u << 10;
constexpr std::uint32_t kThorough = 16;  // of so many large contents at least one is compressed by level 1

Error Damaged(std::uint64_t offset, const std::string& what) {
  return Error{"at byte " + std::to_string(offset) + ": " + what};
}

}  // namespace

void ChunkPacker::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ChunkPacker::ChunkPacker() : context_(ZSTD_createCCtx()) {}
ChunkPacker::~ChunkPacker() = default;

ByteSpan ChunkPacker::Pack(ChunkType type, ByteSpan directory, ByteSpan content) {
  const std::size_t most = sizeof(ChunkHeader) + directory.size() + ZSTD_compressBound(content.size());
  if (chunk_.size() < most) chunk_.resize(most);
  std::uint8_t* const stored = chunk_.data() + sizeof(ChunkHeader);
  if (!directory.empty()) std::memcpy(stored, directory.data(), directory.size());
  const bool large = content.size() >= kLargeContent;
  // Level and room are right, so this does not fail.
  const std::size_t compressed =
      ZSTD_compressCCtx(context_.get(), stored + directory.size(), most - sizeof(ChunkHeader) - directory.size(),
                        content.data(), content.size(), large && gains_little_ ? kHastyLevel : kLevel);
  if (large) gains_little_ = compressed > content.size() / 3 && ++large_ % kThorough != 0;
  ChunkHeader header{};
  header.type = static_cast<std::uint32_t>(type);
  header.directory_bytes = static_cast<std::uint32_t>(directory.size());
  header.raw_bytes = content.size();
  header.stored_bytes = directory.size() + compressed;
  header.checksum = XXH3_64bits(stored, header.stored_bytes);
  std::memcpy(chunk_.data(), &header, sizeof header);
  return ByteSpan(chunk_).first(sizeof header + header.stored_bytes);
}

Result<Chunk> ReadChunk(ByteSpan file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(ChunkHeader))
    return Damaged(offset, "the file ends inside a chunk's header");
  ChunkHeader header;
  std::memcpy(&header, file.data() + offset, sizeof header);
  const ByteSpan rest = file.subspan(offset + sizeof header);
  if (header.stored_bytes > rest.size()) {
    return Damaged(offset, "a chunk of " + std::to_string(header.stored_bytes) + " bytes, of which the file has " +
                               std::to_string(rest.size()) + ": it was cut off");
  }
  const ByteSpan stored = rest.first(header.stored_bytes);
  if (XXH3_64bits(stored.data(), stored.size()) != header.checksum)
    return Damaged(offset, "a chunk whose checksum is wrong");
  if (header.directory_bytes > header.stored_bytes || header.raw_bytes > kMaxRawBytes)
    return Damaged(offset, "a chunk whose sizes contradict each other");
  Chunk chunk;
  chunk.type = static_cast<ChunkType>(header.type);
  chunk.directory = stored.first(header.directory_bytes);
  chunk.compressed = stored.subspan(header.directory_bytes);
  chunk.raw_bytes = header.raw_bytes;
  chunk.end = offset + sizeof header + header.stored_bytes;
  return chunk;
}

Result<std::vector<std::uint8_t>> Decompress(const Chunk& chunk) {
  // The frame says its size, too: nothing is allocated for a size that only the header claims.
  const unsigned long long said = ZSTD_getFrameContentSize(chunk.compressed.data(), chunk.compressed.size());
  if (said != chunk.raw_bytes) return Error{"a chunk that is not as large as it says"};
  std::vector<std::uint8_t> raw(chunk.raw_bytes);
  const std::size_t got = ZSTD_decompress(raw.data(), raw.size(), chunk.compressed.data(), chunk.compressed.size());
  if (ZSTD_isError(got) || got != raw.size()) return Error{"a chunk that cannot be decompressed"};
  return raw;
}

}  // namespace gridloom::trace
