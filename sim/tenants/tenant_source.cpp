#include "sim/tenants/tenant_source.h"

#include <utility>

namespace gridloom::tenants {
namespace {

/// What remembering a CTA that waits takes beside its trace, and a page of those that have come.
constexpr std::uint64_t kCtaBytes = 64, kPageBytes = 600;

}  // namespace

TenantSource::TenantSource(std::shared_ptr<const trace::KernelCode> code, const trace::LaunchShape& shape, Owner owner)
    : code_(std::move(code)),
      owner_(std::move(owner)),
      live_(*code_, shape, owner_.store != nullptr ? owner_.store : owner_.account->store(), owner_.account.get()),
      pages_(owner_.account) {}

TenantSource::~TenantSource() { owner_.account->Give(waiting_ * kCtaBytes); }

Result<trace::LoadedCta> TenantSource::Load(std::uint64_t index) {
  if (begun() == timing::kNever) begun_.store(owner_.now(), std::memory_order_relaxed);
  auto cta = live_.Load(index);
  if (cta.ok()) {
    // One that did not come is empty, and was never counted.
    std::uint64_t waiting = waiting_.load(std::memory_order_relaxed);
    while (waiting != 0 && !waiting_.compare_exchange_weak(waiting, waiting - 1, std::memory_order_relaxed)) continue;
    if (waiting != 0) owner_.account->Give(kCtaBytes);
    return cta;
  }
  if (!std::exchange(told_, true)) owner_.problem(cta.error().message);
  auto empty = std::make_shared<trace::CtaTrace>();
  empty->warps.resize(shape().warps_per_cta());
  return trace::LoadedCta{std::move(empty), {}};
}

TenantSource::Pushed TenantSource::Push(std::uint64_t cta, trace::LoadedCta trace) {
  if (cta >= shape().ctas || trace.trace->warps.size() != shape().warps_per_cta()) return Pushed::kNotOfLaunch;
  auto page = came_.find(cta / kPage);
  if (page == came_.end()) {
    if (!pages_.Add(kPageBytes)) return Pushed::kNoMemory;
    page = came_.try_emplace(cta / kPage).first;
  }
  if (page->second.test(cta % kPage)) return Pushed::kNotOfLaunch;
  if (!owner_.account->Take(kCtaBytes)) return Pushed::kNoMemory;
  page->second.set(cta % kPage);
  ++waiting_;
  live_.Push(cta, std::move(trace));
  return live_.problem().empty() ? Pushed::kYes : Pushed::kLost;
}

}  // namespace gridloom::tenants
