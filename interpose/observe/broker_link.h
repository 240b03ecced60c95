// GRIDLOOM_CONNECT: this process's place at the broker (docs/broker.md). The broker says which CTAs of which launch may
// run and how much memory there is; the launches run here as ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/protocol/client.h"

namespace gridloom::session {

class Process;

class BrokerLink {
 public:
  /// Joins the broker that the settings name; null when they name none. An error when it cannot be joined and the
  /// program is not to go on without it. `process` is terminated when the broker ends the session.
  static Result<std::unique_ptr<BrokerLink>> Join(Process& process);
  /// Where the broker listens that the settings name; nothing when they name none.
  static std::optional<std::string> Socket();
  /// In a forked child: the connection is the parent's.
  void AbandonAfterFork() { client_->AbandonAfterFork(); }

  /// The device that the broker shares; empty when it could not be reached.
  std::string device() const { return client_->welcome().device; }

  /// Whether a grid of so many CTAs is to be run in parts when the broker says so.
  bool WantsSlices(std::uint64_t ctas, std::uint32_t sms) const { return !timed() && ctas > sms; }

  /// Whether the broker simulates this program's time. Then what runs when is decided in simulated time, and grids run
  /// whole.
  bool timed() const { return timed_; }
  /// The way to its model, once.
  protocol::Fd TakeTiming() { return client_->TakeTiming(); }
  bool connected() const { return client_->connected(); }

  /// For exec::DeviceMemory::Options::quota.
  bool Quota(std::uint64_t used);
  /// Device memory as the program sees it: no more than `*total`, of which it uses `used` itself.
  void MemoryInfo(std::uint64_t used, std::uint64_t* free, std::uint64_t* total) const;
  void AddCopied(std::uint64_t bytes) { client_->AddCopied(bytes); }

  protocol::Client& client() { return *client_; }
  bool goes_on_alone() const { return goes_on_alone_; }

 private:
  BrokerLink(std::unique_ptr<protocol::Client> client, bool goes_on_alone)
      : client_(std::move(client)), goes_on_alone_(goes_on_alone), timed_(client_->welcome().timing) {}

  const std::unique_ptr<protocol::Client> client_;
  const bool goes_on_alone_;  ///< without a broker; else it ends with an error
  const bool timed_;
  std::atomic<std::uint64_t> reserved_{0};  ///< memory that the broker has agreed to
};

}  // namespace gridloom::session
