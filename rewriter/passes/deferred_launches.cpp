#include "rewriter/passes/deferred_launches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rewriter/kernels/launch_records.h"
#include "rewriter/passes/cta_end.h"
#include "rewriter/passes/lower_exits.h"
#include "rewriter/passes/module_text.h"

namespace gridloom::passes {
namespace {

using analysis::CallGraph;
using analysis::NodeId;
using ptx::Function;

constexpr std::string_view kBlockLists = ".shared .align 8 .b64 gridloom_list_<kernel>;\n";
constexpr std::string_view kGridLists = ".global .align 8 .b64 gridloom_grid_list_<kernel>[<places>];\n";

// ---------------------------------------------------------------------------------------------------------------------
// What kernels do at both ends
// ---------------------------------------------------------------------------------------------------------------------

using Kernels = std::vector<MergedKernel>;

std::string BlockEntry(const Kernels& kernels) {
  std::string text;
  for (const MergedKernel& one : kernels)
    text += "st.shared.b64 [gridloom_list_" + std::string(one.kernel->name) + "], 0;\n";
  return text;
}

std::string LaunchList(const MergedKernel& one, const std::string& load) {
  return "{\n.reg .b64 %gl_list, %gl_merged;\n.param .b64 gl_param;\n.param .b64 gl_kernel;\n" + load +
         "mov.u64 %gl_merged, " + std::string(one.merged->name) +
         ";\nst.param.b64 [gl_param], %gl_list;\nst.param.b64 [gl_kernel], %gl_merged;\n"
         "call gridloom_launch_list, (gl_param, gl_kernel);\n}\n";
}

std::string BlockEnd(const Kernels& kernels) {
  std::string text;
  for (const MergedKernel& one : kernels)
    text += LaunchList(one, "ld.shared.b64 %gl_list, [gridloom_list_" + std::string(one.kernel->name) + "];\n");
  return text;
}

constexpr std::string_view kGridEntry =
    "{\n.param .b32 gl_place;\ncall (gl_place), gridloom_enter_grid;\nld.param.b32 %gl_t0, [gl_place];\n}\n"
    "st.shared.b32 [gridloom_grid_place], %gl_t0;\n";

std::string GridEnd(const Kernels& kernels) {
  std::string text =
      "ld.shared.b32 %gl_t0, [gridloom_grid_place];\n"
      "{\n.param .b32 gl_place;\nst.param.b32 [gl_place], %gl_t0;\n.param .b32 gl_last;\ncall (gl_last), "
      "gridloom_leave_grid, (gl_place);\n"
      "ld.param.b32 %gl_t1, [gl_last];\n}\n"
      "setp.eq.u32 %gl_others, %gl_t1, 0;\n@%gl_others ret;\n";
  for (const MergedKernel& one : kernels) {
    text += LaunchList(one, "mov.u64 %gl_merged, gridloom_grid_list_" + std::string(one.kernel->name) +
                                ";\nmad.wide.u32 %gl_merged, %gl_t0, 8, %gl_merged;\n"
                                "atom.global.exch.b64 %gl_list, [%gl_merged], 0;\n");
  }
  return text +
         "{\n.param .b32 gl_place;\nst.param.b32 [gl_place], %gl_t0;\ncall gridloom_forget_grid, (gl_place);\n}\n";
}

/// The functions, of those in which threads end, that a kernel may call.
std::set<std::string> ExitsOf(const CallGraph& calls, NodeId kernel, const std::set<std::string>& with_exits) {
  std::set<std::string> exits;
  for (const NodeId node : calls.Reachable(kernel)) {
    const std::string name(calls.function(node).name);
    if (with_exits.contains(name)) exits.insert(name);
  }
  return exits;
}

/// A kernel that launches at its end.
struct Ending {
  Function* kernel = nullptr;
  EndPlan plan{};
  Kernels launched{};
};

}  // namespace

std::string WhyNotDeferred(const CallGraph& calls, const std::set<std::string>& with_exits, const Function& kernel) {
  const std::string name = "kernel " + std::string(kernel.name) + " ";
  const std::string why = CannotLowerExits(calls, ExitsOf(calls, calls.NodeOf(kernel), with_exits));
  if (!why.empty()) return "it cannot be told when blocks of " + name + "end: " + why;
  return HasRoomForCount(kernel) ? "" : "the shared memory of " + name + "leaves no room for lists of launches";
}

std::string ListsText(const Function& kernel, ConsolidateScope scope) {
  if (scope == ConsolidateScope::kWarp) return "";
  std::string text(scope == ConsolidateScope::kBlock ? kBlockLists : kGridLists);
  text = With(With(std::move(text), "<kernel>", kernel.name), "<places>", std::to_string(kGridPlaces));
  return text;
}

void LaunchAtEnds(ptx::Module& module, const std::vector<MergedKernel>& kernels, ConsolidateScope scope) {
  std::vector<Ending> endings;
  std::set<std::string> lowered;
  {
    const CallGraph calls(module);
    const std::set<std::string> with_exits = FunctionsWithExits(calls);
    for (Function& function : module.functions) {
      if (!function.is_entry || function.body == nullptr) continue;
      const NodeId node = calls.NodeOf(function);
      const std::vector<NodeId> reachable = calls.Reachable(node);
      Ending ending{.kernel = &function};
      for (const MergedKernel& one : kernels) {
        const NodeId launch = calls.NodeOf(*module.FindFunction(LaunchFunctionsOf(*one.kernel).launch));
        if (std::ranges::find(reachable, launch) != reachable.end()) ending.launched.push_back(one);
      }
      if (ending.launched.empty()) continue;
      const std::set<std::string> exits = ExitsOf(calls, node, with_exits);
      lowered.insert(exits.begin(), exits.end());
      ending.plan = PlanEnd(calls, node, !exits.empty());
      endings.push_back(std::move(ending));
    }
  }
  LowerExits(module, lowered);
  for (const Ending& ending : endings) {
    const bool grid = scope == ConsolidateScope::kGrid;
    RunAtCtaEnd(module, *ending.kernel, ending.plan, grid ? std::string(kGridEntry) : BlockEntry(ending.launched),
                grid ? GridEnd(ending.launched) : BlockEnd(ending.launched));
  }
}

}  // namespace gridloom::passes
