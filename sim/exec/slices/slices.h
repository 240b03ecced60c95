// Grids that run as sequences of slices: consecutive CTAs, with code rewritten by rewriter/passes/slice.h
// (docs/passes.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewriter/passes/rewrite_cache.h"
#include "sim/exec/engine.h"
#include "sim/exec/program.h"

namespace gridloom::exec {

/// A kernel as the slice pass left it, or why it did not.
struct SlicedKernel {
  std::shared_ptr<Program> program;  ///< null: it runs whole, because
  std::string why_whole;
  const KernelInfo* info = nullptr;
  std::vector<passes::HiddenParam> hidden = {};
};

/// The sliced kernels of one program. The module is rewritten when the first of them is asked for. Thread-safe.
class SlicedProgram {
 public:
  /// `memory` is the one that the original was loaded into; it and `rewrites` live longer than the result.
  SlicedProgram(std::shared_ptr<Program> original, DeviceMemory& memory, passes::RewriteCache& rewrites)
      : original_(std::move(original)), memory_(memory), rewrites_(rewrites) {}

  /// Never null.
  std::shared_ptr<const SlicedKernel> Find(const std::string& kernel);

 private:
  Status Rewrite();

  const std::shared_ptr<Program> original_;
  DeviceMemory& memory_;
  passes::RewriteCache& rewrites_;
  std::mutex mutex_;
  bool rewritten_ = false;
  std::string error_;
  std::shared_ptr<Program> program_;
  passes::CachedRewrite rewrite_;
};

/// A kernel of a program that was written to a file with sliced kernels inside (rewriter/passes/launch_fills.h): it is
/// its own sliced form, and has no other. Null for any other kernel.
std::shared_ptr<const SlicedKernel> FindSlicedAlready(const std::shared_ptr<Program>& program,
                                                      const KernelInfo& kernel);

/// What came of a grid that ran in slices.
struct SlicedRun {
  LaunchFault fault;  ///< the first one; no slice ran after it
  LaunchStats stats;  ///< the sum of all slices
  std::uint64_t slices = 0;
};

/// Runs a grid in slices of at most `slice_size` CTAs, in order. `whole` describes the launch of the original kernel;
/// it is neither cooperative nor of clusters. Stops before a slice when `stop` answers true.
SlicedRun RunInSlices(
    Engine& engine, const LaunchParams& whole, const SlicedKernel& kernel, std::uint64_t slice_size,
    const std::function<bool()>& stop = [] { return false; });

/// One slice: CTAs first to first + count - 1 of the grid of `whole`, no more than passes::LongestSlice. The slices of
/// a grid share `grid_id` (Engine::NewGridId). They may run in any order, and at the same time.
LaunchFault RunSlice(Engine& engine, const LaunchParams& whole, const SlicedKernel& kernel, std::uint64_t first,
                     std::uint64_t count, std::uint64_t grid_id, LaunchStats* stats = nullptr);

}  // namespace gridloom::exec
