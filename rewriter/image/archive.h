// Static libraries: Unix archives, as ar(5) describes them, with the long names of GNU ar.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/result.h"

namespace gridloom::image {

struct ArchiveMember {
  std::string_view name;
  Bytes data;
};

bool LooksLikeArchive(Bytes bytes);
/// The members without the archive's own symbol and name tables.
Result<std::vector<ArchiveMember>> ReadArchive(Bytes bytes);

/// A copy with other contents for some members, one item per member of ReadArchive; the symbol table leads to where
/// they are then.
Result<std::vector<std::byte>> ReplaceMembers(Bytes archive,
                                              const std::vector<std::optional<std::vector<std::byte>>>& contents);

}  // namespace gridloom::image
