// Compiled kernels of one program in memory. A kernel is built once per block shape. From the third on, shapes of one
// row of whole warps share a version (kRowOfWarps): programs that try block sizes would wait for a build each. The
// ninth shape and all later ones share a version that works for any. Thread-safe; two launches of the same kernel wait
// for one build.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/contract/abi.h"
#include "sim/exec/runtime/object_loader.h"

namespace gridloom::exec {

class InterpretedCode;
struct LoadedKernel;

/// What becomes of a kernel that is interpreted: how much it is used, and its machine code, once that is there.
struct TierState {
  std::atomic<const LoadedKernel*> better{nullptr};  ///< `machine_code`, when it may be used
  std::mutex mutex;                                  ///< of machine_code
  std::unique_ptr<LoadedKernel> machine_code;
  std::atomic<std::uint32_t> launches{0}, running{0};  ///< a launch of an earlier process counts as one
  std::atomic<bool> asked{false};                      ///< somebody is making it, or has tried
};

/// A kernel ready to run.
struct LoadedKernel : KernelFacts {
  std::unique_ptr<CodeObject> code;
  WarpEntry entry = nullptr;
  std::shared_ptr<const InterpretedCode> interpreted;  ///< in place of `code`: bytecode, and `entry` is InterpretWarp
  std::shared_ptr<TierState> tier;  ///< of an interpreted kernel that machine code will take over from
  CtaEntry cta_entry = nullptr;     ///< in place of `entry`: runs all warps of a CTA
  std::uint32_t dynamic_shared_offset = 0;
  std::uint32_t reserved_shared_bytes = 0;       ///< zeroed when a CTA begins (SharedLayout)
  std::vector<std::uint32_t> instruction_lines;  ///< by the numbers in records; empty when nothing is recorded
  bool cache_hit = false;
  CompileOptions options;  ///< it was compiled with
  double build_seconds = 0;
  /// What the first unit of a grid took when it was last timed, and how many grids have not been since; through
  /// std::atomic_ref, as what follows.
  mutable std::uint64_t unit_ns = 0;
  mutable std::uint32_t untimed_grids = 0;
  mutable bool build_reported = false;  ///< a launch's statistics have said build_seconds; through std::atomic_ref
  mutable bool stray_reported = false;  ///< the log has said that it uses memory nobody allocated; likewise
};

class KernelTable {
 public:
  struct Built {
    Result<LoadedKernel> kernel;
    bool lasts = true;  ///< false: an error that the next launch need not meet, and tries again
  };
  using Build = std::function<Built(const CompileOptions&)>;
  struct Found {
    const LoadedKernel* kernel = nullptr;  ///< lives as long as the table
    bool built_now = false;
  };
  /// `wanted` is specialised on a block shape; the kernel found may not be.
  Result<Found> Get(const ptx::Function* function, const CompileOptions& wanted, const Build& build);

 private:
  static constexpr std::size_t kOwnShapes = 2;  ///< before rows of warps share a version
  static constexpr std::size_t kMaxShapes = 8;
  struct Slot {
    std::uint32_t block[3];
    bool small_grid, clusters, memcheck;
    Recording record;
    std::mutex building;
    std::atomic<bool> settled{false};  ///< neither `kernel` nor `error` changes any more
    std::unique_ptr<LoadedKernel> kernel;
    std::string error;

    bool MatchesButForBlock(const CompileOptions& options) const;
    bool Matches(const CompileOptions& options) const;
  };
  std::shared_ptr<Slot> SlotFor(const ptx::Function* function, CompileOptions& options);

  std::mutex mutex_;
  std::unordered_map<const ptx::Function*, std::vector<std::shared_ptr<Slot>>> slots_;
};

}  // namespace gridloom::exec
