// Static libraries: Unix archives, as ar(5) describes them, with the long names of GNU ar.
#pragma once

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

}  // namespace gridloom::image
