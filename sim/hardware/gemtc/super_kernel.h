// GeMTC's SuperKernel (S. Krieder, J. Wozniak, T. Armstrong, M. Wilde, D. Katz, B. Grimmer, I. Foster, I. Raicu, Design
// and Evaluation of the GeMTC Framework for GPU-enabled Many-Task Computing, HPDC 2014), as Pagoda's authors describe
// it and compare with it (section 6.2): blocks that stay until a batch is done, each of which takes a task at a time
// from one queue under a lock. The code (rewriter/kernels/super.cu) is ours, written after these texts.
#pragma once

#include <cstdint>
#include <memory>

#include "rewriter/kernels/queue_records.h"
#include "rewriter/support/result.h"
#include "sim/hardware/pagoda/resident_code.h"
#include "sim/timing/sm/decoded_code.h"

namespace gridloom::hardware::gemtc {

inline constexpr std::uint32_t kMostKernels = 64;

struct SuperKernel {
  resident::ResidentCode code;
  std::shared_ptr<const timing::DecodedCode> decoded;
};
Result<std::shared_ptr<const SuperKernel>> MakeSuperKernel(unsigned sm, const sim::TimingSpec& timing);

}  // namespace gridloom::hardware::gemtc
