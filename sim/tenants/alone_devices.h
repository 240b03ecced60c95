// The devices of their own that some tenants have, and what is known of their programs there and on the shared one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "sim/device/device_spec.h"
#include "sim/tenants/alone_device.h"

namespace gridloom::tenants {

class AloneDevices {
 public:
  struct Options {
    std::uint32_t most = 0;  ///< at the same time
    /// Tells the operator; about each tenant once, on any thread.
    std::function<void(const std::string& sentence)> tell{};
    std::function<void()> changed{};  ///< Attend has something to do; on any thread
  };
  AloneDevices(sim::DeviceSpec device, Options options) : device_(std::move(device)), options_(std::move(options)) {}

  /// On the service's thread. A program that begins; `others`: the tenant has some that began before. Null: it is not
  /// simulated alone, as there are `most`, or others of its tenant are not, or there is no memory for it.
  std::shared_ptr<AloneProgram> Join(std::uint32_t tenant, const std::string& name,
                                     const std::shared_ptr<TenantAccount>& account, timing::Cycle shared_begin,
                                     bool others);
  /// On the service's thread: lets go of devices that are not needed any more.
  void Attend();
  /// From any thread.
  SharingTotals::Cycles TimesOf(std::uint32_t tenant) const;

 private:
  void Tell(std::uint32_t tenant, const std::string& name, const std::string& why);

  const sim::DeviceSpec device_;
  const Options options_;
  std::map<std::uint32_t, std::shared_ptr<AloneDevice>> devices_;  ///< by tenant; of the service's thread

  mutable std::mutex mutex_;  ///< guards what follows; nothing else is locked while it is held
  std::map<std::uint32_t, std::shared_ptr<SharingTotals>> totals_;
  std::set<std::uint32_t> told_;
};

}  // namespace gridloom::tenants
