// The tenants there are: those of the configuration, and one for each user or name that came without being named there.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/daemon/accounts.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/limits_file.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

class Session;

struct Tenant {
  std::uint32_t id = 0;
  TenantConfig config;
  Limits configured;  ///< without what an operator has changed
  std::uint32_t sessions = 0;
  std::vector<Session*> members;   ///< those sessions
  std::uint64_t memory_bytes = 0;  ///< of all its sessions
  Account before;                  ///< what the scheduler does not count: earlier runs of the broker, bytes
  Account saved;                   ///< as the writer of the accounts has it
};

class Tenants {
 public:
  /// `changes`: of earlier runs; those that the configuration has overtaken are forgotten.
  Tenants(const DaemonConfig& config, const Accounts& accounts, LimitChanges changes = {});

  /// Who the peer is; an error that says why it may not be who it wants to be. Makes a tenant for who has none.
  Result<Tenant*> Identify(const protocol::Peer& peer, const std::string& name, const std::string& token);
  Tenant* Find(const std::string& name);
  Tenant& at(std::uint32_t id) { return tenants_[id - 1]; }
  std::deque<Tenant>& all() { return tenants_; }
  void SetLimits(Tenant& tenant, const Limits& limits);
  /// All limits that differ from the configuration.
  const LimitChanges& changes() const { return changes_; }
  /// Accounts that were kept and whose tenants have not come since.
  const Accounts& absent() const { return absent_; }

 private:
  Tenant& Add(TenantConfig config);

  const Limits defaults_;
  Accounts absent_;
  LimitChanges changes_;
  std::deque<Tenant> tenants_;  ///< id is the place, from 1; never removed
  std::unordered_map<std::string, Tenant*> by_name_;
  std::unordered_map<uid_t, Tenant*> by_user_;  ///< the first one that only this user may be
};

}  // namespace gridloom::broker
