// Task pipelines (S. Mu et al., "Exploiting the task-pipelined parallelism of stream programs on many-core GPUs", IEICE Trans. E96-D,
// 2013): kernels that process different data sets run side by side, each on multiprocessors of its own, as many as let all of them end at
// the same time. docs/pipelines.md has what the paper leaves open.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/policy/pair_table.h"
#include "scheduler/policy/pipelines.h"
#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// A step that has ended.
struct DkaStep {
  struct Kernel {
    std::uint64_t launch = 0, code = 0;
    std::size_t stage = 0;
    std::uint32_t sms = 0;
    std::uint64_t took = 0;  ///< since the step's begin
  };
  std::uint64_t begin = 0;
  std::vector<Kernel> kernels;  ///< the most advanced stage first
};

struct DkaOptions {
  /// Kernels that run side by side at most. More than two have a share each that is given here; nothing searches for it.
  std::uint32_t together = 2;
  /// By the stages whose kernels run side by side, the most advanced first: their multiprocessors. In place of the search.
  std::map<std::vector<std::size_t>, std::vector<std::uint32_t>> fixed{};
  std::shared_ptr<std::vector<DkaStep>> log{};  ///< if not null, gets every step: for studies
};

/// The dynamic kernel allocator. Time goes in steps: a step runs the kernel that the oldest data set has come to beside one that the next
/// data set has come to, a stage behind it, and ends when both have ended (Fig. 5). With three stages that is K1-K2, K2-K3, K3-K1 and so
/// on. The first data set runs alone, so that each kernel's time on the whole device is known (section 3.1).
///
/// What is in no pipeline runs as under `leftover`, between two steps, in the order in which it became ready.
class Dka final : public Policy {
 public:
  explicit Dka(DkaOptions options = {}) : options_(std::move(options)) {}
  std::string_view name() const override { return "dka"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
  std::optional<std::uint64_t> Again() const override { return wait_until_; }

  // ---- for policies that go by what it finds out (dka_guarded.h) ----
  /// Follows what happens, without a decision. Next does it, too.
  void Watch(const Snapshot& snapshot);
  bool between_steps() const { return !step_; }
  const Pipelines& pipelines() const { return pipelines_; }
  /// By KernelView::code: what a kernel takes on all multiprocessors, alone.
  const std::map<std::uint64_t, double>& alone() const { return alone_; }
  /// Once the splits of all pairs have been found: how much more is done in a time than by one kernel after the other.
  std::optional<double> Gain() const;

 private:
  /// One kernel of a step.
  struct Part {
    std::uint64_t launch = 0, code = 0;
    std::size_t stage = 0;
    std::vector<std::uint32_t> sms;        ///< rising
    std::optional<std::uint64_t> ended{};  ///< cycle
  };
  struct Step {
    std::uint64_t begin = 0;
    std::vector<Part> parts;  ///< the most advanced stage first
    bool measured = true;     ///< nobody else had blocks on the device
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;  // codes, the more advanced one first

  void NoteEnds(std::uint64_t cycle);
  void EndStep();
  void Log(const Step& step) const;
  std::optional<Slice> NextOfStep(const Snapshot& snapshot);
  /// Launches of the next step; nothing: one that belongs to it is to come.
  std::optional<std::vector<Part>> Candidates(const Snapshot& snapshot);
  bool WaitFor(std::uint64_t cycle);
  void Begin(const Snapshot& snapshot, std::vector<Part> parts);
  void Share(const Snapshot& snapshot, std::vector<Part>& parts);
  std::vector<std::uint32_t> SharesOf(const std::vector<Part>& parts, std::uint32_t sms);
  bool OthersRun(const Snapshot& snapshot, const std::vector<Part>& parts) const;
  const KernelView* Other(const Snapshot& snapshot) const;

  const DkaOptions options_;
  Pipelines pipelines_;
  std::optional<Step> step_;
  std::map<std::uint64_t, double> alone_;  // by code: time on all multiprocessors
  std::map<Pair, PairTable> tables_;
  std::uint64_t last_step_ = 0;                 // how long it took
  std::optional<std::uint64_t> waiting_since_;  // for a launch that is to come
  std::optional<std::uint64_t> wait_until_;
};

}  // namespace gridloom::policy
