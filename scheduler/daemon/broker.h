// The broker: one thread that sleeps in epoll, or spins for a moment after something happened. It owns the scheduler,
// the tenants and the sessions; whoever else wants something of it posts a function. It never waits for a disk
// (StateWriter does). Broker is the loop; tenants, sessions and operators have a desk each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/core/simulation.h"
#include "scheduler/daemon/broker_core.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/operator_desk.h"
#include "scheduler/daemon/session_desk.h"
#include "scheduler/daemon/state_view.h"
#include "scheduler/daemon/tenant_desk.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

class Broker final : private sched::Engine {
 public:
  /// Listens, and has read the accounts, when it returns. `log` takes one line for the operator, on a thread of the
  /// broker's. `simulation`: what simulates the tenants' time; null: time is real. It must outlive the broker. `disk`:
  /// what the state folder is on; null: as it is.
  static Result<std::unique_ptr<Broker>> Create(DaemonConfig config, DeviceFacts device,
                                                std::function<void(const std::string&)> log,
                                                sched::Simulation* simulation = nullptr,
                                                std::shared_ptr<Disk> disk = nullptr);
  ~Broker() override;

  /// Serves until Stop; then says goodbye to all, and writes the accounts.
  Status Run();
  /// From any thread, or a signal handler.
  void Stop();
  /// Runs a function on the broker's thread. Thread-safe.
  void Post(std::function<void()> function) { core_.mailbox.Post(std::move(function)); }
  /// Waits until the state folder has what has happened so far, or its disk has refused it. Not on the broker's thread.
  void WaitForDisk();

  /// Everything there is to see; on the broker's thread.
  nlohmann::ordered_json State() const { return operators_.State(); }
  /// The same, to be made JSON of elsewhere.
  StateView View() const { return operators_.View(); }
  const DaemonConfig& config() const { return core_.config; }

  using Counters = BrokerCounters;
  const Counters& counters() const { return core_.counters; }
  /// What a tenant has had, earlier runs of the broker included.
  Account AccountOf(const Tenant& tenant) const { return tenant_desk_.AccountOf(tenant); }
  const Tenants& tenants() const { return *core_.tenants; }
  const sched::Scheduler& scheduler() const { return *core_.scheduler; }

 private:
  Broker(DaemonConfig config, DeviceFacts device, std::function<void(const std::string&)> log,
         sched::Simulation* simulation);
  Status Open(std::shared_ptr<Disk> disk);
  Status OpenState(std::shared_ptr<Disk> disk);
  std::uint32_t MostSessions();

  std::uint64_t now() override;
  void Grant(sched::LaunchId launch, std::uint64_t end) override;

  bool TakeRecords();
  void Pump();
  void Plan(bool busy, std::uint64_t at);
  void Spin();
  std::optional<std::uint64_t> SleepTime() const;
  bool Sleep();
  void Poll(std::optional<std::uint64_t> timeout_ns);
  void Housekeep();

  BrokerCore core_;
  TenantDesk tenant_desk_;
  SessionDesk sessions_;
  OperatorDesk operators_;  ///< its thread posts, so that it ends before the mailbox of `core_` does
  protocol::AdaptiveSpin spin_;
  bool spinning_ = false;  ///< since the last record
  std::uint64_t last_activity_ = 0, last_poll_ = 0, last_housekeeping_ = 0, last_plan_ = 0;
  std::uint64_t pump_began_ = 0;
  std::optional<std::uint64_t> next_pump_;
};

}  // namespace gridloom::broker
