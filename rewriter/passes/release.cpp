#include "rewriter/passes/release.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rewriter/passes/cta_end.h"
#include "rewriter/passes/lower_exits.h"

namespace gridloom::passes {

using analysis::CallGraph;
using analysis::NodeId;

std::string_view ReleasePass::summary() const {
  return form_ == RangeForm::kInterval ? "have the last thread of each CTA release the memory range the CTA has touched"
                                       : "the same with strided sets in place of one range per array";
}

Result<PassReport> ReleasePass::Run(ptx::Module& module) const {
  PassReport report = StartReport(module);
  struct Release {
    ptx::Function* kernel;
    EndPlan plan;
    std::string calls;
  };
  std::vector<Release> releases;
  std::set<std::string> lowered;
  {
    const CallGraph calls(module);
    const std::set<std::string> with_exits = FunctionsWithExits(calls);
    for (KernelReport& kernel_report : report.kernels) {
      ptx::Function* kernel = module.FindFunction(kernel_report.kernel);
      if (kernel->name.ends_with(kProfileSuffix)) continue;
      const auto refuse = [&](std::string reason, SourceLoc loc) {
        kernel_report.status = KernelStatus::kRefused;
        kernel_report.reason = std::move(reason);
        kernel_report.loc = loc;
      };
      const analysis::AddressAnalysis analysis(module, calls, *kernel);
      if (!analysis.regular()) {
        refuse("it is irregular: " + analysis.reason(), analysis.reason_loc());
        continue;
      }
      if (analysis.arguments().empty()) continue;
      const NodeId node = calls.NodeOf(*kernel);
      std::set<std::string> exits;
      for (const NodeId callee : calls.Reachable(node)) {
        const std::string name(calls.function(callee).name);
        if (with_exits.contains(name)) exits.insert(name);
      }
      if (const std::string why = CannotLowerExits(calls, exits); !why.empty()) {
        refuse(why, kernel->loc);
        continue;
      }
      const EndPlan plan = PlanEnd(calls, node, !exits.empty());
      if (!plan.barrier && !HasRoomForCount(*kernel)) {
        refuse("its shared memory leaves no room for a counter of its threads", kernel->loc);
        continue;
      }
      lowered.insert(exits.begin(), exits.end());
      releases.push_back(
          {kernel, plan, RangeCalls(analysis, RangeCallKind::kRelease, form_, {"%ntid.x", "%ntid.y", "%ntid.z"})});
      kernel_report.status = KernelStatus::kChanged;
    }
  }
  if (releases.empty()) return report;
  DeclareRangeFunctions(module);
  LowerExits(module, lowered);
  for (const Release& release : releases) RunAtCtaEnd(module, *release.kernel, release.plan, "", release.calls);
  return report;
}

}  // namespace gridloom::passes
