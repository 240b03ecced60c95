#include "scheduler/daemon/tenants.h"

#include <unistd.h>

namespace gridloom::broker {
namespace {

/// Takes as long for every wrong guess.
bool SameSecret(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return different == 0 && !b.empty();
}

constexpr std::size_t kMostTenants = 4096;

}  // namespace

Tenants::Tenants(const DaemonConfig& config, const Accounts& accounts, LimitChanges changes)
    : defaults_(config.defaults), absent_(accounts), changes_(std::move(changes)) {
  for (const TenantConfig& tenant : config.tenants) Add(tenant);
}

Tenant& Tenants::Add(TenantConfig config) {
  Tenant tenant;
  tenant.id = static_cast<std::uint32_t>(tenants_.size() + 1);
  if (const auto account = absent_.find(config.name); account != absent_.end()) {
    tenant.before = tenant.saved = account->second;
    absent_.erase(account);
  }
  tenant.configured = config.limits;
  if (const auto change = changes_.find(config.name); change != changes_.end()) {
    if (change->second.configured == config.limits) config.limits = change->second.now;
    else changes_.erase(change);
  }
  tenant.config = std::move(config);
  Tenant& added = tenants_.emplace_back(std::move(tenant));
  by_name_.try_emplace(added.config.name, &added);
  if (added.config.uid) by_user_.try_emplace(*added.config.uid, &added);
  return added;
}

void Tenants::SetLimits(Tenant& tenant, const Limits& limits) {
  tenant.config.limits = limits;
  if (limits == tenant.configured) changes_.erase(tenant.config.name);
  else changes_[tenant.config.name] = {.configured = tenant.configured, .now = limits};
}

Tenant* Tenants::Find(const std::string& name) {
  const auto at = by_name_.find(name);
  return at != by_name_.end() ? at->second : nullptr;
}

Result<Tenant*> Tenants::Identify(const protocol::Peer& peer, const std::string& name, const std::string& token) {
  Tenant* tenant = nullptr;
  if (!peer.user_known) {
    // All users without a number here have the same one: it makes nobody a tenant. A secret does.
    tenant = Find(name);
    if (tenant == nullptr || tenant->config.uid || tenant->config.token.empty()) {
      return Error{"your user has no number in the broker's user namespace (it sees " + std::to_string(peer.uid) +
                   "); be a tenant that has a token and no uid (--tenant, --token-file)"};
    }
  } else if (!name.empty()) {
    tenant = Find(name);
  } else if (const auto at = by_user_.find(peer.uid); at != by_user_.end()) {
    tenant = at->second;
  }
  if (tenant == nullptr) {
    // A name of one's own choice is for the broker's own user; others are who they are.
    if (!name.empty() && peer.uid != geteuid()) return Error{"there is no tenant '" + name + "'"};
    const std::string own = name.empty() ? "uid-" + std::to_string(peer.uid) : name;
    tenant = Find(own);
    if (tenant == nullptr && tenants_.size() >= kMostTenants) return Error{"there are too many tenants"};
    if (tenant == nullptr) tenant = &Add({.name = own, .uid = peer.uid, .token = {}, .limits = defaults_});
  }
  if (tenant->config.uid && *tenant->config.uid != peer.uid) {
    return Error{"user " + std::to_string(peer.uid) + " may not be tenant '" + tenant->config.name + "'"};
  }
  if (!tenant->config.token.empty() && !SameSecret(tenant->config.token, token)) {
    return Error{"tenant '" + tenant->config.name + "' needs its token (--token-file)"};
  }
  return tenant;
}

}  // namespace gridloom::broker
