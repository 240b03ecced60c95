// `gridloom inspect --machine-code`: the instructions of kernels as the GPU reads them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "rewriter/support/compute_capability.h"
#include "rewriter/support/result.h"

namespace gridloom::launcher {

/// A listing of each kernel whose name, mangled or as its source spells it, contains `kernel`, for each architecture
/// that the file has machine code of; only for that of `device`, when there is one. An error when there is no such
/// kernel.
Result<std::string> MachineCodeText(const std::filesystem::path& file, const std::string& kernel,
                                    std::optional<ComputeCapability> device);

}  // namespace gridloom::launcher
