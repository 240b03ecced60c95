// What a broker knows of whatever simulates all of its tenants on one device. Called on the broker's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::sched {

/// A session that takes part, and whose it is.
struct SimulatedSession {
  std::uint64_t session = 0;
  std::uint32_t tenant = 0;
  std::string tenant_name, program;
  TenantLimits limits;
};

/// What a tenant's launches took, of those that have ended.
struct SimulatedUsage {
  std::uint64_t kernels = 0;
  double seconds = 0;  ///< sum over its launches, from each one's first CTA to its last one's end
  // Sums over its programs, of works that are known both ways; 0: nothing is known.
  double turnaround_seconds = 0;  ///< from the program's begin to the end of the last of them
  double alone_seconds = 0;       ///< the same if the tenant had had the device to itself
};

/// What profiling kernels for the policy took so far.
struct SimulatedProfiling {
  std::uint64_t kernels = 0, warp_instructions = 0;
};

class Simulation {
 public:
  virtual ~Simulation() = default;

  /// Told of a session that says what makes no sense; on a thread of the simulation's.
  using Violation = std::function<void(std::uint64_t session, const std::string& why)>;
  virtual void OnViolation(Violation violation) = 0;

  /// The tenant's end of its channel.
  virtual Result<protocol::Fd> Join(const SimulatedSession& session) = 0;
  /// The session is over, whether it has finished or not: its launches end with the CTAs that have come.
  virtual void Leave(std::uint64_t session) = 0;
  /// About once a second. `active`: the session has launches announced. One that has none for `timeout_s` while the
  /// model waits for CTAs or works of it is a violation.
  virtual void Watch(std::uint64_t session, bool active, std::uint32_t timeout_s) = 0;

  /// For launches from now on. Fails when there is no such policy, or not what it needs.
  virtual Status SetPolicy(std::string_view name) = 0;
  virtual void SetLimits(std::uint32_t tenant, const TenantLimits& limits) = 0;

  /// How far the device has been simulated, and when the last work ended.
  virtual double now_seconds() const = 0;
  virtual double end_seconds() const = 0;
  /// Empty, or why nothing is simulated any more.
  virtual std::string problem() const = 0;
  virtual SimulatedUsage usage(std::uint32_t tenant) const = 0;
  virtual SimulatedProfiling profiling() const = 0;
};

}  // namespace gridloom::sched
