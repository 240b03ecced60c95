#include "scheduler/policy/tenant_service.h"

#include <algorithm>
#include <limits>

#include "scheduler/policy/absence.h"
#include "scheduler/policy/device_part.h"

namespace gridloom::policy {

void TenantService::Charge(double passed) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double before = kNone, least = kNone;
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.wants) continue;
    before = std::min(before, tenant.service);
    tenant.service += tenant.holds * passed / tenant.weight;
    least = std::min(least, tenant.service);
    tenant.away = 0;
  }
  if (least < kNone) floor_ = std::max(floor_, least);
  const Absence step{.passed = passed, .rise = least < kNone ? least - before : 0, .floor = floor_};
  for (auto& [id, tenant] : tenants_) {
    if (tenant.wants) continue;
    tenant.away += passed;
    tenant.service = ServiceAfter(step, tenant.service, tenant.weight, tenant.away);
  }
}

void TenantService::See(const Snapshot& snapshot) {
  const auto own = [&](std::uint32_t tenant) {
    return snapshot.kernels.empty() || tenant == snapshot.kernels.front().tenant;
  };
  const bool one = std::ranges::all_of(snapshot.kernels, own, &KernelView::tenant) &&
                   std::ranges::all_of(tenants_, own, [](const auto& entry) { return entry.first; });
  if (one) {  // nobody to be behind: no need to look at the device
    tenants_.clear();
    if (!snapshot.kernels.empty()) tenants_[snapshot.kernels.front().tenant] = {.service = floor_, .wants = true};
    last_ = std::max(last_, snapshot.cycle);
    return;
  }
  Charge(snapshot.cycle > last_ ? static_cast<double>(snapshot.cycle - last_) : 0);
  last_ = std::max(last_, snapshot.cycle);
  for (auto& [id, tenant] : tenants_) {
    tenant.holds = 0;
    tenant.wants = false;
  }
  const WholeDevice device(snapshot);
  for (const KernelView& kernel : snapshot.kernels) {
    Tenant& tenant = tenants_.try_emplace(kernel.tenant, Tenant{.service = floor_}).first->second;
    tenant.weight = kernel.weight > 0 ? kernel.weight : 1;
    tenant.holds += device.PartOf(kernel);
    tenant.wants = true;
  }
  std::erase_if(tenants_, [&](const auto& entry) { return !entry.second.wants && entry.second.service == floor_; });
}

std::vector<std::uint32_t> TenantService::Turns() const {
  std::vector<std::uint32_t> turns;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.wants) turns.push_back(id);
  }
  std::ranges::stable_sort(turns, {}, [&](std::uint32_t id) { return tenants_.at(id).service; });
  return turns;
}

}  // namespace gridloom::policy
