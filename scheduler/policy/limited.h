// Another policy, within limits per tenant: a tenant over its cap starts nothing, and no more of its kernels take part
// than may be in flight. For the timing model, where kernels are not announced one by one as to sched::Scheduler; what
// a cap means is the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "scheduler/policy/cap_credit.h"
#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Limited final : public Policy {
 public:
  struct Limits {
    double cap = 1;
    std::uint32_t in_flight = ~std::uint32_t{0};
    bool operator==(const Limits&) const = default;
  };
  /// What holds of a tenant now. Asked in every decision.
  using LimitsOf = std::function<Limits(std::uint32_t tenant)>;

  /// `burst`: time, in the unit of Snapshot::cycle, whose part a tenant with a cap may save up.
  Limited(std::unique_ptr<Policy> policy, std::uint64_t burst, LimitsOf limits_of)
      : policy_(std::move(policy)), burst_(static_cast<double>(burst)), limits_of_(std::move(limits_of)) {}
  std::string_view name() const override { return policy_->name(); }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
  std::optional<std::uint64_t> Again() const override { return again_; }

  /// From the next decision on.
  void Set(std::unique_ptr<Policy> policy) { policy_ = std::move(policy); }

 private:
  struct Tenant {
    Limits limits;
    CapCredit credit;
    std::uint32_t running = 0;   ///< kernels with blocks on the device, as of last_
    std::uint32_t admitted = 0;  ///< kernels that take part in this decision
  };
  void Charge(std::uint64_t now);
  void TakeOver(std::span<const KernelView> kernels);
  std::span<const KernelView> Admit(const Snapshot& snapshot);

  std::unique_ptr<Policy> policy_;
  const double burst_;
  const LimitsOf limits_of_;
  std::map<std::uint32_t, Tenant> tenants_;
  std::uint32_t running_ = 0;  ///< kernels with blocks on the device, as of last_
  std::uint64_t last_ = 0;
  std::vector<KernelView> admitted_;
  std::optional<std::uint64_t> again_;
};

}  // namespace gridloom::policy
