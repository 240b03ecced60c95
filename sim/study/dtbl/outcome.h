// What is kept of a replay.
#pragma once

#include "sim/study/paper/replayed.h"

namespace gridloom::study::dtbl {

struct Outcome {
  double busy_cycles = 0;  ///< SM cycles in which a kernel ran, or one that a kernel launched was pending
  double warp_instructions = 0, thread_instructions = 0;
  double warp_cycles = 0;                                     ///< sum over cycles of resident warps
  double dram_busy_cycles = 0, dram_active_cycles = 0;        ///< of channels
  double launches = 0, wait_cycles = 0;                       ///< by kernels
  double most_bytes = 0, byte_cycles = 0;                     ///< of pending launches
  double joined = 0, unmatched = 0, ordered = 0, spills = 0;  ///< counters of the part dtbl
  double table_most = 0;
  double sms = 0, warps_per_sm = 0;  ///< of the device
  double sm_mhz = 0;

  double warp_activity() const { return 100 * thread_instructions / (32 * warp_instructions); }  ///< per cent
  double dram_efficiency() const { return dram_active_cycles == 0 ? 0 : dram_busy_cycles / dram_active_cycles; }
  double occupancy() const { return 100 * warp_cycles / (busy_cycles * sms * warps_per_sm); }  ///< per cent
  double waiting() const { return launches == 0 ? 0 : wait_cycles / launches; }
  double microseconds() const { return busy_cycles / sm_mhz; }

  static constexpr std::string_view kWhat = "";
  static Result<Outcome> Of(const Replayed& replayed);
  void Keep(auto& numbers) {
    numbers(busy_cycles, warp_instructions, thread_instructions, warp_cycles, dram_busy_cycles, dram_active_cycles,
            launches, wait_cycles, most_bytes, byte_cycles, joined, unmatched, ordered, spills, table_most, sms,
            warps_per_sm, sm_mhz);
  }
};

}  // namespace gridloom::study::dtbl
