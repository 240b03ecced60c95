// Weighted fair sharing of the device between tenants. A tenant's service is the part of the device that its blocks
// occupied, times the time they did; the next blocks go to the tenant with the least service per weight. A tenant
// without kernels is charged for its absence (absence.h), until it is level with the least served of those at work:
// nobody saves up time, and who only synchronises between two launches loses little. (Start-time fair queueing: Goyal,
// Vin, Cheng, SIGCOMM 1996, with dominant shares for several resources: Ghodsi et al., NSDI 2011.)
//
// A tenant that launches again as soon as a launch has ended is never there when the next slice is given, and would get
// no more than every other one, whatever its weight. So for a moment the device is kept free for one that has had less
// than its share (anticipation: Iyer and Druschel, SOSP 2001). That moment is charged to the one it is kept for: who
// makes the others wait has the device meanwhile, and by coming and going gets no more of the time than its share, idle
// or not. How long a tenant stays away says little: while others run, its program may not find a processor to launch
// again. What counts is whether it came back where the device was kept free; who did not is not waited for the next
// time, who did not again the next three times, and so on.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Fair final : public Policy {
 public:
  /// `wait`: how long, in the unit of Snapshot::cycle, the device is kept free for a tenant that has just left, and up
  /// to ten times as long where that is no more than an eighth of what it has just had; 0: not at all. `processors`: of
  /// the host, which run blocks where KernelView::occupied is known.
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
    bool wanted = false;     ///< it had one before
    std::uint64_t left = 0;  ///< when it wanted something last, where it does not
    double had = 0;          ///< device time since it came last
    /// Until then it may be waited for, while it is away; 0: it is not, or not any more.
    std::uint64_t awaited_until = 0;
    bool kept = false;         ///< the device is kept free for it, as of last_
    bool was_kept = false;     ///< it has been, in this absence
    std::uint32_t vain = 0;    ///< how often the device was kept free for it in vain since it last came back in time
    std::uint32_t passed = 0;  ///< so many absences more it is not waited for
  };

  /// Adds what was occupied since the last call.
  void Charge(std::uint64_t now);
  /// Takes over who wants something, and what is occupied, now.
  void TakeOver(const Snapshot& snapshot);
  void Leave(Tenant& tenant, std::uint64_t now);
  /// How long a tenant may be waited for: longer where it has just run for long, as the length of its launches says
  /// what waiting costs the others.
  std::uint64_t WaitFor(const Tenant& tenant) const;
  void Return(Tenant& tenant);
  /// The tenant was waited for and did not come.
  void GiveUp(Tenant& tenant);
  /// Where blocks share the host's processors (KernelView::occupied): the tenant is ahead of one that runs, whose time
  /// it would take if it started something now. It may later, at again_, if that is known.
  bool IsAhead(const Tenant& tenant, const Snapshot& snapshot);
  /// Keeps the device free for tenants that have had less than that service; answers until when.
  std::optional<std::uint64_t> KeepFree(double service);

  /// Device time, ns, that a tenant may be ahead of others and start something beside them.
  static constexpr double kLead = 2'000'000;
  /// Who is waited for in vain is waited for in one of 2^6 absences at least.
  static constexpr std::uint32_t kMostVain = 6;
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
