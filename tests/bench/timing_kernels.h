// The kernels on which the timing model's speed is measured, one for each way of using a GPU; made by hand, with
// addresses and mixes of real ones.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

struct BenchKernel {
  std::string name;
  std::string what;
  double aim = 0;  ///< million warp-instructions a second on one thread
  std::shared_ptr<trace::CtaSource> source;
};

/// `ctas` is the grid size of the kernels that fill a device.
std::vector<BenchKernel> BenchKernels(std::uint64_t ctas);

}  // namespace gridloom::timing
