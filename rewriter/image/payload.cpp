// Decompression of payloads, with memory that grows with what really comes out, not with what a header claims.
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "rewriter/image/image_set.h"

namespace gridloom::image {
namespace {

// One input byte yields at most 255 output bytes in an LZ4 block (format description, "match length").
constexpr std::uint64_t kLz4MaxRatio = 255;

Error TooLong(std::uint64_t limit) {
  return Error{"payload is longer than the limit of " + std::to_string(limit) + " bytes"};
}

Result<std::string> ReadLz4(const Entry& entry) {
  const std::uint64_t size = entry.uncompressed_bytes;
  const bool fits = size <= std::numeric_limits<int>::max() && entry.stored.size() <= std::numeric_limits<int>::max();
  if (!fits || size > entry.stored.size() * kLz4MaxRatio + kLz4MaxRatio) {
    return Error{"LZ4 payload of " + std::to_string(entry.stored.size()) + " bytes cannot hold the " +
                 std::to_string(size) + " bytes its header claims"};
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  const int written = LZ4_decompress_safe(reinterpret_cast<const char*>(entry.stored.data()), text.data(),
                                          static_cast<int>(entry.stored.size()), static_cast<int>(size));
  if (written < 0) return Error{"LZ4 payload is broken"};
  if (static_cast<std::uint64_t>(written) != size) {
    return Error{"LZ4 payload gave " + std::to_string(written) + " bytes; its header says " + std::to_string(size)};
  }
  return text;
}

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

Result<std::string> ReadZstd(const Entry& entry, std::uint64_t limit) {
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  if (stream == nullptr) return Error{"out of memory"};
  std::string text;
  ZSTD_inBuffer input{entry.stored.data(), entry.stored.size(), 0};
  while (true) {
    const std::size_t old = text.size();
    text.resize(std::min<std::uint64_t>(std::max<std::uint64_t>(2 * old, 64 << 10), limit + 1));
    ZSTD_outBuffer output{text.data(), text.size(), old};
    const std::size_t state = ZSTD_decompressStream(stream.get(), &output, &input);
    text.resize(output.pos);
    if (ZSTD_isError(state) != 0) return Error{std::string("zstd payload is broken: ") + ZSTD_getErrorName(state)};
    if (text.size() > limit) return TooLong(limit);
    if (state == 0) break;  // end of the frame; what follows is padding
    if (output.pos == old && input.pos == input.size) return Error{"zstd payload is cut off"};
  }
  if (entry.uncompressed_bytes != 0 && text.size() != entry.uncompressed_bytes) {
    return Error{"zstd payload gave " + std::to_string(text.size()) + " bytes; its header says " +
                 std::to_string(entry.uncompressed_bytes)};
  }
  return text;
}

}  // namespace

Result<std::string> Entry::Read(std::uint64_t limit) const {
  if (uncompressed_bytes > limit || stored.size() > limit) return TooLong(limit);
  std::string text;
  switch (compression) {
    case Compression::kNone: text = AsText(stored); break;
    case Compression::kLz4: {
      GL_TRY(read, ReadLz4(*this));
      text = std::move(read);
      break;
    }
    case Compression::kZstd: {
      GL_TRY(read, ReadZstd(*this, limit));
      text = std::move(read);
      break;
    }
  }
  // PTX is text: it ends at its NUL, after which there is padding.
  if (kind == EntryKind::kPtx) text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

}  // namespace gridloom::image
