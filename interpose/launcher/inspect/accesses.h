// The rows of `gridloom inspect` about global memory: per pointer how it is accessed, with expressions
// (docs/ranges.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "interpose/launcher/inspect/report.h"

namespace gridloom::launcher {

/// Fills KernelReport::arguments of kernels that `module` defines.
void ReportAccesses(const ptx::Module& module, std::vector<KernelReport>& kernels);

/// Lines below a kernel's heading, indented by `indent`; empty when it accesses no global memory.
std::string AccessText(const KernelReport& kernel, unsigned indent);
nlohmann::ordered_json AccessJson(const KernelReport& kernel);

}  // namespace gridloom::launcher
