// How much of the device each tenant has had, by its weight: who is behind gets the next turn.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// Service is the part of the device that a tenant's blocks hold, summed over time, by its weight. Who is away is
/// charged for it (absence.h), up to what the one who is furthest behind has had: nobody saves up time, and nobody
/// loses its turn by a short absence.
class TenantService {
 public:
  /// To be called with every snapshot.
  void See(const Snapshot& snapshot);

  /// Who has launches that have not ended; least service first, among equals by number.
  std::vector<std::uint32_t> Turns() const;
  double service(std::uint32_t tenant) const { return tenants_.at(tenant).service; }  ///< cycles; of one of Turns()
  double weight(std::uint32_t tenant) const { return tenants_.at(tenant).weight; }

 private:
  struct Tenant {
    double weight = 1, service = 0;
    double holds = 0;  ///< part of the device
    double away = 0;   ///< for how long it has wanted nothing
    bool wants = false;
  };
  void Charge(double passed);

  std::map<std::uint32_t, Tenant> tenants_;
  double floor_ = 0;  ///< least service of those who wanted something
  std::uint64_t last_ = 0;
};

}  // namespace gridloom::policy
