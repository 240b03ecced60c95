// How the threads of a CTA access what a pointer points to, in one word per pointer and one expression per access.
#pragma once

#include <string>
#include <vector>

#include "rewriter/analysis/address_analysis.h"

namespace gridloom::analysis {

enum class AccessPattern : std::uint8_t {
  kOnePlace,    ///< the same bytes for all threads of the CTA
  kContiguous,  ///< neighbouring threads or iterations, neighbouring bytes
  kStrided,     ///< pieces at distances that a launch decides, or large ones: rows of a matrix
  kWholeArray,  ///< may be anywhere in the allocation
  kIrregular,   ///< depends on loaded data
};
std::string_view TextOf(AccessPattern pattern);

struct ArgumentPattern {
  std::string pointer;  ///< as PrintSymbol names it: a parameter, a variable; "?" when not known
  AccessPattern pattern = AccessPattern::kOnePlace;  ///< the worst of its accesses
  bool reads = false, writes = false;
  std::vector<std::string> expressions;  ///< "A[(ctaid.x*ntid.x + tid.x)*4]", each once, in the order of the code
  std::string irregular;                 ///< why
  SourceLoc because_of;
};

std::vector<ArgumentPattern> DescribeArguments(const AddressAnalysis& analysis);

}  // namespace gridloom::analysis
