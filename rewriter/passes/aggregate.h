// `aggregate`: launches of kernels that nothing waits for become groups of thread blocks, which may join a kernel that
// runs (J. Wang, N. Rubin, A. Sidelnik and S. Yalamanchili, Dynamic Thread Block Launch, ISCA 2015, section 4.1 and
// Figure 3).
//
//   before:  call (r), cudaStreamCreateWithFlags, (&s, 1);        after:  (nothing)
//            call (r), cudaLaunchDeviceV2, (buffer, s);                   call (r), cudaLaunchAggGroupV2, (buffer);
//            call (r), cudaStreamDestroy, (s);                            (nothing; both calls succeed)
//
// Aggregated are launches into cudaStreamFireAndForget, and into a stream that the function makes with
// cudaStreamNonBlocking and that no other launch may go into: what such a stream says is that the launch waits for
// nothing. Where a launch may also go into another stream, which is known when the code runs,
//
//   before:  call (r), cudaLaunchDeviceV2, (buffer, s);           after:  call (r),
//   gridloom_group_or_cudaLaunchDeviceV2, (buffer, s);
//
// with a function that looks at the handle: the stream that is no longer made has one that is no stream's. The
// functions that are called instead are added to the module (aggregate_functions.h).
//
// Refused, launch by launch: all others. Those into a default stream are in order; tail launches wait for their parent;
// of a stream with several launches, with events, out of memory, a parameter or a computation nobody knows what waits
// for what; a kernel that waits for what it launches (cudaDeviceSynchronize) could not wait for groups.
#pragma once

#include <functional>
#include <string>

#include "rewriter/passes/pass.h"

namespace gridloom::passes {

/// Why a launch is to stay as it is, as a clause; empty when it may become a group.
using WhyNotLaunch = std::function<std::string(const ptx::Function& function, const ptx::Instruction& launch)>;

/// The pass, but for launches that are to stay as they are. Passes that do more with groups begin with it.
PassReport AggregateLaunches(ptx::Module& module, const WhyNotLaunch& why_not);

class AggregatePass final : public Pass {
 public:
  std::string_view name() const override { return "aggregate"; }
  std::string_view summary() const override {
    return "launches by kernels that nothing waits for become groups of thread blocks";
  }
  Result<PassReport> Run(ptx::Module& module) const override;
};

}  // namespace gridloom::passes
