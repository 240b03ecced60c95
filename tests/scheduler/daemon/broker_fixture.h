// A broker on a thread of the test, and processes' places at it.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "scheduler/daemon/broker.h"
#include "scheduler/protocol/client.h"

namespace gridloom::broker {

class BrokerFixture {
 public:
  BrokerFixture();
  ~BrokerFixture();

  /// A small device: 4 multiprocessors of 2 CTAs, 1 MiB of memory. Change `config` before.
  void Start();
  /// As at the end of the program; a broker that is started again finds the same files.
  void Stop();
  std::unique_ptr<protocol::Client> Join(const std::string& tenant = "", bool reconnect = false);
  Broker& broker() { return *broker_; }
  /// An operator's request; whether it was done.
  bool Ask(const protocol::Request& request) const;
  /// What ps says.
  nlohmann::ordered_json State();
  nlohmann::ordered_json TenantState(const std::string& name);
  /// Waits until the condition holds; false after ten seconds.
  static bool Eventually(const std::function<bool()>& condition);
  /// All of the audit log, once it is on disk.
  std::string AuditText() const;

  DaemonConfig config;
  std::string folder;
  std::shared_ptr<Disk> disk;  ///< null: as it is

 private:
  std::unique_ptr<Broker> broker_;
  std::thread thread_;
};

/// A launch without content.
protocol::LaunchRecord LaunchOf(std::uint64_t ctas, bool divisible = true);

/// Runs a launch from announcement to end, a slice at a time; what ended the wait.
protocol::Verdict RunLaunch(protocol::Client& client, std::uint64_t ctas, std::uint64_t* slices = nullptr);

}  // namespace gridloom::broker
