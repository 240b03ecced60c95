// GRIDLOOM_CHECK_RANGES: every grid is profiled first and runs with release code, and the ranges that both report are compared
// with the pages that its CTAs touch (sim/exec/range_checks.h). At exit a table says what came of it, kernel by kernel.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "rewriter/passes/range_calls.h"
#include "rewriter/support/result.h"
#include "sim/exec/range_checks.h"

namespace gridloom::session {

class RangeChecks {
 public:
  /// Null unless checks were asked for.
  static RangeChecks* Get();
  /// An error that says what is wrong with the setting.
  static Status CheckSetting();

  /// Runs a grid; with what it finds, when the kernel can be profiled. Thread-safe.
  exec::LaunchFault Run(exec::Engine& engine, exec::DeviceMemory& memory, const exec::LaunchParams& launch, exec::LaunchStats& stats);
  std::string Text() const;

 private:
  explicit RangeChecks(passes::RangeForm form) : form_(form) {}

  /// Larger grids run unchecked: every CTA's pages are kept.
  static constexpr std::uint64_t kMostCtas = 250'000;

  struct Row {
    std::uint64_t launches = 0, unchecked = 0, touched = 0, reported = 0, outside = 0;
    std::string why_not, missed, unbalanced;
  };

  const passes::RangeForm form_;
  mutable std::mutex mutex_;
  std::map<std::shared_ptr<const exec::Program>, std::shared_ptr<exec::RangedProgram>> programs_;
  std::map<std::string, Row> rows_;
};

}  // namespace gridloom::session
