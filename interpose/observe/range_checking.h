// GRIDLOOM_CHECK_RANGES: every grid is profiled first and runs with release code, and the ranges that both report are
// compared with the pages that its CTAs touch (sim/exec/ranges/range_checks.h). At exit a table says what came of it,
// kernel by kernel.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "rewriter/passes/range_calls.h"
#include "rewriter/support/result.h"
#include "sim/exec/ranges/range_checks.h"

namespace gridloom::session {

class RangeChecks {
 public:
  /// Null unless checks were asked for.
  static std::unique_ptr<RangeChecks> Make();
  /// An error that says what is wrong with the setting.
  static Status CheckSetting();

  /// The kernel of a program that is loaded into `memory`, with release code and its profiler, or why it has none.
  /// Thread-safe.
  exec::RangedKernel Find(exec::DeviceMemory& memory, const std::shared_ptr<exec::Program>& program,
                          const std::string& kernel);
  /// The same of a program whose kernels have been looked for before.
  exec::RangedKernel Find(const std::shared_ptr<exec::Program>& program, const std::string& kernel);
  /// Runs a grid; with what it finds, when the kernel can be profiled. A grid that is traced always has the release
  /// code. Thread-safe.
  exec::LaunchFault Run(exec::Engine& engine, exec::DeviceMemory& memory, const exec::LaunchParams& launch,
                        exec::LaunchStats& stats);
  std::string Text() const;

 private:
  RangeChecks(passes::RangeForm form, std::uint64_t most_launches) : form_(form), most_launches_(most_launches) {}
  bool IsWanted(const std::string& kernel);

  /// Of grids with more CTAs a sample is compared, since the pages of each compared CTA are kept.
  static constexpr std::uint64_t kMostCtas = 250'000;

  struct Row {
    std::uint64_t launches = 0, begun = 0, unchecked = 0, sampled = 0, touched = 0, reported = 0, outside = 0;
    std::string why_not, missed, unbalanced;
  };

  const passes::RangeForm form_;
  const std::uint64_t most_launches_;  ///< that are checked, of each kernel
  mutable std::mutex mutex_;
  std::map<std::shared_ptr<const exec::Program>, std::shared_ptr<exec::RangedProgram>> programs_;
  std::map<std::string, Row> rows_;
};

}  // namespace gridloom::session
