// How users say that CTAs are to run out of order (`--reorder`, GRIDLOOM_REORDER).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rewriter/passes/range_calls.h"

namespace gridloom::exec {

struct ReorderSetting {
  std::uint64_t seed = 0;
  passes::RangeForm form = passes::RangeForm::kStrided;
};
/// SEED, SEED:interval or SEED:strided; nothing when it is none of these.
std::optional<ReorderSetting> ParseReorder(std::string_view text);

}  // namespace gridloom::exec
