// Launches by a function through parameter buffers: which call made the buffer, and of which kernel.
//
//   call (r), cudaGetParameterBufferV2, (kernel, grid, block, shared);   ld.param.b64 b, [r];
//   st.u64 [b], …;   call (e), cudaLaunchDeviceV2, (b, stream);
//
// A launch is followed when its buffer is in any case the one that one call has made last, and when nothing else is
// done with that buffer but to fill it: then the buffer may be other memory.
#pragma once

#include <string>
#include <vector>

#include "rewriter/analysis/cfg.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

enum class LaunchKind : std::uint8_t {
  kStream,  ///< cudaLaunchDeviceV2: buffer, stream
  kGroup,   ///< cudaLaunchAggGroupV2: buffer
  kEither,  ///< what `aggregate` calls where that is known when the code runs: buffer, stream
};

struct LaunchSite {
  LaunchKind kind = LaunchKind::kStream;
  const ptx::Instruction* launch = nullptr;
  // When there is nothing against it:
  const ptx::Instruction* buffer = nullptr;  ///< the call that made the buffer
  const ptx::Function* child = nullptr;      ///< the kernel
  std::string why_not{};                     ///< a clause
};

bool HasLaunchSites(const ptx::Function& function);
/// In the order of the code.
std::vector<LaunchSite> LaunchSitesOf(const analysis::Cfg& cfg);

}  // namespace gridloom::passes
