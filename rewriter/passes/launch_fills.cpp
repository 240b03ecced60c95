#include "rewriter/passes/launch_fills.h"

#include <algorithm>
#include <optional>
#include <string>

namespace gridloom::passes {
namespace {

constexpr std::string_view kMark = "gridloom_launch_fills_parameters";

}  // namespace

void MarkLaunchFills(ptx::Module& module) {
  if (LaunchFills(module)) return;
  ptx::Variable& mark = module.variables.emplace_back();
  mark.name = kMark;
  mark.space = ptx::StateSpace::kGlobal;
  mark.type = ptx::ScalarType::kB8;
  module.items.insert(module.items.begin(), &mark);
}

bool LaunchFills(const ptx::Module& module) { return module.FindVariable(kMark) != nullptr; }

std::vector<HiddenParam> ParamsLaunchFills(const ptx::Module& module, const ptx::Function& kernel) {
  std::vector<HiddenParam> hidden;
  if (!LaunchFills(module)) return hidden;
  const ptx::ParamLayout layout = ptx::LayoutParams(kernel);
  for (std::size_t i = kernel.params.size(); i-- > 0;) {
    const auto role = HiddenRoleOf(kernel, kernel.params[i]);
    // A pass appends in the order of roles; what breaks it is a kernel's own parameter with such a name.
    if (!role || (!hidden.empty() && *role >= hidden.back().role)) break;
    hidden.push_back({*role, layout.offsets[i]});
  }
  std::ranges::reverse(hidden);
  return hidden;
}

}  // namespace gridloom::passes
