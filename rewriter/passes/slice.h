// `slice`: kernels that can be run in parts (Kernelet, section 4.1).
//
//   before:  .entry k(.param .u64 k_param_0)
//            { …  mov.u32 %r1, %ctaid.x;  … }
//   after:   .entry k(.param .u64 k_param_0, .param .u32 k_gl_first_x, .param .u32 k_gl_grid_x, …)
//            { …  %r1 = (%ctaid.x + [k_gl_first_x]) mod [k_gl_grid_x]  … }
//
// A slice is any range of consecutive CTAs of the original grid, launched as a grid of as many CTAs in x; slice_range.h
// says which values go with it. Every read of %ctaid, %nctaid and %gridid sees the original grid: in the kernel, and in
// functions it calls, which get the values as further parameters (functions whose address is taken all get the same
// ones, so that calls through pointers and virtual calls pass them on). Reads are replaced where they stand, by up to
// 12 instructions and two registers more than the result, instead of being kept in registers from the kernel's entry
// on: where registers are short the value is not alive longer than it was. The assembler joins equal computations where
// that costs nothing.
//
// A module is taken to be complete: a function of another module that calls into this one would not know of the
// parameters.
//
// Refused are kernels whose CTAs have to run at the same time or can tell when they do not: SliceRefusal.
#pragma once

#include <optional>
#include <string>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/cta_waits.h"
#include "rewriter/passes/pass.h"

namespace gridloom::passes {

class SlicePass final : public Pass {
 public:
  std::string_view name() const override { return "slice"; }
  std::string_view summary() const override {
    return "kernels run in parts: CTA indices and grid sizes from hidden parameters";
  }
  Result<PassReport> Run(ptx::Module& module) const override;
};

/// Functions of the system that know nothing of the grid they are called in. What else is not in a module may read
/// %ctaid.
bool KnowsNoGrid(std::string_view name);

struct SliceRefusal {
  std::string reason;
  SourceLoc loc;
};

/// Why the CTAs of a kernel have to run at the same time, or can tell when they do not; nothing when they are
/// independent of each other.
std::optional<SliceRefusal> WhyTogether(const analysis::CallGraph& calls, const CtaWaits& waits,
                                        const ptx::Function& kernel);

/// Why a kernel cannot be sliced; nothing when it can. Launches of a kernel that can must still run whole when they are
/// cooperative or of clusters.
std::optional<SliceRefusal> WhyNotSliceable(const ptx::Module& module, const analysis::CallGraph& calls,
                                            const CtaWaits& waits, const ptx::Function& kernel);

}  // namespace gridloom::passes
