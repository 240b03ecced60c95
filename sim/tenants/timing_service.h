// The broker's timing model: one device, on which the works of all sessions are simulated under one policy while the
// programs run (docs/broker.md, "Simulated time").
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/core/simulation.h"
#include "scheduler/policy/limited.h"
#include "sim/device/device_spec.h"
#include "sim/study/measure/policy_supply.h"
#include "sim/tenants/alone_devices.h"
#include "sim/tenants/longest_launch.h"
#include "sim/tenants/tenant_account.h"
#include "sim/timing/live/live_source.h"
#include "sim/timing/live/live_timeline.h"

namespace gridloom::tenants {

class TenantChannel;
class SwitchablePolicy;

/// The broker's thread calls the functions of sched::Simulation. They wait for nobody who waits for the model: neither
/// for the model's lock nor for a session.
class TimingService final : public sched::Simulation {
 public:
  struct Options {
    std::string policy = "fair";
    std::string profiles{};  ///< file with profiles of kernels; empty: those that the policy needs are measured as
                             ///< launches come
    std::function<void(const std::string& sentence)> tell{};  ///< for the operator; on the simulation's thread
    unsigned threads = 1;                                     ///< of the host, for the simulation
    unsigned wait_for = 0;  ///< nothing is simulated until so many sessions are there; they begin at the same time
    unsigned patience_ms = 10'000;   ///< a host that says nothing for so long does not hold the others back
    TenantAccount::Limits tenant{};  ///< what the sessions of one tenant may take of memory and disk
    double launch_seconds = 10;      ///< simulated time of its own after which a launch ends its session; 0: none
    std::uint32_t alone = 0;  ///< so many tenants at a time are simulated alone, too: what the others slow them down by
  };
  static Result<std::unique_ptr<TimingService>> Create(sim::DeviceSpec device, Options options);
  ~TimingService() override;

  void OnViolation(Violation violation) override;
  Result<protocol::Fd> Join(const sched::SimulatedSession& session) override;
  void Leave(std::uint64_t session) override;
  void Watch(std::uint64_t session, bool active, std::uint32_t timeout_s) override;
  /// Launches that may run later have what it needs of them.
  Status SetPolicy(std::string_view name) override;
  void SetLimits(std::uint32_t tenant, const sched::TenantLimits& limits) override;
  double now_seconds() const override;
  double end_seconds() const override;
  std::string problem() const override { return timeline_->problem(); }
  sched::SimulatedUsage usage(std::uint32_t tenant) const override;
  sched::SimulatedProfiling profiling() const override;
  timing::LiveTimeline::Kept kept() const { return timeline_->kept(); }
  /// What a tenant's sessions have of memory now.
  std::uint64_t bytes(std::uint32_t tenant) const;

 private:
  friend class TenantChannel;
  explicit TimingService(Options options);
  void Ended(timing::HostId host, const timing::WorkResult& work, const timing::Counters& during);
  /// Waits until the session's turn to begin has come: it has a host. False when it has left before.
  bool Begin(TenantChannel& channel);
  void NodeEnded(timing::NodeId node, timing::Cycle end);
  using Channels = std::vector<std::shared_ptr<TenantChannel>>;
  Channels TakeBeginning();
  void AddHosts(const Channels& channels);
  void AddHost(TenantChannel& channel, bool others);
  /// What the host's works took so far.
  timing::KernelTable TableOf(timing::HostId host);
  void Forget(timing::HostId host);
  timing::KernelOwner OwnerOf(std::uint32_t tenant) const;
  policy::Limited::Limits LimitsOf(std::uint32_t tenant) const;
  void Report(std::uint64_t session, const std::string& why);
  void AttendHosts();
  LongestLaunch TakeLongest(timing::HostId host) const;
  timing::Cycle MostRunningTime(const TenantChannel& channel, const Channels& there) const;
  std::shared_ptr<TenantAccount> AccountOf(std::uint32_t tenant);
  TenantAccount::Limits AccountLimits() const;

  /// What is known of a host's works that have ended.
  struct HostRecord {
    std::uint32_t tenant = 0;
    std::shared_ptr<TenantAccount> account;
    std::shared_ptr<Charge> works;           ///< until the model has let go of them
    std::shared_ptr<SharingRecord> sharing;  ///< of one that is simulated alone, too
    std::mutex mutex;                        ///< guards what follows
    timing::KernelTable table;
    LongestLaunch longest;  ///< of those that have ended since somebody looked
  };

  const Options options_;
  std::shared_ptr<study::PolicySupply> supply_;
  SwitchablePolicy* policy_ = nullptr;  ///< the timeline's
  std::uint64_t most_copy_bytes_ = 0;   ///< what the device has
  std::string parts_, part_values_;     ///< proposed hardware of the device, as hardware::Equip takes it

  /// Guards what follows; the timeline's lock may be held when it is taken, never the other way round.
  mutable std::mutex mutex_;
  std::map<timing::HostId, std::shared_ptr<HostRecord>> hosts_;  ///< that the model knows
  /// Accounts of tenants that are there, or of which traces are there.
  std::map<std::uint32_t, std::weak_ptr<TenantAccount>> accounts_;
  std::map<std::uint32_t, sched::SimulatedUsage> usage_;
  std::map<std::uint32_t, sched::TenantLimits> limits_;
  double end_cycles_ = 0;
  Violation violation_;

  mutable std::mutex channels_mutex_;  ///< guards what follows; nobody who holds it waits for another one
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<TenantChannel>> channels_;
  Channels leaving_;
  bool begun_ = false, stop_ = false;
  bool came_ = false;           ///< a session, since the service's thread has looked
  bool tidy_ = false;           ///< much memory has been let go of
  bool alone_changed_ = false;  ///< alone_ has something to let go of

  std::unique_ptr<AloneDevices> alone_;  ///< null: nobody is simulated alone
  std::unique_ptr<timing::LiveTimeline> timeline_;
  std::thread attends_;
};

}  // namespace gridloom::tenants
