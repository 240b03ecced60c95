// Task pipelines (S. Mu et al., "Exploiting the task-pipelined parallelism of stream programs on many-core GPUs", IEICE
// Trans. E96-D, 2013): kernels that process different data sets run side by side, each on multiprocessors of its own,
// as many as let all of them end at the same time. docs/pipelines.md has what the paper leaves open.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/policy/pipelines.h"
#include "scheduler/policy/policy.h"
#include "scheduler/policy/scaling_model.h"
#include "scheduler/policy/share_table.h"
#include "scheduler/policy/tenant_service.h"

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
  std::uint32_t together = 2;  ///< kernels that run side by side at most; the paper has 2
  /// By the stages whose kernels run side by side, the most advanced first: their multiprocessors. In place of the
  /// search.
  std::map<std::vector<std::size_t>, std::vector<std::uint32_t>> fixed{};
  std::shared_ptr<std::vector<DkaStep>> log{};  ///< if not null, gets every step: for studies
};

/// The dynamic kernel allocator. Time goes in steps: a step runs the kernel that the oldest data set has come to beside
/// one that the next data set has come to, a stage behind it, and ends when both have ended (Fig. 5). With three stages
/// that is K1-K2, K2-K3, K3-K1 and so on. The first data set runs alone, so that each kernel's time on the whole device
/// is known (section 3.1).
///
/// What is in no pipeline runs as under `leftover`, between two steps, in the order in which it became ready.
///
/// Of several tenants (not in the paper) the one that has had least by its weight has the turn. A step runs the kernel
/// that its oldest data set has come to beside one of the tenant that comes next, on as many multiprocessors as let
/// both end together; and while the longer one runs, the tenant of the shorter one goes on with what ends before it
/// does. Who is behind by more than half a step has as many as all blocks of its kernel have room on, and the other one
/// the rest; where that is the whole device, it runs a step of its own. One stream is enough here, if its kernels come
/// again and again.
class Dka final : public Policy {
 public:
  /// `scaling`: if not null, a search begins at what it expects. `name`: with it this is another policy; a literal.
  explicit Dka(DkaOptions options = {}, std::shared_ptr<const ScalingModel> scaling = nullptr,
               std::string_view name = "dka")
      : options_(std::move(options)), scaling_(std::move(scaling)), name_(name), together_(options_.together) {}
  std::string_view name() const override { return name_; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
  std::optional<std::uint64_t> Again() const override { return wait_until_; }

  // ---- for policies that go by what it finds out (dka_guarded.h) ----
  /// Follows what happens, without a decision. Next does it, too.
  void Watch(const Snapshot& snapshot);
  bool between_steps() const { return !step_; }
  const Pipelines& pipelines() const { return pipelines_; }
  /// By KernelView::code: what a kernel takes on all multiprocessors, alone.
  const std::map<std::uint64_t, double>& alone() const { return alone_; }
  bool several_tenants() const { return turns_.size() > 1; }
  /// Once the shares of all kernels of the pipeline that run side by side have been found: how much more is done in a
  /// time than by one kernel after the other. `stages`: Pipelines::StagesOf.
  std::optional<double> Gain(std::span<const std::uint64_t> stages) const;
  std::uint32_t together() const { return together_; }
  /// From the next step on: at least 2.
  void SetTogether(std::uint32_t together) { together_ = together; }

 private:
  /// One kernel of a step.
  struct Part {
    std::uint64_t launch = 0, code = 0, profile = 0;
    std::size_t stage = 0;
    std::uint32_t tenant = 0;
    std::vector<std::uint32_t> sms{};      ///< rising
    std::optional<std::uint64_t> ended{};  ///< cycle
    std::optional<std::uint64_t> extra{};  ///< launch of the tenant that has run there since
    std::uint32_t wanted = 0;  ///< multiprocessors that it has to have, whatever lets all end together; 0: no matter
  };
  struct Step {
    std::uint64_t begin = 0;
    std::vector<Part> parts;  ///< of one tenant: the most advanced stage first; of several: by their numbers
    bool measured = true;     ///< nobody else had blocks on the device
    double expected = 0;      ///< how long it takes, where several tenants share it; else 0
  };
  using Codes = std::vector<std::uint64_t>;  // of a step's parts

  void NoteEnds(std::uint64_t cycle);
  void EndStep();
  void Log(const Step& step) const;
  std::optional<Slice> NextOfStep(const Snapshot& snapshot);
  void RunExtras(const Snapshot& snapshot);
  /// Launches of the next step; nothing: one that belongs to it is to come.
  std::optional<std::vector<Part>> Candidates(const Snapshot& snapshot);
  std::vector<Part> CandidatesOfTenants(const Snapshot& snapshot) const;
  std::optional<Part> Lead(const Snapshot& snapshot, std::uint32_t tenant) const;
  bool IsBehind(std::uint32_t tenant, std::uint32_t other) const;
  bool WaitFor(std::uint64_t cycle);
  void Begin(const Snapshot& snapshot, std::vector<Part> parts);
  void Share(const Snapshot& snapshot, std::vector<Part>& parts);
  std::vector<std::uint32_t> SharesOf(const std::vector<Part>& parts, std::uint32_t sms);
  static std::uint32_t RequiredSms(const Snapshot& snapshot, std::uint64_t launch);
  ShareTable& TableOf(std::span<const Part> parts, std::uint32_t sms);
  bool OthersRun(const Snapshot& snapshot, const std::vector<Part>& parts) const;
  const KernelView* Other(const Snapshot& snapshot) const;
  bool Allots(const DataSet& set) const;

  const DkaOptions options_;
  const std::shared_ptr<const ScalingModel> scaling_;
  const std::string_view name_;
  std::uint32_t together_;
  Pipelines pipelines_;
  TenantService service_;
  std::vector<std::uint32_t> turns_;  // tenants, who is furthest behind first
  std::optional<Step> step_;
  std::map<std::uint64_t, double> alone_;  // by code: time on all multiprocessors
  std::map<Codes, ShareTable> tables_;
  std::uint64_t last_step_ = 0;                 // how long it took
  std::optional<std::uint64_t> waiting_since_;  // for a launch that is to come
  std::optional<std::uint64_t> wait_until_;
};

}  // namespace gridloom::policy
