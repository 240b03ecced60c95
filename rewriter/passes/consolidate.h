// `consolidate`: launches by kernels that nothing waits for become few: one launch for many (I. El Hajj and others,
// KLAP: Kernel Launch Aggregation and Promotion for Optimizing Dynamic Parallelism, MICRO 2016; M. Olabi and others, A
// Compiler Framework for Optimizing Dynamic Parallelism on GPUs, CGO 2022).
//
//   before:  call (b), cudaGetParameterBufferV2, (k, grid, block, shared);
//            st.u64 [b], …;
//            call (r), cudaLaunchDeviceV2, (b, stream);
//   after:   call (b), gridloom_consolidated_buffer, (…, slot);
//            st.u64 [b], …;                               (the thread's own memory)
//            call (r), gridloom_consolidated_k, (b);
//
// warp:   the lanes that launch together put their launches into a table, and one of them launches k_gl_merged, which
//         has a block for each block of theirs (merged_kernel.h)
// block:  tables go into a list, and the last thread of the block launches those in it (deferred_launches.h)
// grid:   the same with the last block of the grid
// Below a threshold the launching thread does a child's work itself (serial_kernel.h).
//
// Which launches may be merged is what `aggregate` says: a kernel that nothing waits for may start at any time. Refused
// besides, by name: kernels that read what is of their whole grid, launches whose parameter buffers are not followed
// (launch_sites.h), and, but for warps, parents whose blocks end nobody knows where.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewriter/passes/pass.h"

namespace gridloom::passes {

/// Which launches become one.
enum class ConsolidateScope : std::uint8_t {
  kWarp,   ///< those that the lanes of a warp make together
  kBlock,  ///< those of a block, when it ends
  kGrid,   ///< those of a grid, when it ends
};

struct ConsolidateOptions {
  ConsolidateScope scope = ConsolidateScope::kWarp;
  std::uint32_t threshold = 0;  ///< launches of fewer threads are done by the launching thread
};
/// "warp", "block", "grid"; "warp:64". An error completes "--consolidate is ".
Result<ConsolidateOptions> ParseConsolidateOptions(std::string_view text);

class ConsolidatePass final : public Pass {
 public:
  ConsolidatePass() = default;
  explicit ConsolidatePass(ConsolidateOptions options) : options_(options) {}
  std::string_view name() const override;
  std::string_view summary() const override;
  Result<PassReport> Run(ptx::Module& module) const override;

 private:
  ConsolidateOptions options_;
};

}  // namespace gridloom::passes
