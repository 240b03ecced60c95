// What is kept of a replay.
#pragma once

#include "sim/study/paper/replayed.h"

namespace gridloom::study::pagoda {

/// Cycles are the SMs'.
struct Outcome {
  double cycles = 0;                          ///< until all that the program gave the device, and its calls, had ended
  double kernel_cycles = 0, copy_cycles = 0;  ///< in which a kernel ran; in which a copy was done
  double span_cycles = 0;                     ///< from the submission of the first kernel to the end of the last
  double latency_cycles = 0;                  ///< from the submission of a kernel to its end, mean
  double launches = 0, warp_instructions = 0;
  double task_warp_cycles = 0;       ///< warp cycles of tasks: of kernels, or of a MasterKernel's warps that had one
  double sms = 0, warps_per_sm = 0;  ///< of the device
  double sm_mhz = 0;

  double milliseconds() const { return cycles / sm_mhz / 1000; }
  double span_ms() const { return span_cycles / sm_mhz / 1000; }
  double latency_us() const { return latency_cycles / sm_mhz; }
  double copy_percent() const { return 100 * copy_cycles / (copy_cycles + kernel_cycles); }
  double occupancy() const { return 100 * task_warp_cycles / (span_cycles * sms * warps_per_sm); }  ///< per cent

  static constexpr std::string_view kWhat = "";
  static Result<Outcome> Of(const Replayed& replayed);
  void Keep(auto& numbers) {
    numbers(cycles, kernel_cycles, copy_cycles, span_cycles, latency_cycles, launches, warp_instructions,
            task_warp_cycles, sms, warps_per_sm, sm_mhz);
  }
};

}  // namespace gridloom::study::pagoda
