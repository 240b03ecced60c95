#include "sim/tenants/alone_devices.h"

#include <utility>

namespace gridloom::tenants {

std::shared_ptr<AloneProgram> AloneDevices::Join(std::uint32_t tenant, const std::string& name,
                                                 const std::shared_ptr<TenantAccount>& account,
                                                 timing::Cycle shared_begin, bool others) {
  auto device = devices_.find(tenant);
  if (device == devices_.end()) {
    if (others) return nullptr;  // without them it would be another tenant
    if (devices_.size() >= options_.most) {
      Tell(tenant, name, "there are timing_alone others");
      return nullptr;
    }
    auto made = AloneDevice::Create(
        device_, {.account = account,
                  .given_up = [this, tenant, name](const std::string& why) { Tell(tenant, name, why); },
                  .changed = options_.changed});
    if (!made.ok()) {
      Tell(tenant, name, made.error().message);
      return nullptr;
    }
    device = devices_.emplace(tenant, std::move(made).value()).first;
  }
  std::shared_ptr<SharingTotals> totals;
  {
    const std::lock_guard lock(mutex_);
    auto& known = totals_[tenant];
    if (known == nullptr) known = std::make_shared<SharingTotals>();
    totals = known;
  }
  return device->second->AddProgram(std::move(totals), shared_begin);
}

void AloneDevices::Attend() {
  for (const auto& [tenant, device] : devices_) device->Check();
  std::erase_if(devices_, [](const auto& one) { return one.second->idle(); });
}

SharingTotals::Cycles AloneDevices::TimesOf(std::uint32_t tenant) const {
  const std::lock_guard lock(mutex_);
  const auto known = totals_.find(tenant);
  return known != totals_.end() ? known->second->sum() : SharingTotals::Cycles{};
}

void AloneDevices::Tell(std::uint32_t tenant, const std::string& name, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!told_.insert(tenant).second) return;
  }
  if (options_.tell)
    options_.tell("tenant " + name + " is not simulated alone, so that its slowdown is not known: " + why);
}

}  // namespace gridloom::tenants
