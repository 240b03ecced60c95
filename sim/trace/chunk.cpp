#include "sim/trace/chunk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <cstring>

namespace gridloom::trace {
namespace {

constexpr int kLevel = 1;  // higher ones gain next to nothing on what the predictors leave

Error Damaged(std::uint64_t offset, const std::string& what) { return Error{"at byte " + std::to_string(offset) + ": " + what}; }

}  // namespace

std::vector<std::uint8_t> PackChunk(ChunkType type, ByteSpan directory, ByteSpan content) {
  std::vector<std::uint8_t> chunk(sizeof(ChunkHeader) + directory.size() + ZSTD_compressBound(content.size()));
  std::uint8_t* const stored = chunk.data() + sizeof(ChunkHeader);
  if (!directory.empty()) std::memcpy(stored, directory.data(), directory.size());
  // Level and room are right, so this does not fail.
  const std::size_t compressed = ZSTD_compress(stored + directory.size(), chunk.size() - sizeof(ChunkHeader) - directory.size(),
                                               content.data(), content.size(), kLevel);
  chunk.resize(sizeof(ChunkHeader) + directory.size() + compressed);
  ChunkHeader header{};
  header.type = static_cast<std::uint32_t>(type);
  header.directory_bytes = static_cast<std::uint32_t>(directory.size());
  header.raw_bytes = content.size();
  header.stored_bytes = directory.size() + compressed;
  header.checksum = XXH3_64bits(chunk.data() + sizeof(ChunkHeader), header.stored_bytes);
  std::memcpy(chunk.data(), &header, sizeof header);
  return chunk;
}

Result<Chunk> ReadChunk(ByteSpan file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(ChunkHeader)) return Damaged(offset, "the file ends inside a chunk's header");
  ChunkHeader header;
  std::memcpy(&header, file.data() + offset, sizeof header);
  const ByteSpan rest = file.subspan(offset + sizeof header);
  if (header.stored_bytes > rest.size()) {
    return Damaged(offset, "a chunk of " + std::to_string(header.stored_bytes) + " bytes, of which the file has " +
                               std::to_string(rest.size()) + ": it was cut off");
  }
  const ByteSpan stored = rest.first(header.stored_bytes);
  if (XXH3_64bits(stored.data(), stored.size()) != header.checksum) return Damaged(offset, "a chunk whose checksum is wrong");
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
