#include "scheduler/core/device_room.h"

#include <algorithm>

namespace gridloom::sched {
namespace {

/// How many such CTAs the multiprocessor has room for.
std::uint32_t Fit(const policy::SmView& sm, const policy::CtaNeeds& needs) {
  std::uint32_t fit = sm.free_ctas;
  if (needs.warps != 0) fit = std::min(fit, sm.free_warps / needs.warps);
  if (needs.registers != 0) fit = std::min(fit, sm.free_registers / needs.registers);
  if (needs.shared_bytes != 0) fit = std::min(fit, sm.free_shared_bytes / needs.shared_bytes);
  return fit;
}

void Change(policy::SmView& sm, const policy::CtaNeeds& needs, std::int32_t ctas) {
  const auto count = static_cast<std::uint32_t>(ctas);  // wraps round for a negative number, as do the sums
  sm.free_ctas -= count;
  sm.free_warps -= count * needs.warps;
  sm.free_registers -= count * needs.registers;
  sm.free_shared_bytes -= count * needs.shared_bytes;
}

}  // namespace

std::uint64_t DeviceRoom::TakeUpTo(std::uint32_t per_sm, const policy::CtaNeeds& needs, std::uint64_t want,
                                   std::uint32_t max_per_sm, std::span<std::uint16_t> resident, Holding* holding) {
  std::uint64_t taken = 0;
  const auto count = static_cast<std::uint32_t>(sms_.size());
  for (std::uint32_t i = 0; i < count && taken < want; ++i) {
    const std::uint32_t index = next_;
    next_ = index + 1 < count ? index + 1 : 0;
    policy::SmView& sm = sms_[index];
    if (!sm.Fits(needs)) continue;
    std::uint32_t here = per_sm == 1 ? 1 : std::min(per_sm, Fit(sm, needs));
    if (max_per_sm != 0) here = std::min(here, max_per_sm - std::min<std::uint32_t>(max_per_sm, resident[index]));
    here = static_cast<std::uint32_t>(std::min<std::uint64_t>(here, want - taken));
    if (here == 0) continue;
    Change(sm, needs, static_cast<std::int32_t>(here));
    resident[index] = static_cast<std::uint16_t>(resident[index] + here);
    holding->emplace_back(index, here);
    taken += here;
  }
  return taken;
}

std::uint64_t DeviceRoom::Take(const policy::CtaNeeds& needs, std::uint64_t want, std::uint32_t max_per_sm,
                               std::span<std::uint16_t> resident, Holding* holding) {
  std::uint64_t taken = 0;
  while (taken < want) {
    const std::uint64_t even = (want - taken + sms_.size() - 1) / sms_.size();
    const std::uint64_t more = TakeUpTo(static_cast<std::uint32_t>(std::min<std::uint64_t>(even, ~std::uint32_t{0})),
                                        needs, want - taken, max_per_sm, resident, holding);
    if (more == 0) break;
    taken += more;
  }
  return taken;
}

void DeviceRoom::Give(const policy::CtaNeeds& needs, const Holding& holding, std::span<std::uint16_t> resident) {
  for (const auto& [sm, ctas] : holding) {
    Change(sms_[sm], needs, -static_cast<std::int32_t>(ctas));
    resident[sm] = static_cast<std::uint16_t>(resident[sm] - ctas);
  }
}

}  // namespace gridloom::sched
