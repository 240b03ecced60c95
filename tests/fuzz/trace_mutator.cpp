// Changes trace files behind their checksums and their compression, where random changes do not come: one chunk's
// directory or content, or the order of chunks. One change in eight is of the file's bytes as they are.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "sim/trace/chunk.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace gridloom::trace;
using Bytes = std::vector<std::uint8_t>;

struct Piece {
  ChunkType type = ChunkType::kInfo;
  Bytes directory, content;
};

constexpr std::uint64_t kMostContent = 1u << 16;

std::vector<Piece> TakeApart(ByteSpan file) {
  std::vector<Piece> pieces;
  for (std::uint64_t offset = sizeof(FileHeader); offset < file.size();) {
    const auto chunk = ReadChunk(file, offset);
    if (!chunk || chunk->raw_bytes > kMostContent) break;
    auto content = Decompress(*chunk);
    if (!content) break;
    pieces.push_back({chunk->type, {chunk->directory.begin(), chunk->directory.end()}, std::move(*content)});
    offset = chunk->end;
  }
  return pieces;
}

void Change(Bytes& bytes) {
  const std::size_t size = bytes.size();
  bytes.resize(size + 64);
  bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
}

void Change(std::vector<Piece>& pieces, std::mt19937& random) {
  Piece& piece = pieces[random() % pieces.size()];
  const Piece other = pieces[random() % pieces.size()];
  switch (random() % 8) {
    case 0: pieces.erase(pieces.begin() + (&piece - pieces.data())); break;
    case 1: pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(random() % (pieces.size() + 1)), other); break;
    case 2: std::swap(piece, pieces[random() % pieces.size()]); break;
    case 3: piece.type = static_cast<ChunkType>(random() % 8); break;
    case 4:
    case 5: Change(piece.directory); break;
    default: Change(piece.content); break;
  }
}

Bytes PutTogether(const FileHeader& header, const std::vector<Piece>& pieces) {
  Bytes file(sizeof header);
  std::memcpy(file.data(), &header, sizeof header);
  ChunkPacker packer;
  for (const Piece& piece : pieces) {
    const ByteSpan packed = packer.Pack(piece.type, piece.directory, piece.content);
    file.insert(file.end(), packed.begin(), packed.end());
  }
  return file;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  FileHeader header{};
  if (size < sizeof header || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(&header, data, sizeof header);
  std::vector<Piece> pieces = TakeApart({data, size});
  if (pieces.empty()) return LLVMFuzzerMutate(data, size, most);
  Change(pieces, random);
  const Bytes file = PutTogether(header, pieces);
  if (file.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}
