#include "sim/timing/dispatch/cta_placement.h"

#include <algorithm>

#include "rewriter/support/check.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {
namespace {

/// Room, the policy's slice.
bool HasRoom(const PlacementQuery& query, std::uint32_t sm) {
  if (!query.sms[sm].Fits(query.kernel.needs)) return false;
  if (query.slice.max_per_sm != 0 && query.kernel.resident[sm] >= query.slice.max_per_sm) return false;
  return query.slice.sms.empty() || std::ranges::binary_search(query.slice.sms, sm);
}

bool WithinLimits(const PlacementQuery& query, std::uint32_t sm) {
  return std::ranges::all_of(query.limits, [&](CtaLimit* limit) {
    return limit->MayHold(query.now, static_cast<std::uint32_t>(query.kernel.id), sm, query.kernel.resident[sm]);
  });
}

}  // namespace

bool PlacementQuery::Allows(std::uint32_t sm) const { return HasRoom(*this, sm) && WithinLimits(*this, sm); }

bool PlacementQuery::OnlyLimited(std::uint32_t sm) const { return HasRoom(*this, sm) && !WithinLimits(*this, sm); }

std::optional<std::uint32_t> PlacementQuery::RoundRobin() const {
  const auto count = static_cast<std::uint32_t>(sms.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t sm = next_sm + i < count ? next_sm + i : next_sm + i - count;
    if (Allows(sm)) return sm;
  }
  return std::nullopt;
}

CtaPlacement::CtaPlacement(const Parameters& parameters, const Ports& ports)
    : parameters_(parameters),
      ports_(ports),
      sms_(parameters.device.sm.count, EmptySm(parameters.device)),
      free_slots_(parameters.device.sm.count) {
  for (auto& slots : free_slots_) {
    for (std::uint32_t slot = parameters.device.sm.max_blocks; slot-- > 0;)
      slots.push_back(static_cast<std::uint16_t>(slot));
  }
}

std::optional<Placement> CtaPlacement::Choose(Cycle now, const policy::KernelView& kernel, const policy::Slice& slice,
                                              bool& limited) const {
  const PlacementQuery query{now, kernel, slice, sms_, next_sm_, ports_.cta_limits};
  std::optional<Placement> chosen;
  if (ports_.placer != nullptr) {
    chosen = ports_.placer->Place(query);
  } else if (const auto sm = query.RoundRobin()) {
    chosen = Placement{.sm = *sm, .cta = kernel.started};
  }
  if (chosen) return chosen;
  for (std::uint32_t sm = 0; !ports_.cta_limits.empty() && !limited && sm < sms_.size(); ++sm)
    limited = query.OnlyLimited(sm);
  return std::nullopt;
}

CtaPlacement::Taken CtaPlacement::Take(Cycle now, std::uint32_t index, const policy::CtaNeeds& needs) {
  policy::SmView& sm = sms_[index];
  GL_CHECK(sm.Fits(needs), "a CTA was placed on an SM that has no room for it");
  const Cycle decision = std::max(now, next_decision_);
  next_decision_ = decision + parameters_.timing().launch.cta_interval;
  --sm.free_ctas;
  sm.free_warps -= needs.warps;
  sm.free_registers -= needs.registers;
  sm.free_shared_bytes -= needs.shared_bytes;
  ++sm.resident_ctas;
  const std::uint16_t slot = free_slots_[index].back();
  free_slots_[index].pop_back();
  next_sm_ = index + 1 < sms_.size() ? index + 1 : 0;
  return {.at = decision + parameters_.timing().launch.cta_cycles, .slot = slot};
}

void CtaPlacement::Release(std::uint32_t index, std::uint16_t slot, const policy::CtaNeeds& needs) {
  policy::SmView& sm = sms_[index];
  ++sm.free_ctas;
  sm.free_warps += needs.warps;
  sm.free_registers += needs.registers;
  sm.free_shared_bytes += needs.shared_bytes;
  --sm.resident_ctas;
  free_slots_[index].push_back(slot);
}

}  // namespace gridloom::timing
