// The queues of all tenants and the loop around the policy: launches come in, the policy says which CTAs of which
// launch may start, the engine is told, and what has run is accounted. One thread; no I/O and no clock but the
// engine's.
//
// A grant is a number that only rises: the CTAs of a launch before it may run. So a grant can be made larger while its
// slice runs, and a message that is late or lost changes nothing that has been said before.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/core/device_room.h"
#include "scheduler/core/engine.h"
#include "scheduler/core/kernel_times.h"
#include "scheduler/policy/cap_credit.h"
#include "scheduler/policy/policy.h"

namespace gridloom::sched {

/// What a tenant may have. Changes take effect with the next decision.
struct TenantLimits {
  double weight = 1;              ///< share of the device among tenants that want it; > 0
  double cap = 1;                 ///< largest part of the device's time, 0 to 1; others idle or not
  std::int32_t priority = 0;      ///< -100 to 100; larger goes first
  std::uint32_t in_flight = 256;  ///< launches that take part in decisions; further ones wait
  bool operator==(const TenantLimits&) const = default;
};

/// What a tenant has had.
struct TenantUsage {
  std::uint64_t launches = 0;  ///< that have ended
  std::uint64_t faults = 0;    ///< of them
  std::uint64_t slices = 0;    ///< grants that have run
  std::uint64_t ctas = 0;
  double device_time = 0;  ///< in the engine's unit: the part of the device that its slices had, times how long
};

struct LaunchInfo {
  std::uint32_t tenant = 0;
  std::uint64_t owner = 0;   ///< session that the stream belongs to
  std::uint64_t stream = 0;  ///< launches of one stream of one owner go one after the other; 0: of none
  std::uint64_t kernel = 0;  ///< the same for all launches of a kernel; only for guessing how long a slice takes
  std::uint64_t ctas = 0;
  policy::CtaNeeds needs;
  std::int32_t priority = 0;  ///< of the stream, within the tenant's
  std::uint64_t profile = 0;  ///< KernelView::profile
  bool divisible = false;
  std::string name;
};

class Scheduler {
 public:
  struct Options {
    std::uint32_t sms = 1;
    policy::SmView empty_sm;
    std::uint64_t quantum = 0;  ///< a slice is meant to take no longer, in the engine's unit; 0: as long as it takes
    std::uint64_t burst = 20'000'000;  ///< device time that a tenant with a cap may save up, times its cap
    /// A launch waits no longer than that for its turn while what runs of its owner reports nothing, in the engine's
    /// unit: what runs may wait for it. 0: it does.
    std::uint64_t patience = 0;
    /// Launches of one owner that may run at the same time, as on a device of its own.
    std::uint32_t resident_kernels = 128;
  };
  Scheduler(const Options& options, Engine& engine, std::unique_ptr<policy::Policy> policy);

  /// New policy, from the next decision on. What is granted stays granted.
  void SetPolicy(std::unique_ptr<policy::Policy> policy) { policy_ = std::move(policy); }
  std::string_view policy() const { return policy_->name(); }

  /// Makes the tenant when it is new.
  void SetTenant(std::uint32_t tenant, const TenantLimits& limits);
  bool knows(std::uint32_t tenant) const { return tenants_.contains(tenant); }
  const TenantUsage& usage(std::uint32_t tenant) const { return tenants_.at(tenant).usage; }
  std::uint32_t in_flight(std::uint32_t tenant) const { return tenants_.at(tenant).in_flight; }
  std::uint32_t waiting(std::uint32_t tenant) const {
    return static_cast<std::uint32_t>(tenants_.at(tenant).waiting.size());
  }

  /// Counts what has run until now in what tenants and owners have had: before these are looked at while slices run.
  void Charge();
  /// How long anything has run, in the engine's unit.
  double busy_time() const { return busy_time_; }
  /// What an owner has had, as TenantUsage::device_time.
  double device_time_of(std::uint64_t owner) const;
  /// The owner is gone: nothing of it runs, and what it has had is of no interest any more.
  void ForgetOwner(std::uint64_t owner);

