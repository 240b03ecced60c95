#include "scheduler/daemon/tenant_desk.h"

#include <algorithm>
#include <string>
#include <utility>

namespace gridloom::broker {

/// Makes the scheduler know the tenant's limits. Where time is simulated, caps hold in simulated time.
void TenantDesk::Schedule(const Tenant& tenant) {
  sched::TenantLimits limits = tenant.config.limits.scheduling;
  if (core_.simulation != nullptr) limits.cap = 1;
  core_.scheduler->SetTenant(tenant.id, limits);
}

std::uint64_t TenantDesk::MemoryLimit(const Tenant& tenant) const {
  const std::uint64_t own = tenant.config.limits.memory_bytes;
  return own != 0 ? std::min(own, core_.device.memory_bytes) : core_.device.memory_bytes;
}

/// Tells all sessions of the tenant what it may have and has.
void TenantDesk::PublishMemory(const Tenant& tenant) {
  for (Session* const session : tenant.members) {
    if (session->doomed) continue;
    protocol::SegmentLayout& layout = session->segment().layout();
    layout.tenant_limit.store(MemoryLimit(tenant), std::memory_order_release);
    layout.tenant_used.store(tenant.memory_bytes, std::memory_order_release);
  }
}

Account TenantDesk::AccountOf(const Tenant& tenant) const {
  Account account = tenant.before;
  if (core_.scheduler->knows(tenant.id)) {
    const sched::TenantUsage& usage = core_.scheduler->usage(tenant.id);
    account.launches += usage.launches;
    account.faults += usage.faults;
    account.slices += usage.slices;
    account.ctas += usage.ctas;
    account.device_seconds += usage.device_time / 1e9;
  }
  if (core_.simulation != nullptr) account.simulated_seconds += core_.simulation->usage(tenant.id).seconds;
  return account;
}

/// Hands over the accounts that may have changed: of tenants that have sessions, or had one since the last time.
void TenantDesk::SaveAccounts() {
  core_.accounts_dirty = false;
  std::vector<std::pair<std::string, Account>> changed;
  const auto look = [&](Tenant& tenant) {
    const Account account = AccountOf(tenant);
    if (account == tenant.saved) return;
    tenant.saved = account;
    changed.emplace_back(tenant.config.name, account);
  };
  for (const std::uint32_t tenant : left_) look(core_.tenants->at(tenant));
  for (const Session* session : core_.admitted) look(core_.tenants->at(session->tenant));
  left_.clear();
  core_.writer->SaveAccounts(std::move(changed));
}

}  // namespace gridloom::broker
