#include "rewriter/image/archive.h"

#include <ar.h>

#include <algorithm>
#include <charconv>
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

bool LooksLikeArchive(Bytes bytes) { return AsText(bytes).starts_with(kMagic); }

Result<std::vector<ArchiveMember>> ReadArchive(Bytes bytes) {
  std::vector<ArchiveMember> members;
  std::string_view long_names;
  std::uint64_t offset = SARMAG;
  while (offset < bytes.size()) {
    const auto header = ReadAt<ar_hdr>(bytes, offset);
    if (!header) return Error{"archive is cut off in a member's header"};
    const auto size = Number({header->ar_size, sizeof header->ar_size});
    if (!size || std::string_view(header->ar_fmag, sizeof header->ar_fmag) != ARFMAG) {
      return Error{"archive member at offset " + std::to_string(offset) + " has a broken header"};
    }
    const auto data = Slice(bytes, offset + sizeof(ar_hdr), *size);
    if (!data) return Error{"archive member at offset " + std::to_string(offset) + " is cut off"};
    const std::string_view name = AsText(bytes.subspan(static_cast<std::size_t>(offset), sizeof header->ar_name));
    if (name.starts_with("// ")) {
      long_names = AsText(*data);
    } else if (!name.starts_with("/ ") && !name.starts_with("/SYM64/")) {
      members.push_back({MemberName(name, long_names), *data});
    }
    offset += sizeof(ar_hdr) + *size + *size % 2;  // members begin at even offsets
  }
  return members;
}

}  // namespace gridloom::image
