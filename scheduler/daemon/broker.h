// The broker: one thread that sleeps in epoll, or spins for a moment after something happened. It owns the scheduler,
// the tenants and the sessions; whoever else wants something of it posts a function. It never waits for a disk
// (StateWriter does).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/core/simulation.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/latency.h"
#include "scheduler/daemon/listener.h"
#include "scheduler/daemon/places.h"
#include "scheduler/daemon/session.h"
#include "scheduler/daemon/state_view.h"
#include "scheduler/daemon/state_writer.h"
#include "scheduler/daemon/tenants.h"
#include "scheduler/daemon/worker.h"
#include "scheduler/policy/builtin.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/wait.h"

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

class Broker final : private sched::Engine, private SessionHost {
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
  void Post(std::function<void()> function);
  /// Waits until the state folder has what has happened so far, or its disk has refused it. Not on the broker's thread.
  void WaitForDisk();

  /// Everything there is to see; on the broker's thread.
  nlohmann::ordered_json State() const;
  /// The same, to be made JSON of elsewhere.
  StateView View() const;
  const DaemonConfig& config() const { return config_; }

  struct Counters {
    std::uint64_t sessions = 0, refused = 0, dropped = 0, records = 0, wakeups = 0;
    std::uint64_t decisions_ns = 0, pumps = 0, longest_pump_ns = 0;
    /// Turns of the loop that took records: from its last look at the rings, or from when it woke, until what they led
    /// to was granted. No record waits longer for the broker, whatever else the turn had to do.
    Latencies turns;
  };
  const Counters& counters() const { return counters_; }
  /// What a tenant has had, earlier runs of the broker included.
  Account AccountOf(const Tenant& tenant) const;
  const Tenants& tenants() const { return *tenants_; }
  const sched::Scheduler& scheduler() const { return *scheduler_; }

 private:
  Broker(DaemonConfig config, DeviceFacts device, std::function<void(const std::string&)> log,
         sched::Simulation* simulation);
  Status Open(std::shared_ptr<Disk> disk);
  Status OpenState(std::shared_ptr<Disk> disk);
  std::uint32_t MostSessions();

  std::uint64_t now() override;
  void Grant(sched::LaunchId launch, std::uint64_t end) override;
  void OnMemory(Session& session, std::uint64_t bytes) override;
  void OnSubmit(sched::LaunchId launch, Session& session, std::uint32_t slot) override;
  void OnEnd(sched::LaunchId launch) override;

  // ---- the loop
  bool TakeRecords();
  Result<std::uint32_t> TakeOf(Session& session);
  void Pump();
  void Plan(bool busy, std::uint64_t at);
  void Spin();
  std::optional<std::uint64_t> SleepTime() const;
  bool Sleep();
  void Poll(std::optional<std::uint64_t> timeout_ns);
  void Housekeep();
  void RunPosted();

  // ---- sessions
  void Accept();
  bool Connect(protocol::Fd socket);
  void Listen(bool on);
  void OnSocket(Session& session);
  void Hello(Session& session, const protocol::Hello& hello);
  void Refuse(Session& session, const std::string& why);
  void PublishMemory(const Tenant& tenant);
  void Schedule(const Tenant& tenant);
  Result<std::unique_ptr<policy::Policy>> RealPolicy(const std::string& name) const;
  std::uint64_t MemoryLimit(const Tenant& tenant) const;
  /// Ends a session at the end of this turn; tells it why where a reason is given.
  void Drop(Session& session, std::string_view event, const std::string& why,
            std::optional<protocol::GoodbyeReason> goodbye = {});
  /// Tells a session that it is over. It is there, and pays, until what runs of it has ended.
  void Terminate(Session& session, const std::string& why);
  /// Ends a session that was told so and of which nothing runs any more.
  void DropIfOver(Session& session);
  void Leave(Session& session, std::string_view event);
  void Reap();

  // ---- operators (control.cpp)
  void Request(Session& session, const protocol::Request& request);
  void SendAnswer(Session& session);
  void WatchSocket(const Session& session, std::uint32_t events);
  Result<nlohmann::ordered_json> Answer(const Session& session, const protocol::Request& request);
  Result<nlohmann::ordered_json> AnswerLimits(const Session& session, const protocol::Request& request);
  Result<nlohmann::ordered_json> AnswerKill(const Session& session, const protocol::Request& request);
  Result<nlohmann::ordered_json> AnswerPolicy(const Session& session, const protocol::Request& request);
  void MakeState(Session& session);
  TenantView ViewOf(const Tenant& tenant) const;
  SessionView ViewOf(const Session& session) const;

  void SaveAccounts();

  DaemonConfig config_;
  const DeviceFacts device_;
  const std::function<void(const std::string&)> log_;
  sched::Simulation* const simulation_;
  std::unique_ptr<StateWriter> writer_;
  std::unique_ptr<Tenants> tenants_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::string policy_;  ///< the operator's choice; in simulated time, where there is one
  std::unique_ptr<Listener> listener_;
  protocol::Fd epoll_, wake_;
  protocol::AdaptiveSpin spin_;
  bool spinning_ = false;  ///< since the last record
  std::map<std::uint64_t, std::unique_ptr<Session>> sessions_;
  std::vector<Session*> admitted_;
  std::unordered_map<sched::LaunchId, std::pair<Session*, std::uint32_t>> owners_;  ///< of launches that have not ended
  std::vector<std::uint32_t> left_;  ///< tenants of sessions that have ended since the accounts were saved
  std::uint64_t next_session_ = 1;
  std::uint64_t started_ = 0, last_activity_ = 0, last_poll_ = 0, last_housekeeping_ = 0, last_plan_ = 0;
  std::uint64_t pump_began_ = 0;
  std::optional<std::uint64_t> next_pump_;
  bool dirty_ = false;           ///< the policy has to be asked
  bool accounts_dirty_ = false;  ///< something was used since the accounts were written
  bool doomed_ = false;          ///< some session ends with this turn
  std::optional<Places> places_;
  std::optional<std::uint64_t> listen_again_;  ///< nobody is accepted until then: there were no descriptors
  std::atomic<bool> stop_{false};
  Counters counters_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
  Worker reporter_;  ///< makes texts; last, as it posts
};

}  // namespace gridloom::broker
