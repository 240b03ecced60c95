// Runs grids with their profilers and release code, and compares the ranges they report with the pages they really
// touch (docs/ranges.md): the test of rewriter/passes/profile.h and release.h on whole programs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewriter/passes/range_calls.h"
#include "rewriter/passes/rewrite_cache.h"
#include "sim/exec/engine.h"
#include "sim/exec/program.h"

namespace gridloom::exec {

/// A kernel with its profiler, or why it has none.
struct RangedKernel {
  std::shared_ptr<Program> program;  ///< null: it runs as it is, because
  std::string why_not;
  const KernelInfo* info = nullptr;  ///< with release code
  const KernelInfo* profiler = nullptr;
  std::vector<passes::HiddenParam> hidden = {};  ///< of the profiler: the size of the block
};

/// The kernels of one program, rewritten when the first of them is asked for. Thread-safe.
class RangedProgram {
 public:
  /// `memory` is the one that the original was loaded into; it and `rewrites` live longer than the result.
  RangedProgram(std::shared_ptr<const Program> original, DeviceMemory& memory, passes::RewriteCache& rewrites,
                passes::RangeForm form)
      : original_(std::move(original)), memory_(memory), rewrites_(rewrites), form_(form) {}

  RangedKernel Find(const std::string& kernel);

 private:
  Status Rewrite();

  const std::shared_ptr<const Program> original_;
  DeviceMemory& memory_;
  passes::RewriteCache& rewrites_;
  const passes::RangeForm form_;
  std::mutex mutex_;
  bool rewritten_ = false;
  std::string error_;
  std::shared_ptr<Program> program_;
  passes::CachedRewrite rewrite_;
};

/// The launch of a kernel's profiler before the launch `whole`: its parameters, which are kept in `params`, and the
/// size of its blocks, one thread per CTA.
LaunchParams ProfilerLaunch(const LaunchParams& whole, const RangedKernel& kernel, std::vector<std::byte>& params);

/// What came of one launch.
struct RangeFindings {
  std::uint64_t touched = 0, reported = 0;  ///< pages, summed over the CTAs
  std::uint64_t set_calls = 0;
  bool sampled = false;  ///< pages were compared for some of the CTAs only
  /// Pages touched that belong to no allocation: a fault of the kernel, which no range can hold.
  std::uint64_t outside = 0;
  std::string missed;      ///< the first page that a CTA touched and had not reported, or not for that use
  std::string unbalanced;  ///< the first page that was set and not released as often, or the other way round
};

/// Runs the profiler, then the kernel in place of the one that `whole` names. `page_bytes` is that of the reference
/// counts, which count all CTAs; pages are compared for a sample of at most about `most_ctas` of them.
LaunchFault RunWithRanges(Engine& engine, const DeviceMemory& memory, const LaunchParams& whole,
                          const RangedKernel& kernel, std::uint32_t page_bytes, std::uint64_t most_ctas,
                          RangeFindings& findings, LaunchStats* stats = nullptr);

}  // namespace gridloom::exec
