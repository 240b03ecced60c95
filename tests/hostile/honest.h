// Tenants that keep to the protocol, at work beside an attack: what they must not lose.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "scheduler/daemon/latency.h"
#include "scheduler/protocol/client.h"

namespace gridloom::hostile {

/// A program that launches one kernel after the other, on a thread of its own. With a broker that simulates time each
/// launch has its blocks in the timing model, and the host waits for it there, too.
class HonestTenant {
 public:
  /// `pause_us`: between two launches.
  HonestTenant(const std::string& socket, const std::string& tenant, unsigned pause_us);
  /// Ends it if it still runs.
  ~HonestTenant();
  /// Ends it after the launch that it waits for. A sentence about what it lost; empty: nothing.
  std::string Stop();

  std::uint64_t launches() const { return launches_.load(); }
  /// From announcing a launch to its last grant, with what this process and the machine add. Once it has stopped.
  const broker::Latencies& round_trips() const { return round_trips_; }
  double longest_seconds() const;  ///< the same, of the launch that it waits for now, too

 private:
  void Main();
  bool Launch();

  const unsigned pause_us_;
  std::unique_ptr<protocol::Client> client_;
  protocol::Fd channel_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> launches_{0}, began_{0}, longest_ns_{0};
  broker::Latencies round_trips_;
  std::string lost_;
  std::thread thread_;
};

}  // namespace gridloom::hostile
