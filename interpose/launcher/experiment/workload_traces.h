// Traces of the workloads of experiments: made once, by running the programs, and kept.
#pragma once

#include <filesystem>
#include <string>

#include "rewriter/support/result.h"

namespace gridloom::experiment {

/// Runs `program` under this tool's `run --trace` unless `trace` is there and newer than the program. What the program prints goes
/// nowhere; its exit code must be 0, so a wrong result is an error. `kernel`: part of the name of the kernel to trace.
Status EnsureTrace(const std::filesystem::path& program, const std::string& kernel, const std::filesystem::path& trace);

}  // namespace gridloom::experiment
