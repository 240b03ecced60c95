// A timing model in this process, for this program alone.
#pragma once

#include <mutex>
#include <vector>

#include "interpose/session/timeline.h"
#include "rewriter/support/result.h"
#include "sim/study/measure/policy_supply.h"
#include "sim/timing/live/live_source.h"
#include "sim/timing/live/live_timeline.h"

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

  void Add(const trace::HostAction& action) override;
  std::shared_ptr<trace::CtaSink> AddLaunch(const trace::HostAction& action, const trace::KernelCode& code, const trace::LaunchShape& shape,
                                            bool opens) override;
  void CloseGroup(std::uint64_t group) override { timeline_->CloseGroup(group); }
  bool Wait(std::span<const std::uint64_t> works) override { return timeline_->WaitFor(host_, works); }
  std::optional<bool> Ask(std::span<const std::uint64_t> works) override;
  std::optional<double> EndNs(std::uint64_t work) override;
  std::string problem() const override { return timeline_->problem(); }
  TimingTable Finish() override;

 private:
  OwnTimeline(std::unique_ptr<timing::LiveTimeline> timeline, std::shared_ptr<const study::PolicySupply> supply, const Options& options);
  timing::Place PlaceOf(const trace::HostAction& action) const;

  const std::unique_ptr<timing::LiveTimeline> timeline_;
  const std::shared_ptr<const study::PolicySupply> supply_;
  const std::string policy_;
  const timing::HostId host_;
  const std::shared_ptr<timing::TraceStore> store_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<timing::LiveSource>> sources_;  ///< of kernels that may still run
};

}  // namespace gridloom::session
