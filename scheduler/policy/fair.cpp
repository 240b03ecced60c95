#include "scheduler/policy/fair.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "scheduler/policy/absence.h"
#include "scheduler/policy/device_part.h"

namespace gridloom::policy {
namespace {

constexpr double kLongest = 1e9;  // ns until a tenant that is ahead is looked at again, at most

}  // namespace

void Fair::Charge(std::uint64_t now) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const double passed = now > last_ ? static_cast<double>(now - last_) : 0;
  last_ = std::max(last_, now);
  double before = kNone, least = kNone;
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.wants) continue;
    before = std::min(before, tenant.service);
    tenant.service += tenant.occupied * passed / tenant.weight;
    tenant.had += tenant.occupied * passed;
    least = std::min(least, tenant.service);
  }
  if (least < kNone) floor_ = std::max(floor_, least);
  const double rise = least < kNone ? least - before : 0;
  const double kept = kept_for_.empty() ? 0 : free_ * passed / static_cast<double>(kept_for_.size());
  for (auto& [id, tenant] : tenants_) {
    if (tenant.wants) continue;
    const bool awaited = tenant.awaited_until != 0;
    const Absence step{.passed = awaited ? 0 : passed, .rise = rise, .floor = floor_};
    const double away = awaited ? 0 : static_cast<double>(last_ - tenant.left);
    const double kept_free = tenant.service + (tenant.kept ? kept / tenant.weight : 0);
    // While it may be waited for, being away costs it nothing but what is kept free for it, as long as it is owed
    // little.
    const bool charged = !awaited || (floor_ - tenant.service) * tenant.weight > kLead;
    tenant.service = charged ? std::max(ServiceAfter(step, tenant.service, tenant.weight, away), kept_free) : kept_free;
    if (awaited && last_ >= tenant.awaited_until) GiveUp(tenant);
  }
  std::erase_if(tenants_, [&](const auto& entry) {
    const Tenant& tenant = entry.second;
    return !tenant.wants && tenant.service == floor_ && tenant.awaited_until == 0;
  });
}

void Fair::Leave(Tenant& tenant, std::uint64_t now) {
  tenant.left = now;
  tenant.was_kept = false;
  tenant.awaited_until = 0;
  if (wait_ == 0) return;
  if (tenant.passed != 0) --tenant.passed;
  else tenant.awaited_until = now + WaitFor(tenant);
}

std::uint64_t Fair::WaitFor(const Tenant& tenant) const {
  constexpr std::uint64_t kMostTimes = 10;
  constexpr double kPart = 8;
  const double most = static_cast<double>(wait_ * kMostTimes);
  return std::max(wait_, static_cast<std::uint64_t>(std::min(tenant.had / kPart, most)));
}

void Fair::Return(Tenant& tenant) {
  if (tenant.awaited_until != 0 && tenant.was_kept) tenant.vain = 0;
  tenant.awaited_until = 0;
  tenant.had = 0;
}

void Fair::GiveUp(Tenant& tenant) {
  tenant.awaited_until = 0;
  if (!tenant.was_kept) return;
  tenant.vain = std::min(tenant.vain + 1, kMostVain);
  tenant.passed = (1u << tenant.vain) - 1;
}

void Fair::TakeOver(const Snapshot& snapshot) {
  kept_for_.clear();
  for (auto& [id, tenant] : tenants_) {
    tenant.occupied = 0;
    tenant.kept = false;
    tenant.wanted = std::exchange(tenant.wants, false);
  }
  const WholeDevice device(snapshot);
  free_ = 1;
  for (const KernelView& kernel : snapshot.kernels) {
    Tenant& tenant = tenants_.try_emplace(kernel.tenant, Tenant{.service = floor_}).first->second;
    tenant.weight = kernel.weight > 0 ? kernel.weight : 1;
    const double part = device.PartOf(kernel);
    tenant.occupied += part;
    free_ = std::max(free_ - part, 0.0);
    tenant.wants = true;
  }
  for (auto& [id, tenant] : tenants_) {
    if (tenant.wants && !tenant.wanted) Return(tenant);
    if (!tenant.wants && tenant.wanted) Leave(tenant, last_);
  }
}

std::optional<std::uint64_t> Fair::KeepFree(double service) {
  std::optional<std::uint64_t> until;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.wants || tenant.awaited_until == 0 || tenant.service >= service) continue;
    until = std::min(until.value_or(tenant.awaited_until), tenant.awaited_until);
    tenant.kept = tenant.was_kept = true;
    kept_for_.push_back(id);
  }
  return until;
}

bool Fair::IsAhead(const Tenant& tenant, const Snapshot& snapshot) {
  std::uint64_t running = 0;
  for (const KernelView& kernel : snapshot.kernels) running += kernel.started - kernel.finished;
  if (running == 0 || running < processors_) return false;
  const auto lead = [&](const Tenant& behind) { return tenant.service - behind.service - kLead / tenant.weight; };
  const Tenant* behind = nullptr;
  for (const auto& [id, other] : tenants_) {
    if (other.occupied > 0 && lead(other) > 0 && (behind == nullptr || other.service < behind->service))
      behind = &other;
  }
  if (behind == nullptr) return false;
  if (const double nears = behind->occupied / behind->weight - tenant.occupied / tenant.weight; nears > 0)
    again_ = last_ + static_cast<std::uint64_t>(std::ceil(std::min(lead(*behind) / nears, kLongest)));
  return true;
}

std::optional<Slice> Fair::Next(const Snapshot& snapshot) {
  Charge(snapshot.cycle);
  TakeOver(snapshot);
  const KernelView* best = nullptr;
  const Tenant* best_tenant = nullptr;
  for (const KernelView& kernel : snapshot.kernels) {
    if (kernel.all_started()) continue;
    const Tenant& tenant = tenants_.at(kernel.tenant);
    const bool less = best == nullptr || tenant.service < best_tenant->service ||
                      (tenant.service == best_tenant->service &&
                       tenant.occupied / tenant.weight < best_tenant->occupied / best_tenant->weight);
    if (!less) continue;
    best = &kernel;
    best_tenant = &tenant;
  }
  again_.reset();
  if (best == nullptr) return std::nullopt;
  if (again_ = KeepFree(best_tenant->service); again_) return std::nullopt;
  if (best->occupied >= 0 && IsAhead(*best_tenant, snapshot)) return std::nullopt;
  const std::uint64_t left = best->ctas - best->started;
  const bool alone = std::ranges::count_if(tenants_, [](const auto& entry) { return entry.second.wants; }) == 1;
  if (alone || best->occupied >= 0) return Slice{.kernel = best->id, .ctas = left};
  // A block for each multiprocessor at a time: tenants that are level fill the device side by side.
  return Slice{.kernel = best->id,
               .ctas = std::min<std::uint64_t>(left, std::max<std::size_t>(snapshot.sms.size(), 1))};
}

}  // namespace gridloom::policy
