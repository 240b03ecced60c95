// The device as its broker sees it (`gridloom ps --json`): the memory, the processes and the work of all tenants. Each
// question has a connection of its own and takes no lock while it is asked. A broker that does not answer in time, or
// does not tell this user, is left alone for a second.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::nvml {

class BrokerView {
 public:
  using Clock = std::chrono::steady_clock;

  struct Process {
    pid_t pid = 0;                   ///< in the broker's namespace
    std::uint64_t memory_bytes = 0;  ///< that the broker has given it
    double device_seconds = 0;       ///< of the device, since it connected
    std::string program;
  };
  struct State {
    pid_t broker = 0;
    std::string device;  ///< a name, or the path of its file
    std::uint64_t memory_bytes = 0, used_bytes = 0;
    double uptime_seconds = 0;
    double busy_seconds = 0;         ///< of uptime_seconds, in which anything ran
    std::vector<Process> processes;  ///< one for each number, in the order of the numbers
  };
  /// Parts of the time of a period that has just passed, 0 to 1.
  struct Work {
    struct Part {
      pid_t pid = 0;
      double share = 0;
    };
    double busy = 0;          ///< anything ran
    std::vector<Part> parts;  ///< of those that had some of it
  };

  /// Nothing where this process is told of no broker, or the broker does not answer.
  std::optional<State> Ask();
  /// The same of what the device did: since an answer of a second ago, or since the first one; where that was only just
  /// now it waits for kShortestPeriod to pass.
  std::optional<Work> AskForWork();

  static constexpr std::chrono::milliseconds kShortestPeriod{167},
      kPeriod{1000};  ///< NVML's periods are of 1/6 s to 1 s

 private:
  /// Since which of the answers that are kept the work is counted; nothing while all are too young.
  std::optional<State> BaseFor(const State& now);
  void Keep(const State& state);

  std::atomic<Clock::rep> silent_until_{0};  ///< Clock's time
  exec::ForkSafeMutex mutex_;
  std::deque<State> kept_;  ///< oldest first, kShortestPeriod apart; guarded by mutex_
};

}  // namespace gridloom::nvml
