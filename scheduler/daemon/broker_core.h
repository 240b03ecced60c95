// What the duties of the broker share. All of it belongs to the broker's thread, but for the mailbox and `stop`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/core/simulation.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/latency.h"
#include "scheduler/daemon/places.h"
#include "scheduler/daemon/session.h"
#include "scheduler/daemon/state_writer.h"
#include "scheduler/daemon/tenants.h"
#include "scheduler/policy/builtin.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

/// The device that the tenants share, as far as the broker has to know it.
struct DeviceFacts {
  std::string id;
  std::string source{};  ///< where programs find it: the id, or the file's absolute path
  std::uint32_t sms = 0;
  policy::SmView empty_sm;
  std::uint32_t resident_kernels = 0;
  std::uint64_t memory_bytes = 0;
  FactsFunction facts;
  policy::PolicyInputs policy_inputs{};  ///< what policies may need, in real time
  /// Plans a little of what the policy would like to know; false when there is nothing. Called when there is time, not
  /// in decisions.
  std::function<bool()> plan{};
};

struct BrokerCounters {
  std::uint64_t sessions = 0, refused = 0, dropped = 0, records = 0, wakeups = 0;
  std::uint64_t decisions_ns = 0, pumps = 0, longest_pump_ns = 0;
  /// Turns of the loop that took records: from its last look at the rings, or from when it woke, until what they led
  /// to was granted. No record waits longer for the broker, whatever else the turn had to do.
  Latencies turns;
};

/// Functions for the broker's thread.
class Mailbox {
 public:
  /// Fails where no descriptors are left.
  Status Open();
  /// Can be read when something has been posted.
  int fd() const { return wake_.get(); }
  /// From any thread.
  void Post(std::function<void()> function);
  /// From any thread, or a signal handler: the broker's loop goes round.
  void Wake();
  /// On the broker's thread.
  void RunPosted();

 private:
  protocol::Fd wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

struct BrokerCore {
  BrokerCore(DaemonConfig config, DeviceFacts device, std::function<void(const std::string&)> log,
             sched::Simulation* simulation)
      : config(std::move(config)), device(std::move(device)), log(std::move(log)), simulation(simulation) {}

  Result<std::unique_ptr<policy::Policy>> RealPolicy(const std::string& name) const;

  DaemonConfig config;
  const DeviceFacts device;
  const std::function<void(const std::string&)> log;
  sched::Simulation* const simulation;
  std::unique_ptr<StateWriter> writer;
  std::unique_ptr<Tenants> tenants;
  std::unique_ptr<sched::Scheduler> scheduler;
  std::string policy;  ///< the operator's choice; in simulated time, where there is one
  protocol::Fd epoll;
  std::map<std::uint64_t, std::unique_ptr<Session>> sessions;
  std::vector<Session*> admitted;
  std::unordered_map<sched::LaunchId, std::pair<Session*, std::uint32_t>> owners;  ///< of launches that have not ended
  std::optional<Places> places;
  BrokerCounters counters;
  std::uint64_t started = 0;
  bool dirty = false;           ///< the policy has to be asked
  bool accounts_dirty = false;  ///< something was used since the accounts were written
  std::atomic<bool> stop{false};
  Mailbox mailbox;
};

}  // namespace gridloom::broker
