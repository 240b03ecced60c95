// Runs the CTAs of launches that follow each other in an order drawn by lot, out of all those that the scoreboard of
// the CRCS paper allows (docs/ranges.md, "Out of order"): which pages each CTA may touch is what its kernel's profiler
// says. Memory ends up as if the launches had run one after the other, or a profiler has left something out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "sim/exec/engine.h"
#include "sim/exec/ranges/range_checks.h"
#include "sim/exec/reorder/page_owners.h"

namespace gridloom::exec {

/// Whether a page's owner keeps other kernels' CTAs away. Always; tests of this rule link a function that answers no.
bool PagesHaveOwners();

/// What came of a launch.
struct ReorderedRun {
  LaunchStats stats;
  std::string why_whole;  ///< not empty: it ran as it is, with all before it done
};

class Reorderer {
 public:
  struct Options {
    std::uint64_t seed = 0;
    bool heed_owners = PagesHaveOwners();
    std::function<bool()> stop = [] { return false; };  ///< asked before CTAs run; true: no more do
  };
  struct Counts {
    std::uint64_t batches = 0;  ///< sets of launches whose CTAs could mix
    std::uint64_t launches = 0, ctas = 0;
    std::uint64_t ahead = 0;         ///< CTAs that ran before an older launch had ended
    std::uint64_t side_by_side = 0;  ///< most launches that had begun and not ended at the same time
  };

  Reorderer(Engine& engine, const DeviceMemory& memory, Options options)
      : engine_(engine), memory_(memory), options_(std::move(options)) {}

  struct Added {
    LaunchParams launch;          ///< neither cooperative, of clusters, nor a slice
    RangedKernel kernel;          ///< of `launch.kernel`
    bool in_turn = false;         ///< its own CTAs run one after the other, in their order
    bool profiler_reads = false;  ///< memory that kernels before it may write
  };
  /// Runs the kernel's profiler; what it was given before runs first where it must. What `added` and `run` point to
  /// lives until RunOut has ended. The fault is of this launch or of one before.
  LaunchFault Add(Added added, ReorderedRun& run);
  /// Runs everything that was added to its end, or to the first fault.
  LaunchFault RunOut();

  const Counts& counts() const { return counts_; }

 private:
  struct Entry {
    Added added;
    ReorderedRun* run = nullptr;
    std::uint64_t grid_id = 0;
    std::uint64_t left = 0;  ///< CTAs that have not ended
    bool begun = false;
  };

  LaunchFault RunWhole(const Added& added, ReorderedRun& run, std::string why);
  LaunchFault RunSome(Entry& entry, std::span<const std::uint64_t> ctas);
  void Count(std::uint32_t kernel, std::uint64_t ctas);

  Engine& engine_;
  const DeviceMemory& memory_;
  const Options options_;
  std::vector<Entry> entries_;
  std::vector<PageOwners::Kernel> pages_;  ///< by entry
  Counts counts_;
};

}  // namespace gridloom::exec
