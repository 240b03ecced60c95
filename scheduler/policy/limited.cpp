#include "scheduler/policy/limited.h"

#include <algorithm>

namespace gridloom::policy {
namespace {

/// Smaller caps would let the device stand still for longer than anybody simulates.
constexpr double kLeastCap = 0.001;

bool Runs(const KernelView& kernel) { return kernel.started != kernel.finished; }

}  // namespace

/// Kernels that run at the same time have equal parts of the device, as in sched::Scheduler.
void Limited::Charge(std::uint64_t now) {
  const double passed = now > last_ ? static_cast<double>(now - last_) : 0;
  last_ = std::max(last_, now);
  if (passed == 0) return;
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.credit.limits()) continue;
    tenant.credit.Earn(passed);
    if (running_ != 0) tenant.credit.Pay(passed * tenant.running / running_);
  }
}

void Limited::TakeOver(std::span<const KernelView> kernels) {
  running_ = 0;
  for (auto& [id, tenant] : tenants_) tenant.running = tenant.admitted = 0;
  for (const KernelView& kernel : kernels) {
    const auto [at, added] = tenants_.try_emplace(kernel.tenant);
    Tenant& tenant = at->second;
    const Limits limits = limits_of_(kernel.tenant);
    if (added || limits.cap != tenant.limits.cap) tenant.credit = CapCredit(std::max(limits.cap, kLeastCap), burst_);
    tenant.limits = limits;
    if (!Runs(kernel)) continue;
    ++running_;
    ++tenant.running;
    ++tenant.admitted;
  }
}

std::span<const KernelView> Limited::Admit(const Snapshot& snapshot) {
  admitted_.clear();
  for (const KernelView& kernel : snapshot.kernels) {
    Tenant& tenant = tenants_.at(kernel.tenant);
    const bool over = tenant.credit.over();
    if (!Runs(kernel)) {
      if (over || tenant.admitted >= tenant.limits.in_flight) continue;
      ++tenant.admitted;
    }
    admitted_.push_back(kernel);
    if (over) admitted_.back().ctas = kernel.started;  // what runs is seen, but starts nothing
  }
  return admitted_;
}

std::optional<Slice> Limited::Next(const Snapshot& snapshot) {
  Charge(snapshot.cycle);
  TakeOver(snapshot.kernels);
  const auto slice = policy_->Next({.cycle = snapshot.cycle, .kernels = Admit(snapshot), .sms = snapshot.sms});
  again_.reset();
  if (slice) return slice;
  again_ = policy_->Again();
  for (const KernelView& kernel : snapshot.kernels) {
    const CapCredit& credit = tenants_.at(kernel.tenant).credit;
    if (kernel.all_started() || !credit.over()) continue;
    if (const auto wait = credit.Wait(); wait && (!again_ || last_ + *wait < *again_)) again_ = last_ + *wait;
  }
  return slice;
}

}  // namespace gridloom::policy
