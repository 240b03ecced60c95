// The kernel distributor with what dynamic thread block launch adds to it (J. Wang et al., ISCA 2015, section 4.2, Fig.
// 4): which kernels run, and of each the groups of thread blocks that have joined it, one behind the other.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::hardware {

/// Thread blocks that one launch added to a kernel.
struct Group {
  timing::WorkId launch = timing::kNoWork;
  std::uint64_t first_cta = 0, ctas = 0;  ///< as the kernel counts its blocks
  std::optional<std::uint32_t> entry{};   ///< of the group table; nothing: its information is in global memory
  timing::Cycle loaded = timing::kNever;  ///< from there, then; kNever: nobody has asked for it
};

/// An entry (KDE).
struct RunningKernel {
  timing::WorkId kernel = timing::kNoWork;
  std::uint64_t code = 0;  ///< as policy::KernelView::code: entry PC and block configuration
  std::uint32_t address_space = 0, warps_per_cta = 0;
  std::uint64_t native_ctas = 0, ctas = 0;  ///< of the launch; with those of groups
  std::uint64_t started = 0;
  /// Groups that have blocks to start: NAGEI is the first, LAGEI the last.
  std::deque<Group> waiting{};
};

class Distributor {
 public:
  /// Takes the first free entry.
  void Add(RunningKernel kernel);
  void Remove(timing::WorkId kernel);
  /// Null: it does not run.
  RunningKernel* Find(timing::WorkId kernel);
  /// The first entry that a group of such code may join; null: none.
  RunningKernel* FindLike(std::uint64_t code, std::uint32_t address_space);
  /// Behind all blocks that the kernel has.
  static void Join(RunningKernel& kernel, Group group);
  /// A block of the kernel has started; groups whose last one it was leave the pool.
  static void Start(RunningKernel& kernel);
  /// The group that the next block to start belongs to; null: it is the launch's own, or there is none.
  static Group* Next(RunningKernel& kernel);

  std::size_t entries() const { return entries_.size(); }  ///< that were ever in use at a time

 private:
  std::vector<std::optional<RunningKernel>> entries_;
  std::unordered_map<timing::WorkId, std::size_t> entry_of_;
};

}  // namespace gridloom::hardware
