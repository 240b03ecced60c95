// Beyond the paper on task pipelines: the allocator's splits where they were measured to pay, and no split elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/policy/dka.h"

namespace gridloom::policy {

/// There are two alternatives to a split, under which nobody waits for the end of a step and any number of kernels run
/// at once. Deep: the oldest data set's kernels first, those of the next ones in the room that is left; few data sets
/// are on their way, whose data L2 may hold. Wide: kernels in the order in which they became ready, as under
/// `leftover`.
///
/// Where all kernels are light (Eq. 1: all of their blocks have room at once) they run wide from the beginning: a split
/// would leave room empty. Else the allocator searches; then three data sets' worth of work are done deep, three wide,
/// and what did most in a time goes on. If that is the split, one kernel more side by side is tried, as long as that
/// pays. Work is counted in blocks that have ended, each as long as its kernel takes on the whole device by its number
/// of blocks. The first data set's worth of a trial does not count: until then blocks are on their way that have not
/// ended, or were begun before. Where all data sets have come to the same kernel there is nothing to split. Several
/// tenants' kernels always have shares, since only those keep weights.
class GuardedDka final : public Policy {
 public:
  std::string_view name() const override { return "dka-guarded"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
  std::optional<std::uint64_t> Again() const override { return again_; }

  enum class Mode : std::uint8_t { kSearch, kTryDeep, kTryWide, kTrySplit, kSplit, kDeep, kWide };
  Mode mode() const { return mode_; }

 private:
  bool HasHeavy(const Snapshot& snapshot);
  void CountWork(const Snapshot& snapshot);
  void ChooseMode(std::uint64_t cycle);
  void EndSearch(std::uint64_t cycle);
  void TrySplit(std::uint64_t cycle);
  void EndTrial(double gain, std::uint64_t cycle);
  void Settle();
  bool CanSplit(const Snapshot& snapshot) const;
  void BeginTrial(Mode mode, std::uint64_t cycle);
  bool tries() const { return mode_ == Mode::kTryDeep || mode_ == Mode::kTryWide || mode_ == Mode::kTrySplit; }
  std::optional<Slice> NextUnsplit(const Snapshot& snapshot, bool deep) const;

  Dka allocator_;
  Mode mode_ = Mode::kSearch;
  std::set<std::pair<std::uint32_t, std::uint64_t>> known_, heavy_;  // pipelines: tenant, code of the first kernel
  std::optional<SmView> empty_;                                      // a multiprocessor without blocks
  std::unordered_map<std::uint64_t, std::uint64_t> finished_;        // by launch: blocks, when they were counted
  std::unordered_map<std::uint64_t, double> rest_;                   // by launch: work that it had still to do then
  double work_ = 0;                                                  // since the trial began
  double split_gain_ = 0;              // over one kernel after the other, as the search says
  std::vector<std::uint64_t> stages_;  // codes of the heavy pipeline's kernels
  struct Best {
    Mode mode = Mode::kSplit;
    double gain = 0;  // over one kernel after the other, in its trial
    std::uint32_t together = 2;
  } best_;
  std::uint64_t trial_began_ = 0;
  bool tried_ = false;  // deep and wide
  bool warm_ = false;   // its first data set's worth of work is done
  std::optional<std::uint64_t> again_;
};

}  // namespace gridloom::policy
