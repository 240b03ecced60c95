// Finds pipelines of tasks in what programs launch: the same sequence of kernels in several streams.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// The launches of one stream, one after the other, from the first kernel of a pipeline to its last: what a data set
/// goes through.
struct DataSet {
  std::uint32_t tenant = 0, stream = 0;
  std::vector<std::uint64_t> codes;  ///< KernelView::code of its launches so far; the last one is the current
  std::uint64_t launch = 0;          ///< the current one
  bool here = false;                 ///< it is in the snapshot: it may run or does
  bool begun = false;                ///< a block of any of its launches has started
  bool followed = false;             ///< another launch comes behind it
  bool odd = false;                  ///< another sequence than the others'
  bool late = false;                 ///< its next launch was waited for in vain

  std::size_t stage() const { return codes.size() - 1; }
  /// Nothing of it is left to run.
  bool over() const { return !here && !followed; }
};

/// Follows what becomes ready and what ends, from snapshot to snapshot.
class Pipelines {
 public:
  /// To be called with every snapshot. True when launches came or ended since the last one.
  bool See(const Snapshot& snapshot);

  /// Data sets that are on their way, in the order in which they came.
  const std::vector<DataSet>& sets() const { return sets_; }
  /// Nobody waits any more for the next launches of data sets that have none now.
  void GiveUpWaiting();
  /// Whether the data set goes through a pipeline: two streams of the tenant at least have begun with its first kernel,
  /// and a second kernel follows.
  bool InPipeline(const DataSet& set) const;
  /// Whether the tenant has begun with its first kernel before, in any stream.
  bool Repeats(const DataSet& set) const;
  /// By code: the kernels of the pipeline that the data set goes through, as far as seen.
  std::span<const std::uint64_t> StagesOf(const DataSet& set) const;
  /// Launches that were in the last snapshot but one and are not in the last.
  const std::vector<std::uint64_t>& ended() const { return ended_; }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // tenant, code of the first kernel
  struct Group {
    std::set<std::uint32_t> streams;    ///< no more than two are kept
    std::vector<std::uint64_t> stages;  ///< the longest sequence seen
    bool followed = false;              ///< a first kernel was followed by another
    bool begun = false, again = false;  ///< one data set has begun with it, several have
  };
  void Arrive(const KernelView& kernel);
  void End(std::uint64_t launch);
  void Note(DataSet& set);
  void ForgetAbsent();
  static Key KeyOf(const DataSet& set) { return {set.tenant, set.codes.front()}; }

  std::vector<std::uint64_t> launches_, ended_;  // of the last snapshot
  std::vector<DataSet> sets_;
  std::map<Key, Group> groups_;
};

}  // namespace gridloom::policy
