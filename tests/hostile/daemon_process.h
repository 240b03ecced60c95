// The broker's daemon as a process of its own, as it is installed, and what the system knows of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "scheduler/protocol/message.h"

namespace gridloom::hostile {

/// What was to hold does not.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void Require(bool holds, const std::string& sentence) {
  if (!holds) throw Failed(sentence);
}

/// How a daemon is to be started.
struct Setup {
  const char* config = "";   ///< YAML, beyond socket and state
  bool timing = false;       ///< on a small device, with little patience
  bool http = false;         ///< on a port that is free
  bool slow_disk = false;    ///< each write that has to reach the disk takes 0.8 s
  unsigned descriptors = 0;  ///< that it may have; 0: as many as this process
};

/// The program under test: $GRIDLOOM_DAEMON, or the one of this build.
std::string DaemonPath();
/// What it was built with: "", "address" or "thread".
std::string SanitizerOf(const std::string& program);

struct Usage {
  std::uint64_t resident_kb = 0, peak_kb = 0;
  std::uint64_t threads = 0, descriptors = 0;
  double cpu_seconds = 0;
  double waited_seconds = 0;  ///< its main thread, for a processor
};

class DaemonProcess {
 public:
  /// Returns when it answers. `socket` empty: one in its own folder.
  explicit DaemonProcess(const Setup& setup, const std::string& socket = {});
  /// Kills it if it still runs.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& folder() const { return folder_; }
  const std::string& socket() const { return socket_; }
  std::uint16_t http_port() const { return http_port_; }
  static constexpr const char* kHttpSecret = "open-sesame";
  bool alive();
  Usage usage() const;
  /// The peak begins again at what it uses now.
  void ResetPeak() const;
  std::uint64_t StateFileBytes(const std::string& name) const;  ///< 0: there is no such file
  nlohmann::ordered_json Ask(const protocol::Request& request) const;
  nlohmann::ordered_json Ps() const { return Ask({}); }
  /// Waits until only so many processes are connected.
  void AwaitSessions(std::size_t count) const;
  void Signal(int signal) const;
  /// Ends it in good order; it fails when the daemon does, or when a sanitizer has found something.
  void Stop();
  std::string Log() const;

 private:
  std::string folder_, socket_;
  pid_t pid_ = -1;
  std::uint16_t http_port_ = 0;
};

/// Time limits that a sanitized daemon needs more of.
double Patience(double seconds);
/// Calls until it answers true; false when it has not within the time.
template <typename Condition>
bool Within(double seconds, const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(Patience(seconds));
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace gridloom::hostile
