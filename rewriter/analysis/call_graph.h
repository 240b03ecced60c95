// Who calls whom in a module.
#pragma once

#include <unordered_map>
#include <vector>

#include "rewriter/analysis/graph.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::analysis {

/// A call and what is known of its target.
struct CallSite {
  const ptx::Instruction* instruction = nullptr;
  std::vector<NodeId> callees = {};  ///< one for a direct call; all it may reach for an indirect one
  bool indirect = false;
  bool unknown_target = false;  ///< it may also reach functions that are not in the module
};

/// Nodes are functions by name: a prototype and its definition are one. The callees of an indirect call are those of
/// its .calltargets list, or else all functions whose address is taken anywhere in the module.
class CallGraph {
 public:
  explicit CallGraph(const ptx::Module& module);

  std::uint32_t size() const { return static_cast<std::uint32_t>(functions_.size()); }
  /// The definition, or a prototype when there is none.
  const ptx::Function& function(NodeId node) const { return *functions_[node]; }
  /// kNoNode for a function that is not of this module.
  NodeId NodeOf(const ptx::Function& function) const;
  const std::vector<CallSite>& calls(NodeId node) const { return calls_[node]; }
  const Graph& graph() const { return graph_; }
  /// Whether the function's address is taken: by mov, in an initialiser, or as an argument.
  bool IsAddressTaken(NodeId node) const { return address_taken_[node]; }
  /// Whether the function can come to call itself.
  bool IsRecursive(NodeId node) const { return recursive_[node]; }
  /// Every function after those it calls; within a recursive group in any order.
  std::vector<NodeId> BottomUp() const;
  /// A function and all that it may come to call, each once, the function first.
  std::vector<NodeId> Reachable(NodeId node) const;
  /// By node: `of` it holds, or of anything that it may come to call.
  std::vector<bool> Reaching(const std::vector<bool>& of) const;

 private:
  void CollectFunctions(const ptx::Module& module);
  void CollectAddresses(const ptx::Module& module);
  void CollectCalls(NodeId node);

  std::vector<const ptx::Function*> functions_;
  std::unordered_map<std::string_view, NodeId> by_name_;
  std::vector<std::vector<CallSite>> calls_;
  std::vector<bool> address_taken_, recursive_;
  Graph graph_;
  Components components_{Graph()};
};

}  // namespace gridloom::analysis
