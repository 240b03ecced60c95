#include "sim/timing/live/overlap_outcome.h"

#include "rewriter/support/demangle.h"
#include "rewriter/support/printable.h"

namespace gridloom::timing {
namespace {

constexpr std::size_t kMostKept = 1000, kMostTold = 3;

}  // namespace

bool OverlapOutcome::AddUntracked(const std::string& kernel, const std::string& why) {
  return why_not_.size() < kMostKept && why_not_.emplace(kernel, why).second;
}

std::string OverlapOutcome::WhyNothingOverlaps(const std::string& program) const {
  if (tracked_ != 0 || why_not_.empty()) return {};
  std::string reasons;
  std::size_t told = 0;
  for (const auto& [kernel, why] : why_not_) {
    if (told++ == kMostTold) {
      reasons += "; and " + std::to_string(why_not_.size() - kMostTold) + " more";
      break;
    }
    reasons += (reasons.empty() ? "" : "; ") + DemangledName(kernel) + ": " + Printable(why);
  }
  return "no kernel of " + Printable(program) + " overlaps with others: " + reasons;
}

std::string WhyItDoesNotOverlap(const std::string& kernel, const std::string& why) {
  return "kernel " + DemangledName(kernel) + " does not overlap with others: " + Printable(why);
}

}  // namespace gridloom::timing
