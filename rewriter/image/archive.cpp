#include "rewriter/image/archive.h"

#include <ar.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>

namespace gridloom::image {
namespace {

constexpr std::string_view kMagic(ARMAG, SARMAG);

/// A header field: a decimal number, padded with blanks.
std::optional<std::uint64_t> Number(std::string_view field) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest = field.substr(static_cast<std::size_t>(end - field.data()));
  return rest.find_first_not_of(' ') == std::string_view::npos ? std::optional(value) : std::nullopt;
}

/// "name.o/", or "/123": at offset 123 of the table of long names, which a '/' and a newline close.
std::string_view MemberName(std::string_view field, std::string_view long_names) {
  if (field.starts_with('/')) {
    const auto offset = Number(field.substr(1));
    if (!offset || *offset >= long_names.size()) return {};
    field = long_names.substr(static_cast<std::size_t>(*offset));
    return field.substr(0, std::min(field.find('/'), field.find('\n')));
  }
  return field.substr(0, std::min(field.find('/'), field.find_last_not_of(' ') + 1));
}

}  // namespace

namespace {

/// One piece of the file: a member, or one of the archive's own tables.
struct Piece {
  std::uint64_t offset = 0;    ///< of its header
  std::string_view name = {};  ///< as the header has it
  Bytes data = {};

  bool IsLongNames() const { return name.starts_with("// "); }
  unsigned SymbolBytes() const { return name.starts_with("/ ") ? 4 : name.starts_with("/SYM64/") ? 8 : 0; }
  bool IsMember() const { return !IsLongNames() && SymbolBytes() == 0; }
};

Result<std::vector<Piece>> ReadPieces(Bytes bytes) {
  std::vector<Piece> pieces;
  for (std::uint64_t offset = SARMAG; offset < bytes.size();) {
    const auto header = ReadAt<ar_hdr>(bytes, offset);
    if (!header) return Error{"archive is cut off in a member's header"};
    const auto size = Number({header->ar_size, sizeof header->ar_size});
    if (!size || std::string_view(header->ar_fmag, sizeof header->ar_fmag) != ARFMAG) {
      return Error{"archive member at offset " + std::to_string(offset) + " has a broken header"};
    }
    const auto data = Slice(bytes, offset + sizeof(ar_hdr), *size);
    if (!data) return Error{"archive member at offset " + std::to_string(offset) + " is cut off"};
    pieces.push_back({offset, AsText(bytes.subspan(static_cast<std::size_t>(offset), sizeof header->ar_name)), *data});
    offset += sizeof(ar_hdr) + *size + *size % 2;  // members begin at even offsets
  }
  return pieces;
}

}  // namespace

bool LooksLikeArchive(Bytes bytes) { return AsText(bytes).starts_with(kMagic); }

Result<std::vector<ArchiveMember>> ReadArchive(Bytes bytes) {
  GL_TRY(pieces, ReadPieces(bytes));
  std::vector<ArchiveMember> members;
  std::string_view long_names;
  for (const Piece& piece : pieces) {
    if (piece.IsLongNames()) long_names = AsText(piece.data);
    if (piece.IsMember()) members.push_back({MemberName(piece.name, long_names), piece.data});
  }
  return members;
}

namespace {

std::uint64_t ReadBigEndian(const std::byte* at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(at[i]);
  return value;
}

void WriteBigEndian(std::byte* at, unsigned bytes, std::uint64_t value) {
  for (unsigned i = bytes; i-- > 0; value >>= 8) at[i] = static_cast<std::byte>(value & 0xff);
}

/// A symbol table is a count and as many offsets of members' headers, all big-endian, and the names.
Status MoveSymbols(std::byte* table, std::uint64_t table_bytes, unsigned width,
                   const std::map<std::uint64_t, std::uint64_t>& moved) {
  const std::uint64_t count = table_bytes < width ? 0 : ReadBigEndian(table, width);
  if (count > table_bytes / width) return Error{"the archive's symbol table is cut off"};
  for (std::uint64_t i = 1; i <= count && (i + 1) * width <= table_bytes; ++i) {
    std::byte* const at = table + i * width;
    const auto it = moved.find(ReadBigEndian(at, width));
    if (it == moved.end()) return Error{"the archive's symbol table leads to no member"};
    if (width == 4 && it->second > UINT32_MAX)
      return Error{"the archive would be longer than its symbol table can say"};
    WriteBigEndian(at, width, it->second);
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> ReplaceMembers(Bytes archive,
                                              const std::vector<std::optional<std::vector<std::byte>>>& contents) {
  GL_TRY(pieces, ReadPieces(archive));
  std::vector<std::byte> out(archive.begin(), archive.begin() + SARMAG);
  std::map<std::uint64_t, std::uint64_t> moved;  // offsets of headers, before and after
  std::size_t member = 0;
  for (const Piece& piece : pieces) {
    moved[piece.offset] = out.size();
    Bytes data = piece.data;
    if (piece.IsMember() && contents.at(member++)) data = *contents[member - 1];
    auto header = *ReadAt<ar_hdr>(archive, piece.offset);
    std::string size = std::to_string(data.size());
    if (size.size() > sizeof header.ar_size) return Error{"a member would be longer than an archive can say"};
    size.resize(sizeof header.ar_size, ' ');
    std::memcpy(header.ar_size, size.data(), size.size());
    const auto* const raw = reinterpret_cast<const std::byte*>(&header);
    out.insert(out.end(), raw, raw + sizeof header);
    out.insert(out.end(), data.begin(), data.end());
    if (data.size() % 2 != 0) out.push_back(static_cast<std::byte>('\n'));
  }
  for (const Piece& piece : pieces) {
    if (piece.SymbolBytes() == 0) continue;
    GL_TRY_STATUS(
        MoveSymbols(out.data() + moved[piece.offset] + sizeof(ar_hdr), piece.data.size(), piece.SymbolBytes(), moved));
  }
  return out;
}

}  // namespace gridloom::image
