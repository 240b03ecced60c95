// Recognising PTX and reading its two header lines without parsing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rewriter/image/image_set.h"

namespace gridloom::image {

struct PtxHeader {
  std::uint32_t version_major = 0, version_minor = 0;
  Arch arch;  ///< 0.0 when there is no .target
};

/// `.version` and `.target` at the start of a text, after blanks and comments; nothing when the text is not PTX.
std::optional<PtxHeader> ReadPtxHeader(std::string_view text);

/// "sm_90a", "compute_100f", "sm_75" -> architecture.
std::optional<Arch> ParseArch(std::string_view text);

}  // namespace gridloom::image
