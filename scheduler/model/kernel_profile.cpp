#include "scheduler/model/kernel_profile.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace gridloom::model {
namespace {

struct Bound {
  const char* name;
  double value, least, most;
};

constexpr double kAny = 1e18;

Status Check(const std::string& whose, std::span<const Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (std::isfinite(bound.value) && bound.value >= bound.least && bound.value <= bound.most) continue;
    std::string range = "must be at least " + std::to_string(bound.least);
    if (bound.most < kAny) range += " and at most " + std::to_string(bound.most);
    return Error{whose + ": " + bound.name + " is " + std::to_string(bound.value) + "; it " + range};
  }
  return {};
}

}  // namespace

Status Validate(const KernelProfile& profile) {
  const KernelProfile::Refinement& refinement = profile.refinement;
  const Bound bounds[] = {
      {"needs.warps", static_cast<double>(profile.needs.warps), 1, kAny},
      {"max_resident_ctas", static_cast<double>(profile.max_resident_ctas), 1, kAny},
      {"instructions_per_cta", profile.instructions_per_cta, 0, kAny},
      {"memory_ratio", profile.memory_ratio, 0, 1},
      {"uncoalesced_share", profile.uncoalesced_share, 0, 1},
      {"coalesced_requests", profile.coalesced_requests, 0, kAny},
      {"uncoalesced_requests", profile.uncoalesced_requests, 0, kAny},
      {"pur", profile.pur, 0, kAny},
      {"mur", profile.mur, 0, kAny},
      {"ipc", profile.ipc, 0, kAny},
      {"smallest_slice", static_cast<double>(profile.smallest_slice), 1, kAny},
      {"refinement.dependency_cycles", refinement.dependency_cycles, 1, kAny},
      {"refinement.instructions_per_issue", refinement.instructions_per_issue, 1, kAny},
      {"refinement.loads_per_stall", refinement.loads_per_stall, 1, kAny},
      {"refinement.latency_cycles", refinement.latency_cycles, 0, kAny},
      {"refinement.coalesced_lines", refinement.coalesced_lines, 0, kAny},
      {"refinement.uncoalesced_lines", refinement.uncoalesced_lines, 0, kAny},
      {"refinement.core_ratio", refinement.core_ratio, 0, 1},
  };
  GL_TRY_STATUS(Check("profile of kernel " + profile.kernel, bounds));
  for (const double demand : profile.demands) {
    const Bound bound{"demands", demand, 0, kAny};
    GL_TRY_STATUS(Check("profile of kernel " + profile.kernel, std::span(&bound, 1)));
  }
  return {};
}

Status Validate(const SmModel& sm) {
  const Bound bounds[] = {
      {"sms", static_cast<double>(sm.sms), 1, kAny},
      {"schedulers", static_cast<double>(sm.schedulers), 1, kAny},
      {"peak_ipc", sm.peak_ipc, 1e-6, kAny},
      {"empty.free_ctas", static_cast<double>(sm.empty.free_ctas), 1, kAny},
      {"empty.free_warps", static_cast<double>(sm.empty.free_warps), 1, kAny},
      {"request_bytes", static_cast<double>(sm.request_bytes), 1, kAny},
      {"latency_cycles", sm.latency_cycles, 1, kAny},
      {"requests_per_cycle", sm.requests_per_cycle, 1e-9, kAny},
      {"contention_slope", sm.contention_slope, 0, kAny},
      {"contention_offset", sm.contention_offset, 0, kAny},
      {"request_interval", sm.request_interval, 0, kAny},
      {"lines_in_flight", sm.lines_in_flight, 0, kAny},
  };
  return Check("model of the SM", bounds);
}

std::uint32_t ResidentCtas(const policy::SmView& empty, const policy::CtaNeeds& needs) {
  std::uint32_t count = empty.free_ctas;
  if (needs.warps != 0) count = std::min(count, empty.free_warps / needs.warps);
  if (needs.registers != 0) count = std::min(count, empty.free_registers / needs.registers);
  if (needs.shared_bytes != 0) count = std::min(count, empty.free_shared_bytes / needs.shared_bytes);
  return count;
}

}  // namespace gridloom::model
