#include "rewriter/passes/profile.h"

#include <algorithm>
#include <utility>

namespace gridloom::passes {
namespace {

constexpr std::uint32_t kBlockBytes = 12;  // x, y and z

/// The head of the profiler: name and parameters of the kernel, and an empty body.
ptx::Function& AddProfiler(ptx::Module& module, const ptx::Function& kernel, const std::string& name) {
  ptx::Function& profiler = module.functions.emplace_back();
  profiler.loc = kernel.loc;
  profiler.name = module.strings.Intern(name);
  profiler.is_entry = true;
  profiler.linkage = kernel.linkage;
  profiler.params = kernel.params;
  profiler.body = std::make_unique<ptx::Block>();
  profiler.body->loc = kernel.loc;
  profiler.body->end_loc = kernel.loc;
  module.items.emplace_back(&profiler);
  return profiler;
}

}  // namespace

std::string_view ProfilePass::summary() const {
  return form_ == RangeForm::kInterval ? "add profiler kernels that report the memory range each CTA will touch"
                                       : "the same with strided sets in place of one range per array";
}

Result<PassReport> ProfilePass::Run(ptx::Module& module) const {
  PassReport report = StartReport(module);
  struct Profile {
    const ptx::Function* kernel;
    KernelReport* report;
    std::string text;
  };
  std::vector<Profile> profiles;
  {
    const analysis::CallGraph calls(module);
    for (KernelReport& kernel_report : report.kernels) {
      const ptx::Function* kernel = std::as_const(module).FindFunction(kernel_report.kernel);
      if (kernel == nullptr || kernel->name.ends_with(kProfileSuffix) ||
          module.FindFunction(kernel_report.kernel + std::string(kProfileSuffix)) != nullptr)
        continue;
      const analysis::AddressAnalysis analysis(module, calls, *kernel);
      if (!analysis.regular()) {
        kernel_report.status = KernelStatus::kRefused;
        kernel_report.reason = "it is irregular: " + analysis.reason();
        kernel_report.loc = analysis.reason_loc();
        continue;
      }
      const std::uint32_t bytes = (ptx::LayoutParams(*kernel).bytes + 3) / 4 * 4;
      if (bytes + kBlockBytes > MaxParamBytes(module)) {
        kernel_report.status = KernelStatus::kRefused;
        kernel_report.reason =
            "its " + std::to_string(bytes) + " bytes of parameters leave no room for the size of the block";
        kernel_report.loc = kernel->loc;
        continue;
      }
      // The names of the parameters are those that AppendHidden is going to give.
      const std::string prefix = "[" + kernel_report.kernel + std::string(kProfileSuffix) + "_gl_block_";
      profiles.push_back(
          {kernel, &kernel_report,
           RangeCalls(analysis, RangeCallKind::kSet, form_, {prefix + "x]", prefix + "y]", prefix + "z]"})});
    }
  }
  if (profiles.empty()) return report;
  DeclareRangeFunctions(module);
  for (const Profile& profile : profiles) {
    const std::string name = profile.report->kernel + std::string(kProfileSuffix);
    ptx::Function& profiler = AddProfiler(module, *profile.kernel, name);
    KernelReport hidden;
    hidden.kernel = name;
    for (const HiddenRole role : {HiddenRole::kBlockX, HiddenRole::kBlockY, HiddenRole::kBlockZ}) {
      GL_TRY(param, AppendHidden(module, profiler, role, hidden));
      param->name = module.strings.Intern(name + "_gl_" + std::string(Info(role).text));
    }
    FunctionEditor editor(module, profiler);
    profiler.body->statements = editor.Text(profile.text + "ret;", profile.kernel->loc);
    report.added.push_back({.name = name, .of = profile.report->kernel, .purpose = "profile", .hidden = hidden.hidden});
    profile.report->status = KernelStatus::kUnchanged;
  }
  return report;
}

}  // namespace gridloom::passes
