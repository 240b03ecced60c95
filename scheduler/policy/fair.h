// Weighted fair sharing of the device between tenants. A tenant's service is the part of the device that its blocks occupied,
// times the time they did; the next blocks go to the tenant with the least service per weight. A tenant without kernels is
// charged as if it had the device, until it is level with the least served of those at work: nobody saves up time, and who
// only synchronises between two launches loses nothing. (Start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996, with
// dominant shares for several resources: Ghodsi et al., NSDI 2011.)
//
// A tenant that launches again as soon as a launch has ended is never there when the next slice is given, and would get no more
// than every other one, whatever its weight. So for a moment the device is kept free for one that has had less than its share
// and usually comes back in time (anticipation: Iyer and Druschel, SOSP 2001). That moment is charged to the one it is kept for: who makes
// the others wait has the device meanwhile, and by coming and going gets no more of the time than its share, idle or not.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Fair final : public Policy {
 public:
  /// `wait`: how long, in the unit of Snapshot::cycle, the device is kept free for a tenant that has just left; 0: not at all.
  /// `processors`: of the host, which run blocks where KernelView::occupied is known.
  explicit Fair(std::uint64_t wait = 0, std::uint32_t processors = 0) : wait_(wait), processors_(processors) {}
  std::string_view name() const override { return "fair"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
  std::optional<std::uint64_t> Again() const override { return again_; }
  std::span<const std::uint32_t> KeptFor() const override { return kept_for_; }

 private:
  struct Tenant {
    double service = 0;   ///< device-time per weight
    double occupied = 0;  ///< part of the device its blocks hold, as of last_
    double weight = 1;
    bool wants = false;      ///< has a kernel that has not ended, as of last_
    std::uint64_t left = 0;  ///< when it wanted something last; 0: it still does, or never did
    double absence = 0;      ///< how long it usually stays away
    bool kept = false;       ///< the device is kept free for it, as of last_
  };

  /// Adds what was occupied since the last call.
  void Charge(std::uint64_t now);
  /// Takes over who wants something, and what is occupied, now.
  void TakeOver(const Snapshot& snapshot);
  /// It has just left and is about to come back.
  bool Expected(const Tenant& tenant) const { return tenant.left != 0 && tenant.absence * 2 <= static_cast<double>(wait_); }
  /// Where blocks share the host's processors (KernelView::occupied): the tenant is ahead of one that runs, whose time it would take if it
  /// started something now. It may later, at again_, if that is known.
  bool IsAhead(const Tenant& tenant, const Snapshot& snapshot);
  /// Keeps the device free for tenants that have had less than that service; answers until when.
  std::optional<std::uint64_t> KeepFree(double service);

  static constexpr double kLead = 2'000'000;  ///< device time, ns, that a tenant may be ahead of others and start something beside them
  const std::uint64_t wait_;
  const std::uint32_t processors_;
  std::optional<std::uint64_t> again_;
  std::map<std::uint32_t, Tenant> tenants_;  ///< those at work, and those that are not level with them
  std::uint64_t last_ = 0;                   ///< Snapshot::cycle of the last call
  std::vector<std::uint32_t> kept_for_;
  double free_ = 0;   ///< part of the device that nobody's blocks hold, as of last_
  double floor_ = 0;  ///< least service of a tenant at work; never falls
};

}  // namespace gridloom::policy
