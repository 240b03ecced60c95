// What profile and release share: the code that computes a CTA's ranges and reports them (CRCS paper, 4.2.2 and 4.2.3;
// docs/ranges.md). Both call it with the same analysis, so that a set and its release name the very same ranges.
#pragma once

#include <array>
#include <string>

#include "rewriter/analysis/address_analysis.h"
#include "rewriter/passes/edit.h"

namespace gridloom::passes {

enum class RangeCallKind : std::uint8_t { kSet, kRelease };

enum class RangeForm : std::uint8_t {
  kInterval,  ///< one range per pointer that covers all accesses through it
  kStrided,   ///< pieces of one width at equal distances, one set per group of accesses that differ by constants
};

/// What the name of a profiler adds to that of its kernel.
inline constexpr std::string_view kProfileSuffix = "__profile";

/// Declares the four range functions unless the module has them.
void DeclareRangeFunctions(ptx::Module& module);

/// PTX of a block { … } for one thread of the CTA. `block_size` as RangeEmitter takes it. The kernel is regular.
std::string RangeCalls(const analysis::AddressAnalysis& analysis, RangeCallKind kind, RangeForm form,
                       std::array<std::string, 3> block_size);

}  // namespace gridloom::passes
