// What is kept of a replay.
#pragma once

#include "sim/study/paper/replayed.h"

namespace gridloom::study::pipeline {

struct Launch {
  std::size_t stream = 0, stage = 0;  ///< stage: its place in its stream
  double started = 0, ended = 0;      ///< cycles
  double warp_instructions = 0;
  double took() const { return ended - started; }
};

/// Cycles are of SMs.
struct Outcome {
  double cycles = 0;  ///< from the first kernel's begin to the last one's end
  double warp_instructions = 0, thread_instructions = 0;
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double l2_accesses = 0, l2_misses = 0;  ///< sectors
  std::vector<Launch> launches{};
  std::vector<policy::DkaStep> steps{};  ///< of policy dka

  double dram_bytes() const { return dram_read_bytes + dram_write_bytes; }
  double ipc() const { return warp_instructions / cycles; }

  static constexpr std::string_view kWhat = "";
  static Result<Outcome> Of(const Replayed& replayed);
  void Keep(auto& numbers) {
    numbers(cycles, warp_instructions, thread_instructions, dram_read_bytes, dram_write_bytes, l2_accesses, l2_misses);
    numbers.List(launches, [](auto& of, Launch& launch) {
      of(launch.stream, launch.stage, launch.started, launch.ended, launch.warp_instructions);
    });
    numbers.List(steps, [](auto& of, policy::DkaStep& step) {
      of(step.begin);
      of.List(step.kernels, [](auto& one, policy::DkaStep::Kernel& kernel) {
        one(kernel.launch, kernel.stage, kernel.sms, kernel.took);
      });
    });
  }
};

}  // namespace gridloom::study::pipeline
