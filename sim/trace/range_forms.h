// The forms in which ranges of CTAs are told (docs/ranges.md), by the names that options and settings have for them.
#pragma once

#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/trace_file.h"

namespace gridloom::trace {

/// "interval" or "strided"; "none" for kNone.
std::string_view NameOf(LaunchInfo::Ranges form);

/// Forms separated by commas, each at most once.
Result<std::vector<LaunchInfo::Ranges>> ParseRangeForms(std::string_view text);

}  // namespace gridloom::trace
