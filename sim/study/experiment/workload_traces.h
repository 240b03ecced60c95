// Traces of the workloads of experiments: made once, by running the programs, and kept. Where there is no nvcc and so no program, those
// that come with Gridloom.
#pragma once

#include <filesystem>
#include <string>

#include "rewriter/support/result.h"

namespace gridloom::study {

/// Runs `program` under this tool's `run --trace` unless `trace` is there, can be read and is newer than the program. What the program
/// prints goes nowhere; its exit code must be 0, so a wrong result is an error. `kernel`: part of the name of the kernel to trace. Without
/// the program, and without a trace of it, `kept` is taken. Returns where the trace is.
Result<std::filesystem::path> EnsureTrace(const std::filesystem::path& program, const std::string& kernel,
                                          const std::filesystem::path& trace, const std::filesystem::path& kept);

}  // namespace gridloom::study
