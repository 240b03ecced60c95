// profile: adds to each regular kernel a profiler kernel (CRCS paper, 4.2.2).
//
//   before:  .entry k(.param .u64 A, .param .u32 n) { … st.global.f32 [A + (ctaid.x*ntid.x + tid.x)*4], … }
//   after:   … and .entry k__profile(.param .u64 A, .param .u32 n, .param .u32 gl_block_x, gl_block_y, gl_block_z)
//            { low, high = … of ctaid, block size and parameters;  gridloom_set_range(A, low, high, write); }
//
// The profiler is launched with the grid of the kernel, one thread per CTA, the kernel's parameters and the size of its
// blocks, before the kernel. The kernel itself is not changed. A kernel is refused when it is irregular.
#pragma once

#include "rewriter/passes/pass.h"
#include "rewriter/passes/range_calls.h"

namespace gridloom::passes {

class ProfilePass final : public Pass {
 public:
  explicit ProfilePass(RangeForm form) : form_(form) {}
  std::string_view name() const override { return form_ == RangeForm::kInterval ? "profile" : "profile-strided"; }
  std::string_view summary() const override;
  bool changes_kernels() const override { return false; }
  Result<PassReport> Run(ptx::Module& module) const override;

 private:
  const RangeForm form_;
};

}  // namespace gridloom::passes