  LaunchId Submit(LaunchInfo info);
  /// The CTAs before `done` have run. An error when that is less than before or more than granted: the launch is
  /// unchanged.
  Status Progress(LaunchId launch, std::uint64_t done);
  /// Nothing of the launch will run any more: it is complete, has faulted, or its owner is gone. Its share is free at
  /// once.
  Status End(LaunchId launch, bool faulted);

  /// No CTA of the launch starts any more but those that are granted. Their room is free at once, as they are about to
  /// end; they are charged until Progress or End says that they have.
  Status Withdraw(LaunchId launch);

  /// Asks the policy until it has nothing more to start. Answers when to be called again although nothing happens;
  /// nothing: not before something does.
  std::optional<std::uint64_t> Pump();

  /// Decisions taken, and launches known.
  std::uint64_t decisions() const { return decisions_; }
  std::size_t launches() const { return launches_.size(); }

 private:
  struct Grant {
    std::uint64_t end = 0;
    std::uint64_t since = 0;  ///< when it was made
    Holding holding;
  };
  struct Launch {
    LaunchInfo info;
    bool visible = false;
    std::uint64_t announced = 0;  ///< what the engine was told last
    std::uint64_t slice_began = 0;
    std::deque<Grant> grants;             ///< that have not run to their ends
    std::vector<std::uint16_t> resident;  ///< CTAs they hold, by multiprocessor
  };
  struct Tenant {
    TenantLimits limits;
    TenantUsage usage;
    std::uint32_t in_flight = 0;   ///< launches that take part
    std::deque<LaunchId> waiting;  ///< launches that may take part once fewer do
    policy::CapCredit credit;      ///< device time that the cap leaves
    KernelTimes times;
  };

  using StreamKey = std::pair<std::uint64_t, std::uint64_t>;  // owner, stream
  void Enter(LaunchId id);
  void Show(LaunchId id, Tenant& tenant);
  policy::KernelView* ViewOf(LaunchId id);
  std::span<const policy::KernelView> Candidates();
  std::uint64_t Start(const policy::Slice& slice);
  void BeginRunning(const LaunchInfo& info);
  void EndRunning(const LaunchInfo& info);
  bool HasAllThatMayRun(std::uint64_t owner) const;
  std::uint64_t GrantCtas(policy::KernelView& view, Launch& launch, std::uint64_t ctas, Holding holding);
  void HelpStanding();
  void HelpOwner(std::uint64_t owner);
  bool FitsBesideItsOwn(const Launch& launch, std::uint64_t ctas) const;
  std::optional<std::uint64_t> NextHelp() const;
  std::uint64_t MostOf(const double* time_per_cta, std::uint64_t wanted) const;
  void Learn(const Launch& launch, std::uint64_t ctas, std::uint64_t took);
  std::optional<std::uint64_t> NextCredit() const;

  const Options options_;
  Engine& engine_;
  std::unique_ptr<policy::Policy> policy_;
  DeviceRoom room_;
  LaunchId next_id_ = 1;
  std::uint64_t decisions_ = 0;
  std::uint64_t charged_ = 0;  ///< time up to which tenants are charged
  std::uint32_t running_ = 0;  ///< launches with grants
  struct Owner {
    std::uint32_t running = 0;
    std::uint64_t moved = 0;        ///< when something of it began to run, or was last said to have
    double* device_time = nullptr;  ///< in device_times_
  };
  std::unordered_map<std::uint64_t, double> device_times_;  ///< of all owners that have had something
  double busy_time_ = 0;
  std::unordered_map<std::uint64_t, Owner> owners_;  ///< those with launches that run
  std::uint64_t help_from_ = 0;                      ///< no owner's patience ends before that
  std::unordered_map<LaunchId, Launch> launches_;
  std::map<StreamKey, std::deque<LaunchId>> streams_;  ///< the first one is in flight or waits for it
  std::unordered_map<std::uint32_t, Tenant> tenants_;
  std::vector<policy::KernelView> kernels_;     ///< in the order in which they became ready
  std::vector<policy::KernelView> candidates_;  ///< without those of tenants over their caps
  std::set<LaunchId> to_announce_;
  std::set<LaunchId> withdrawn_;  ///< that have not ended
};

}  // namespace gridloom::sched
