#include "sim/study/pagoda/outcome.h"

#include <algorithm>

namespace gridloom::study::pagoda {
namespace {

/// Streams of programs; those of parts have higher numbers.
constexpr std::uint32_t kProgramStreams = 1u << 31;

}  // namespace

/// What the program gave the device.
Result<Outcome> Outcome::Of(const Replayed& replayed) {
  const sim::DeviceSpec& device = replayed.device;
  Outcome outcome{.sms = static_cast<double>(device.sm.count),
                  .warps_per_sm = static_cast<double>(device.max_warps_per_sm()),
                  .sm_mhz = static_cast<double>(device.timing.clock.sm_mhz)};
  for (const std::uint64_t cycles : replayed.result.programs)
    outcome.cycles = std::max(outcome.cycles, static_cast<double>(cycles));
  Spans kernels, copies;
  timing::Cycle first = timing::kNever, last = 0;
  for (const timing::WorkResult& work : replayed.result.works) {
    if (!work.done() || work.stream >= kProgramStreams || work.kind == timing::WorkKind::kMarker) continue;
    (work.kind == timing::WorkKind::kKernel ? kernels : copies)
        .emplace_back(std::min(work.started, work.ended), work.ended);
    if (work.kind != timing::WorkKind::kKernel) continue;
    first = std::min(first, work.submitted);
    last = std::max(last, work.ended);
    outcome.latency_cycles += static_cast<double>(work.ended - work.submitted);
    outcome.warp_instructions += static_cast<double>(work.warp_instructions);
    ++outcome.launches;
  }
  if (outcome.launches > 0) outcome.latency_cycles /= outcome.launches;
  outcome.kernel_cycles = Covered(std::move(kernels));
  outcome.copy_cycles = Covered(std::move(copies));
  if (last > first) outcome.span_cycles = static_cast<double>(last - first);
  outcome.task_warp_cycles = replayed.Counter("pagoda_task_warp_cycles");
  if (outcome.task_warp_cycles == 0) outcome.task_warp_cycles = replayed.Counter("warp_cycles");
  return outcome;
}

}  // namespace gridloom::study::pagoda
