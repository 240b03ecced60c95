// Device functions and variables of LTO-IR that other inputs of a link use. nvJitLink gives PTX for the LTO-IR alone,
// and would drop what nothing in that uses: so a kernel that uses it is linked with it, and taken out again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interpose/objects/ptx_sources.h"

namespace gridloom::hooks {

/// Names, each as PTX spells it.
struct UndefinedNames {
  std::vector<std::string> functions, variables;
  bool empty() const { return functions.empty() && variables.empty(); }
};

/// What these texts use and none of them defines. Of texts with errors nothing.
UndefinedNames FindUndefined(const std::vector<session::PtxSource>& sources);

/// LTO-IR of a kernel that uses these names, compiled by the process' own NVRTC for an architecture as nvJitLink's
/// options name it
/// ("sm_90a"); empty when there is none in it or it fails.
std::string CompileKeeper(const UndefinedNames& names, std::string_view architecture);

/// The PTX of a link with that kernel in it: without the kernel, and with the names visible to other modules.
std::string RemoveKeeper(std::string ptx, const UndefinedNames& names);

}  // namespace gridloom::hooks
