// What there is to see of a broker, as its thread hands it over: plain copies, which another thread makes JSON of. With
// thousands of tenants the text takes as long as many launches.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/daemon/accounts.h"
#include "scheduler/daemon/config.h"
#include "scheduler/model/sharing.h"

namespace gridloom::broker {

struct TenantView {
  std::string name;
  std::uint32_t sessions = 0, in_flight = 0, waiting = 0;
  Limits limits;  ///< memory_bytes: what holds
  std::uint64_t memory_bytes = 0;
  Account account;
  model::SharedTime time{};  ///< simulated seconds of its programs, together and alone
};

struct SessionView {
  std::uint64_t session = 0;
  pid_t pid = 0;
  uid_t uid = 0;
  std::string tenant, program, kernel;
  std::uint64_t kernel_ctas = 0, kernel_done = 0;  ///< of the kernel that runs: CTAs, and those that have run
  double connected_seconds = 0;
  std::uint64_t launches = 0, memory_bytes = 0;
  double device_seconds = 0;
  std::uint32_t in_flight = 0;
  bool ending = false;  ///< an operator has ended it, and something of it still runs
};

struct StateView {
  nlohmann::ordered_json broker;  ///< of the broker itself
  std::vector<TenantView> tenants;
  std::vector<SessionView> sessions;
};

nlohmann::ordered_json ToJson(const TenantView& tenant);
nlohmann::ordered_json ToJson(const SessionView& session);
/// The text of `ps --json`.
nlohmann::ordered_json ToJson(const StateView& state);

}  // namespace gridloom::broker
