// What tenants may have, have and had: their limits, their memory, their accounts.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/daemon/broker_core.h"

namespace gridloom::broker {

class TenantDesk {
 public:
  explicit TenantDesk(BrokerCore& core) : core_(core) {}

  void Schedule(const Tenant& tenant);
  std::uint64_t MemoryLimit(const Tenant& tenant) const;
  void PublishMemory(const Tenant& tenant);
  /// What a tenant has had, earlier runs of the broker included.
  Account AccountOf(const Tenant& tenant) const;
  void SaveAccounts();
  /// A session of the tenant has ended: its account is saved with the next ones.
  void NoteLeft(std::uint32_t tenant) { left_.push_back(tenant); }

 private:
  BrokerCore& core_;
  std::vector<std::uint32_t> left_;  ///< tenants of sessions that have ended since the accounts were saved
};

}  // namespace gridloom::broker
