#include "sim/study/dtbl/outcome.h"

#include <algorithm>

namespace gridloom::study::dtbl {
namespace {

/// Cycles in which at least one kernel ran, or was on its way from the call of a kernel. The program's own time between
/// kernels is none of the device's.
double BusyCycles(const std::vector<timing::WorkResult>& works) {
  Spans spans;
  for (const timing::WorkResult& work : works) {
    if (work.kind == timing::WorkKind::kKernel && work.done())
      spans.emplace_back(std::min(work.started, work.ended), work.ended);
  }
  return Covered(std::move(spans));
}

}  // namespace

Result<Outcome> Outcome::Of(const Replayed& replayed) {
  const sim::DeviceSpec& device = replayed.device;
  return Outcome{.busy_cycles = BusyCycles(replayed.result.works),
                 .warp_instructions = replayed.Counter("warp_instructions"),
                 .thread_instructions = replayed.Counter("thread_instructions"),
                 .warp_cycles = replayed.Counter("warp_cycles"),
                 .dram_busy_cycles = replayed.Counter("dram_busy_cycles"),
                 .dram_active_cycles = replayed.Counter("dram_active_cycles"),
                 .launches = replayed.Counter("device_launches"),
                 .wait_cycles = replayed.Counter("device_launch_wait_cycles"),
                 .most_bytes = replayed.Counter("device_launch_most_bytes"),
                 .byte_cycles = replayed.Counter("device_launch_byte_cycles"),
                 .joined = replayed.Counter("dtbl_joined"),
                 .unmatched = replayed.Counter("dtbl_unmatched"),
                 .ordered = replayed.Counter("dtbl_ordered"),
                 .spills = replayed.Counter("dtbl_table_spills"),
                 .table_most = replayed.Counter("dtbl_table_most"),
                 .sms = static_cast<double>(device.sm.count),
                 .warps_per_sm = static_cast<double>(device.max_warps_per_sm()),
                 .sm_mhz = static_cast<double>(device.timing.clock.sm_mhz)};
}

}  // namespace gridloom::study::dtbl
