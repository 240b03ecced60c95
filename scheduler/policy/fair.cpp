#include "scheduler/policy/fair.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/policy/device_part.h"

namespace gridloom::policy {
namespace {

constexpr double kLongest = 1e9;  // ns until a tenant that is ahead is looked at again, at most

}  // namespace

void Fair::Charge(std::uint64_t now) {
  const double passed = now > last_ ? static_cast<double>(now - last_) : 0;
  last_ = std::max(last_, now);
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t id : kept_for_) {
    Tenant& tenant = tenants_.at(id);
    tenant.service += free_ * passed / static_cast<double>(kept_for_.size()) / tenant.weight;
  }
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.wants) continue;
    tenant.service += tenant.occupied * passed / tenant.weight;
    least = std::min(least, tenant.service);
  }
  if (least > floor_ && least < std::numeric_limits<double>::infinity()) floor_ = least;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.wants || tenant.kept || tenant.service >= floor_) continue;
    // While it is waited for, it is charged no more than what is kept free for it.
    const std::uint64_t until = Expected(tenant) ? tenant.left + wait_ : 0;
    const double alone = now > until ? std::min(passed, static_cast<double>(now - until)) : 0;
    tenant.service = std::min(floor_, tenant.service + alone / tenant.weight);
  }
  std::erase_if(tenants_, [&](const auto& entry) {
    const Tenant& tenant = entry.second;
    const bool awaited = Expected(tenant) && last_ < tenant.left + wait_;
    return !tenant.wants && tenant.service == floor_ && !awaited;
  });
}

void Fair::TakeOver(const Snapshot& snapshot) {
  kept_for_.clear();
  for (auto& [id, tenant] : tenants_) {
    tenant.occupied = 0;
    tenant.kept = false;
    if (tenant.wants) tenant.left = snapshot.cycle;
    tenant.wants = false;
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
    if (const std::uint64_t away = tenant.left != 0 ? snapshot.cycle - tenant.left : 0; away != 0) {
      // A long absence is forgotten after a few short ones.
      tenant.absence += (static_cast<double>(std::min(away, 8 * wait_)) - tenant.absence) / 2;
    }
    tenant.left = 0;
  }
}

std::optional<std::uint64_t> Fair::KeepFree(double service) {
  std::optional<std::uint64_t> until;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.wants || !Expected(tenant) || tenant.service >= service || last_ >= tenant.left + wait_) continue;
    until = std::min(until.value_or(tenant.left + wait_), tenant.left + wait_);
    tenant.kept = true;
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
    if (other.occupied > 0 && lead(other) > 0 && (behind == nullptr || other.service < behind->service)) behind = &other;
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
    const bool less =
        best == nullptr || tenant.service < best_tenant->service ||
        (tenant.service == best_tenant->service && tenant.occupied / tenant.weight < best_tenant->occupied / best_tenant->weight);
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
  return Slice{.kernel = best->id, .ctas = std::min<std::uint64_t>(left, std::max<std::size_t>(snapshot.sms.size(), 1))};
}

}  // namespace gridloom::policy
