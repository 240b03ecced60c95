#include "sim/exec/ranges/undoable.h"

#include <algorithm>

#include "rewriter/analysis/cfg.h"

namespace gridloom::exec {
namespace {

/// A function of the system that does something besides memory; empty: nothing to mind.
std::string WhyNotCall(std::string_view name) {
  if (name.starts_with("gridloom_")) return {};
  const std::string called = " (" + std::string(name) + ")";
  if (name == "vprintf") return "it prints" + called;
  if (name == "malloc" || name == "free") return "it takes memory of the device's heap" + called;
  if (name == "__assertfail") return "it may fail an assertion" + called;
  if (name.starts_with("cnp") || name.starts_with("cuda") || name.starts_with("__cuda_syscall_"))
    return "it calls the device runtime" + called;
  return "it calls what is not in its module" + called;
}

std::string WhyNotCode(const ptx::Function& function) {
  const analysis::Cfg cfg(function);
  for (const analysis::CfgInstruction& at : cfg.instructions()) {
    if (at.instruction->info().cls == ptx::OpClass::kTexture)
      return "it works on textures or surfaces (" + at.instruction->FullName() + ")";
  }
  return {};
}

}  // namespace

std::string WhyNotUndoable(const analysis::CallGraph& calls, const ptx::Function& kernel) {
  const analysis::NodeId node = calls.NodeOf(kernel);
  if (node == analysis::kNoNode) return "it is not in its module";
  for (const analysis::NodeId reached : calls.Reachable(node)) {
    const ptx::Function& function = calls.function(reached);
    std::string why = function.body == nullptr ? WhyNotCall(function.name) : WhyNotCode(function);
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace gridloom::exec
