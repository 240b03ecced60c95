// Which CTAs of a kernel can run to their end, because their kernel owns all the pages that they will touch; and which
// may begin, because half of what they read is there. Beyond the paper: it needs the ranges of single CTAs, which CRCS
// forgets once they are counted.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "sim/hardware/crcs/reference_counts.h"
#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::hardware::crcs {

/// The CTAs of one kernel.
class Readiness {
 public:
  /// What a CTA announced. Before Build.
  void Announce(std::uint64_t cta, const std::vector<PageRange>& pages, std::uint8_t flags);
  /// What CTAs announced that the kernel does not have is left out.
  void Build(std::uint64_t ctas);
  /// The kernel owns the page now.
  void Own(std::uint64_t page);
  void Start(std::uint64_t cta);

  /// CTAs that have not been started: with all of their pages; with half of those that they read, or, where they read
  /// none, with all.
  std::uint64_t ready() const { return ready_.size(); }
  std::uint64_t begun() const { return begun_.size(); }
  /// The first of them; there is one.
  std::uint64_t FirstReady() const { return *ready_.begin(); }
  std::uint64_t FirstBegun() const { return *begun_.begin(); }
  std::uint64_t FirstLeft() const { return *left_.begin(); }

 private:
  struct Announced {
    std::uint64_t cta = 0;
    PageRange pages;
    bool reads = false;
  };
  /// Pages that the same CTAs use. CTAs are told when half of them are there, and when all are.
  struct Run {
    PageRange pages;
    std::uint64_t missing = 0;  ///< pages that the kernel does not own
    std::vector<std::uint32_t> users{}, readers{};
  };
  struct Cta {
    std::uint32_t missing_runs = 0;     ///< of all that it touches
    std::uint64_t reads = 0, here = 0;  ///< pages that it reads, and how many of them are there, by halves of runs
    bool may_begin() const { return missing_runs == 0 || (reads != 0 && 2 * here >= reads); }
  };
  void Came(const Run& run, std::uint64_t pages);
  void BeginIfMay(std::uint32_t cta);

  std::vector<Announced> announced_;
  std::vector<Run> runs_;
  std::vector<Cta> ctas_;
  std::set<std::uint64_t> left_, ready_, begun_;
};

}  // namespace gridloom::hardware::crcs
