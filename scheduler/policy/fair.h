// Weighted fair sharing of the device between tenants. A tenant's service is the part of the device that its blocks occupied,
// times the time they did; the next blocks go to the tenant with the least service per weight. A tenant without kernels is
// charged as if it had the device, until it is level with the least served of those at work: nobody saves up time, and who
// only synchronises between two launches loses nothing. (Start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996, with
// dominant shares for several resources: Ghodsi et al., NSDI 2011.)
#pragma once

#include <map>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Fair final : public Policy {
 public:
  std::string_view name() const override { return "fair"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;

 private:
  struct Tenant {
    double service = 0;   ///< device-time per weight
    double occupied = 0;  ///< part of the device its blocks hold, as of last_
    double weight = 1;
    bool wants = false;  ///< has a kernel that has not ended, as of last_
  };

  /// Adds what was occupied since the last call.
  void Charge(std::uint64_t now);
  /// Takes over who wants something, and what is occupied, now.
  void TakeOver(const Snapshot& snapshot);

  std::map<std::uint32_t, Tenant> tenants_;  ///< those at work, and those that are not level with them
  std::uint64_t last_ = 0;                   ///< Snapshot::cycle of the last call
  double floor_ = 0;                         ///< least service of a tenant at work; never falls
};

}  // namespace gridloom::policy
