// A timing model in this process, for this program alone.
#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "interpose/observe/timeline.h"
#include "rewriter/support/result.h"
#include "sim/study/measure/policy_supply.h"
#include "sim/timing/live/live_source.h"
#include "sim/timing/live/live_timeline.h"
#include "sim/timing/live/program_works.h"

namespace gridloom::session {

class OwnTimeline final : public Timeline {
 public:
  struct Options {
    std::string policy;
    std::string profiles;  ///< file with profiles of kernels; empty: those that the policy needs are measured
    unsigned threads = 1;
    std::uint64_t store_bytes = 0;
  };
  static Result<std::unique_ptr<Timeline>> Create(const sim::DeviceSpec& device, const Options& options);

  std::uint64_t BeforeCopy(const trace::HostAction& action) override;
  void BeforeGroup(std::uint64_t to_device, std::uint64_t to_host) override;
  void Add(const trace::HostAction& action, std::uint64_t storage) override;
  std::shared_ptr<trace::CtaSink> AddLaunch(const trace::HostAction& action, const trace::KernelCode& code,
                                            const trace::LaunchShape& shape, bool opens) override;
  std::shared_ptr<RangedLaunch> AddRanged(const trace::HostAction& action, const trace::KernelCode& profiler,
                                          const trace::LaunchShape& shape) override;
  Status Fits(const trace::LaunchShape& shape) const override;
  void CloseGroup(std::uint64_t group) override;
  bool overlapped() const override { return works_.overlapped(); }
  bool Wait(std::span<const std::uint64_t> works, bool sees) override { return works_.Wait(NodesOf(works), sees); }
  std::optional<bool> Ask(std::span<const std::uint64_t> works, bool sees) override;
  std::optional<double> EndNs(std::uint64_t work) override;
  std::string problem() const override { return timeline_->problem(); }
  TimingTable Finish() override;

 private:
  class Ranged;
  OwnTimeline(std::unique_ptr<timing::LiveTimeline> timeline, std::shared_ptr<const study::PolicySupply> supply,
              bool overlapped, const Options& options);
  timing::Place PlaceOf(const trace::HostAction& action);
  timing::NodeId NodeOf(std::uint64_t work) const;
  std::vector<timing::NodeId> NodesOf(std::span<const std::uint64_t> works) const;
  void Know(std::uint64_t work, timing::NodeId node);
  void LeaveRunning();
  std::shared_ptr<timing::LiveSource> NewSource(const trace::KernelCode& code, const trace::LaunchShape& shape);

  const std::unique_ptr<timing::LiveTimeline> timeline_;
  const std::shared_ptr<const study::PolicySupply> supply_;
  const std::string policy_;
  const timing::HostId host_;
  const std::shared_ptr<timing::TraceStore> store_;
  timing::ProgramWorks works_;
  mutable std::mutex mutex_;
  /// By work: of its node. There are more nodes than works: what comes with these has nodes of its own.
  std::vector<std::uint32_t> numbers_;
  std::vector<std::weak_ptr<timing::LiveSource>> sources_;  ///< of kernels that may still run
  std::vector<std::weak_ptr<Ranged>> undecided_;            ///< launches; some have been decided
  std::set<std::uint64_t> open_;                            ///< groups
};

}  // namespace gridloom::session
