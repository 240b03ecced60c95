// What the broker is told by its YAML file and its command line (docs/broker.md).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/daemon/audit.h"

namespace gridloom::broker {

/// What a tenant may have, in the scheduler and of memory.
struct Limits {
  sched::TenantLimits scheduling;
  std::uint64_t memory_bytes = 0;  ///< device memory of all its processes; 0: what the device has
  bool operator==(const Limits&) const = default;
};

/// A tenant that the configuration names.
struct TenantConfig {
  std::string name;
  std::optional<uid_t> uid;  ///< only this user may be it; and who comes as this user without a name is it
  std::string token;         ///< only who knows it may be it; empty: no token is asked for
  Limits limits;
};

struct DaemonConfig {
  std::string socket;
  mode_t socket_mode = 0600;
  std::string device = "h200";
  std::string policy = "fair";
  std::string profiles;             ///< file with profiles of kernels, for policy kernelet
  std::uint64_t quantum_us = 5000;  ///< a slice is meant to take no longer; 0: as long as it takes
  std::uint32_t spin_us = 20;       ///< how long both sides spin before they sleep
  /// How long `fair` waits for a tenant under its share that has just left; 0: not at all.
  std::uint32_t fair_wait_us = 100;
  /// A program of which nothing reports progress for so long starts what waits of it; 0: it waits.
  std::uint32_t stall_ms = 500;
  /// A session whose slice has no CTA that finishes for so long is dropped; 0: never.
  std::uint32_t slice_timeout_s = 120;
  /// A session is also dropped when its grant has not run to its end after so long, whatever it reports of it; 0:
  /// never. Not given: ten times slice_timeout_s.
  std::optional<std::uint32_t> grant_timeout_s;
  std::uint32_t hello_timeout_s = 5;
  std::uint32_t most_sessions = 512;
  std::uint32_t most_sessions_per_user = 0;  ///< of users other than the broker's own; 0: a quarter of most_sessions
  /// Proposed parts of the simulated device in place of its own, "a,b" or "none"; empty: its own.
  std::string hardware;
  bool timing = false;                ///< simulate the tenants' time on the device
  std::uint32_t timing_threads = 1;   ///< of the host, for that
  std::uint32_t timing_wait_for = 0;  ///< simulated time begins when so many sessions are there; 0: at once
  /// A program that says nothing for so long does not hold others' time back.
  std::uint32_t timing_patience_ms = 10'000;
  // What the processes of one tenant may take for it:
  std::uint64_t timing_memory = std::uint64_t{2} << 30, timing_disk = std::uint64_t{16} << 30;  ///< bytes
  /// Tenants at a time that are simulated alone, too, for what the others slow them down by.
  std::uint32_t timing_alone = 0;
  double timing_launch_s = 10;  ///< simulated time of one launch; 0: as long as it likes
  std::string state;            ///< folder of accounts.json, limits.json and audit.jsonl
  AuditBounds audit;
  std::uint32_t http_port = 0;  ///< 0: no metrics and no dashboard
  std::string http_token;
  Limits defaults;  ///< of tenants that the configuration does not name
  std::vector<TenantConfig> tenants;

  std::uint64_t grant_timeout() const { return grant_timeout_s.value_or(10 * std::uint64_t{slice_timeout_s}); }
};

/// Reads the YAML text of `file` over `config`. An unknown key is an error that names the nearest right one.
Status ApplyConfig(std::string_view text, std::string_view file, DaemonConfig* config);
Status LoadConfig(const std::string& path, DaemonConfig* config);

/// 0.25 or 25%.
std::optional<double> ParsePart(std::string_view text);

/// One sentence about a limit that makes no sense, if any.
Status CheckLimits(const Limits& limits);

}  // namespace gridloom::broker
