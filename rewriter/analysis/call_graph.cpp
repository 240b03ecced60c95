#include "rewriter/analysis/call_graph.h"

#include <algorithm>
#include <set>

#include "rewriter/analysis/cfg.h"
#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::analysis {

using ptx::Instruction;
using ptx::Operand;

namespace {

template <typename Visit>
void VisitInstructions(const ptx::Function& function, const Visit& visit) {
  if (!function.body) return;
  VisitStatements(*function.body, [&](ptx::Statement& statement) {
    if (const auto* instruction = std::get_if<Instruction>(&statement)) visit(*instruction);
  });
}

}  // namespace

CallGraph::CallGraph(const ptx::Module& module) {
  CollectFunctions(module);
  CollectAddresses(module);
  for (NodeId node = 0; node < size(); ++node) CollectCalls(node);
  graph_ = Graph(size());
  for (NodeId node = 0; node < size(); ++node) {
    std::set<NodeId> callees;
    for (const CallSite& call : calls_[node]) callees.insert(call.callees.begin(), call.callees.end());
    for (const NodeId callee : callees) graph_.AddEdge(node, callee);
  }
  components_ = Components(graph_);
  std::vector<std::uint32_t> members(components_.count, 0);
  for (const std::uint32_t component : components_.of) ++members[component];
  recursive_.resize(size());
  for (NodeId node = 0; node < size(); ++node) {
    const auto& callees = graph_.successors[node];
    recursive_[node] =
        members[components_.of[node]] > 1 || std::find(callees.begin(), callees.end(), node) != callees.end();
  }
}

void CallGraph::CollectFunctions(const ptx::Module& module) {
  ptx::ReadAllBodies(module);
  for (const ptx::Function& function : module.functions) {
    const auto [it, added] = by_name_.try_emplace(function.name, size());
    if (added) {
      functions_.push_back(&function);
    } else if (function.body) {
      functions_[it->second] = &function;
    }
  }
  // .alias f, g: calls of f are calls of g (ISA 11.3.1).
  for (const ptx::ModuleItem& item : module.items) {
    const auto* alias = std::get_if<ptx::AliasDirective>(&item);
    if (alias == nullptr) continue;
    if (const auto it = by_name_.find(alias->aliasee); it != by_name_.end()) by_name_[alias->alias] = it->second;
  }
  calls_.resize(size());
  address_taken_.assign(size(), false);
}

NodeId CallGraph::NodeOf(const ptx::Function& function) const {
  const auto it = by_name_.find(function.name);
  return it == by_name_.end() ? kNoNode : it->second;
}

void CallGraph::CollectAddresses(const ptx::Module& module) {
  const auto take = [&](const Operand& operand) {
    if (operand.kind != ptx::OperandKind::kSymbol || operand.function == nullptr) return;
    if (const NodeId node = NodeOf(*operand.function); node != kNoNode) address_taken_[node] = true;
  };
  for (const ptx::Variable& variable : module.variables) {
    for (const ptx::Initializer& element : variable.initializer) {
      if (const auto* operand = std::get_if<Operand>(&element.value)) VisitOperand(*operand, take);
    }
  }
  for (const ptx::Function* function : functions_) {
    VisitInstructions(*function, [&](const Instruction& instruction) {
      const Operand* target = CallTargetOf(instruction);
      for (const Operand& operand : instruction.operands) {
        if (&operand != target) VisitOperand(operand, take);
      }
    });
  }
}

void CallGraph::CollectCalls(NodeId node) {
  VisitInstructions(*functions_[node], [&](const Instruction& instruction) {
    const Operand* target = CallTargetOf(instruction);
    if (target == nullptr) return;
    CallSite call{.instruction = &instruction};
    const auto add = [&](const ptx::Function* function) {
      const NodeId callee = function == nullptr ? kNoNode : NodeOf(*function);
      if (callee == kNoNode) {
        call.unknown_target = true;
      } else {
        call.callees.push_back(callee);
      }
    };
    if (target->kind == ptx::OperandKind::kSymbol) {
      add(target->function);
    } else {
      call.indirect = true;
      const ptx::LabelDirective* list = nullptr;
      for (const Operand& operand : instruction.operands) {
        if (operand.directive != nullptr && operand.directive->kind == ptx::LabelDirective::Kind::kCallTargets)
          list = operand.directive;
      }
      if (list != nullptr) {
        for (const Operand& operand : list->targets) add(operand.function);
      } else {
        call.unknown_target = true;  // the address may come from another module or from the host
        for (NodeId other = 0; other < size(); ++other) {
          if (address_taken_[other]) call.callees.push_back(other);
        }
      }
    }
    calls_[node].push_back(std::move(call));
  });
}

std::vector<NodeId> CallGraph::BottomUp() const {
  std::vector<NodeId> order(size());
  for (NodeId node = 0; node < size(); ++node) order[node] = node;
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return components_.of[a] < components_.of[b]; });
  return order;
}

std::vector<bool> CallGraph::Reaching(const std::vector<bool>& of) const {
  std::vector<bool> reaching = of;
  std::vector<NodeId> pending;
  for (NodeId node = 0; node < size(); ++node) {
    if (of[node]) pending.push_back(node);
  }
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    for (const NodeId caller : graph_.predecessors[node]) {
      if (reaching[caller]) continue;
      reaching[caller] = true;
      pending.push_back(caller);
    }
  }
  return reaching;
}

std::vector<NodeId> CallGraph::Reachable(NodeId node) const { return DepthFirst(graph_, node).preorder; }

}  // namespace gridloom::analysis
