// GRIDLOOM_SLICE: of how many CTAs a slice is (launch/slicing.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewriter/support/result.h"

namespace gridloom::session {

/// Most CTAs of a slice, as GRIDLOOM_SLICE says; 0: grids run whole. An error that says what is wrong with the text.
Result<std::uint64_t> ParseSliceSize(const std::optional<std::string>& text);
/// That of this process; 0 when the text is no number (the backend has refused it then).
std::uint64_t SliceSize();

}  // namespace gridloom::session
