// What is kept of replays.
#pragma once

#include "sim/study/paper/replayed.h"

namespace gridloom::study::crcs {

/// What a replay took, in milliseconds. The parts of a run under `serial` follow each other; those of others overlap.
struct Times {
  double total = 0;
  double read = 0, to_device = 0, first = 0, middle = 0, last = 0, to_host = 0,
         write = 0;                                           ///< first, middle, last: kernels
  double profilers = 0;                                       ///< the sum of theirs
  double kernels = 0;                                         ///< how many there were, without profilers
  double kernel_instructions = 0, profiler_instructions = 0;  ///< of warps
  double most_references = 0, most_kernels = 0;               ///< counters of the part `crcs`

  double outside() const { return total - read - to_device - first - middle - last - to_host - write; }
  double all_kernels() const { return first + middle + last; }

  static constexpr std::string_view kWhat = "times";
  static Result<Times> Of(const Replayed& replayed);
  void Keep(auto& numbers) {
    numbers(total, read, to_device, first, middle, last, to_host, write, profilers, kernels, kernel_instructions,
            profiler_instructions, most_references, most_kernels);
  }
};

/// How many of each kernel's CTAs have ended by when. Of a replay that keeps kMostCtas (ReplayInputs::kept_ctas).
struct Progress {
  static constexpr std::size_t kSteps = 20, kMostCtas = 1u << 22;
  double total = 0;                          ///< ms
  double prelude_ends = 0;                   ///< ms: the last byte has been read from storage
  std::vector<std::vector<double>> kernels;  ///< ms, by kernel: when i / kSteps of its CTAs had ended, i from 1 on

  static constexpr std::string_view kWhat = "progress";
  static Result<Progress> Of(const Replayed& replayed);
  void Keep(auto& numbers) {
    numbers(total, prelude_ends);
    numbers.List(kernels, [](auto& of, auto& kernel) { of.List(kernel, [](auto& one, double& end) { one(end); }); });
  }
};

}  // namespace gridloom::study::crcs
