// A kernel in memory, as experiments run it again and again: the thread blocks of one traced launch, in a circle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::study {

/// Thread blocks that are read from a file for a TracedKernel take no more memory than about this: those beyond are
/// left out. With shifts each has a trace of its own.
inline constexpr std::uint64_t kMostKernelBytes = std::uint64_t{1} << 30;

/// Immutable once made; shared by measurements that run at the same time.
struct TracedKernel {
  std::string name;           ///< as experiments call it
  std::string digest;         ///< of what it was made from: equal digests give equal cycles in one layout of pages
  std::uint32_t process = 0;  ///< whose memory it uses (timing::KernelWork::address_space)
  trace::KernelCode code;
  trace::LaunchShape shape;  ///< `ctas`: how many there are below
  std::vector<std::shared_ptr<const trace::CtaTrace>> ctas;
  double instructions_per_cta = 0;  ///< warp instructions, mean

  /// For kernels made by hand. Takes code, shape and thread blocks (at least one) as they are.
  static std::shared_ptr<const TracedKernel> Make(std::string name, trace::KernelCode code, trace::LaunchShape shape,
                                                  std::vector<std::shared_ptr<const trace::CtaTrace>> ctas,
                                                  std::uint32_t process = 0);
};

/// The first complete launch in the file of a kernel whose name contains `kernel`. Blocks that were not kept
/// (--trace-ctas) are missing in the circle.
Result<std::shared_ptr<const TracedKernel>> LoadTracedKernel(const std::string& path, const std::string& kernel,
                                                             const std::string& name, std::uint32_t process = 0);

/// `count` blocks of the kernel from block `first` on; after its last one comes its first one again.
std::shared_ptr<trace::CtaSource> BlocksOf(std::shared_ptr<const TracedKernel> kernel, std::uint64_t first,
                                           std::uint64_t count);

}  // namespace gridloom::study
