// Traces of the workloads of studies: made once, by running the programs, and kept. Where there is no nvcc and so no
// program, those that come with Gridloom.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/study/experiment/study.h"

namespace gridloom::study {

/// One run of a program of tests/workloads/STUDY.
struct WorkloadRun {
  std::string study, name;               ///< of the trace, STUDY-NAME.gltrace
  std::string program{};                 ///< in the study's folder; empty: called as the trace
  std::string kernel{};                  ///< part of the names of the kernels to trace; empty: all are
  std::vector<std::string> options{};    ///< of `gridloom run`, besides those that trace
  std::vector<std::string> arguments{};  ///< of the program

  /// The trace's file name. Options and arguments are in it as a digest: a run with others has a trace of its own.
  std::string FileName() const;
};

/// Runs the program under `run --trace` unless its trace is in the environment's folder, can be read and is newer than
/// the program. What the program prints goes nowhere; its exit code must be 0, so a wrong result is an error. Without
/// the program, and without a trace of it, the one that comes with Gridloom is taken. Returns where the trace is.
Result<std::filesystem::path> TraceOf(const WorkloadRun& run, const Environment& environment);

}  // namespace gridloom::study
