#include "rewriter/passes/part.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/analysis/cfg.h"
#include "rewriter/ptx/clone.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::CallGraph;
using analysis::NodeId;
using ptx::Function;

constexpr std::string_view kCopySuffix = "__of_kernels";

/// Why a kernel's functions cannot be copied; empty when they can.
std::string CannotCopy(const CallGraph& calls, NodeId kernel) {
  for (const NodeId node : calls.Reachable(kernel)) {
    const std::string name(calls.function(node).name);
    if (std::ranges::any_of(calls.calls(node), &analysis::CallSite::indirect))
      return "it calls through a pointer" + (node == kernel ? "" : " in " + name) +
             ", which may lead to another part of the program";
    if (calls.IsRecursive(node)) return "it calls " + name + ", which calls itself";
  }
  return "";
}

/// The part while passes run: kernels that may be rewritten, and copies of what they call.
class Part {
 public:
  explicit Part(ptx::Module& module) : module_(module) {
    const CallGraph calls(module_);
    std::set<NodeId> called;
    for (Function& function : module_.functions) {
      if (!function.is_entry || function.body == nullptr) continue;
      const NodeId node = calls.NodeOf(function);
      if (std::string why = CannotCopy(calls, node); !why.empty()) {
        refused_.emplace_back(std::string(function.name), std::move(why));
        continue;
      }
      seen_.insert(&function);
      for (const NodeId callee : calls.Reachable(node)) {
        if (callee != node && calls.function(callee).body != nullptr) called.insert(callee);
      }
    }
    for (const NodeId node : called) MakeCopy(calls.function(node));
    for (Function* function : seen_) LeadCallsToCopies(*function);
    Hide();
  }

  const std::vector<std::pair<std::string, std::string>>& refused() const { return refused_; }

  /// The functions that passes were not to see have their bodies again.
  void Restore() {
    for (auto& [function, body] : hidden_) function->body = std::move(body);
    hidden_.clear();
  }

 private:
  std::string NewName(std::string_view of) const {
    std::string name = std::string(of) + std::string(kCopySuffix);
    while (module_.FindFunction(name) != nullptr || module_.FindVariable(name) != nullptr) name += "_";
    return name;
  }

  void MakeCopy(const Function& function) {
    Function& copy = ptx::CloneFunction(module_, function, NewName(function.name));
    copy.linkage = ptx::Linkage::kInternal;
    copies_.emplace(function.name, &copy);
    seen_.insert(&copy);
  }

  void LeadCallsToCopies(Function& function) {
    ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
      auto* const call = std::get_if<ptx::Instruction>(&statement);
      if (call == nullptr || !call->Has(ptx::Trait::kCalls)) return;
      auto* const target = const_cast<ptx::Operand*>(analysis::CallTargetOf(*call));
      if (target == nullptr || target->function == nullptr) return;
      const auto copy = copies_.find(target->function->name);
      if (copy == copies_.end()) return;
      target->function = copy->second;
      target->text = copy->second->name;
    });
  }

  void Hide() {
    for (Function& function : module_.functions) {
      if (function.body != nullptr && !seen_.contains(&function))
        hidden_.emplace_back(&function, std::move(function.body));
    }
  }

  ptx::Module& module_;
  std::set<Function*> seen_;
  std::map<std::string_view, Function*> copies_;  ///< by the name of the original
  std::vector<std::pair<Function*, std::unique_ptr<ptx::Block>>> hidden_;
  std::vector<std::pair<std::string, std::string>> refused_;
};

}  // namespace

Result<Rewritten> RunOnPart(const Pipeline& pipeline, const ptx::Module& module) {
  Rewritten rewritten;
  rewritten.module = ptx::CloneModule(module);
  Part part(*rewritten.module);
  GL_TRY_STATUS(RunInPlace(pipeline, rewritten));
  part.Restore();
  for (const auto& [kernel, why] : part.refused()) {
    rewritten.kernels.push_back(
        {.kernel = kernel, .status = KernelStatus::kRefused, .refused_by = "linking", .reason = why, .loc = {}});
  }
  return rewritten;
}

}  // namespace gridloom::passes
