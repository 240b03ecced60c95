// Graphs of operations: built node by node or captured from streams, instantiated, launched.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/base/task.h"
#include "interpose/objects/graph_memory.h"
#include "interpose/objects/graph_plan.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

class Graph;
class GraphExec;
struct ProgramHandles;

/// A reference-counted object of the program, freed by its own destructor when nobody holds it any more.
class UserObject {
 public:
  UserObject(void* object, cuda::CUhostFn destroy, unsigned references)
      : object_(object), destroy_(destroy), count_(references) {}
  void Retain(unsigned count) { count_.fetch_add(count); }
  /// Runs the destructor when the last reference goes. False when more are given back than there are.
  bool Release(unsigned count, bool* gone);

 private:
  void* const object_;
  const cuda::CUhostFn destroy_;
  std::atomic<std::int64_t> count_;
};

/// References on user objects that a graph holds.
using UserObjects = std::map<std::shared_ptr<UserObject>, unsigned>;
/// Gives them back; the handles of objects that go are none any more.
void ReleaseAll(ProgramHandles& handles, const UserObjects& objects);

/// A number that no graph and no executable graph had before.
std::uint32_t NextGraphId();

class GraphNode {
 public:
  GraphNode(Graph& graph, Operation operation) : graph(graph), operation(std::move(operation)) {}
  ~GraphNode();
  cuda::CUgraphNode handle() { return reinterpret_cast<cuda::CUgraphNode>(this); }
  cuda::CUgraphNodeType type() const;

  Graph& graph;
  Operation operation;
  std::vector<GraphNode*> dependencies, dependents;
  GraphNode* cloned_from = nullptr;   ///< may be gone; compared, never followed
  std::vector<void*> param_pointers;  ///< of a kernel node, for cuGraphKernelNodeGetParams
  std::uint32_t index = 0;            ///< place in the graph's list
  std::uint32_t local_id = 0;         ///< of all nodes that the graph ever had; does not change
};

/// Guarded by its mutex, which callers take (Lock) around several steps.
class Graph : public std::enable_shared_from_this<Graph> {
 public:
  /// `handles`: where those of its nodes are.
  explicit Graph(ProgramHandles& handles) : handles_(handles) {}
  ~Graph();
  cuda::CUgraph handle() { return reinterpret_cast<cuda::CUgraph>(this); }
  ProgramHandles& handles() const { return handles_; }
  std::uint32_t id() const { return id_; }
  std::unique_lock<std::recursive_mutex> Lock() const { return std::unique_lock(mutex_); }

  /// INVALID_VALUE when a dependency is not of this graph or named twice, or when the node frees what others free
  /// (graph_memory.h).
  cuda::CUresult AddNode(Operation operation, const std::vector<GraphNode*>& dependencies, GraphNode** node);
  void RemoveNode(GraphNode& node);
  cuda::CUresult AddEdge(GraphNode& from, GraphNode& to);
  cuda::CUresult RemoveEdge(GraphNode& from, GraphNode& to);
  const std::vector<std::shared_ptr<GraphNode>>& nodes() const { return nodes_; }
  /// Every node after all it depends on; empty result and false when there is a cycle.
  bool Order(std::vector<GraphNode*>* order) const;
  std::shared_ptr<Graph> Clone() const;

  /// Conditions made for this graph, whether a node uses them yet or not. Its nodes, and those of graphs inside of it,
  /// may use them.
  std::vector<std::shared_ptr<Conditional>> conditions;
  UserObjects user_objects;
  /// Whether a node of this graph may use the condition.
  bool MayUse(const Conditional& condition) const;
  /// A node of it allocates memory or frees it: then neither nodes nor edges can be taken away.
  bool HasMemoryNodes() const { return memory_.any(); }
  const GraphMemoryUse& memory() const { return memory_; }
  /// A node of another graph has it.
  bool inside() const { return !around_.expired(); }
  /// The executable graph made of one with memory nodes, of which there is one at a time.
  mutable std::weak_ptr<GraphExec> instance;

 private:
  /// What a node with this operation does with graph memory. The outermost graph, which is the one that is launched,
  /// knows of all nodes.
  cuda::CUresult NoteMemory(const Operation& operation);

  ProgramHandles& handles_;
  mutable std::recursive_mutex mutex_;
  const std::uint32_t id_ = NextGraphId();
  std::uint32_t nodes_made_ = 0;
  std::weak_ptr<Graph> around_;  ///< the graph a node of which has this one as its child or body
  std::vector<std::shared_ptr<GraphNode>> nodes_;
  GraphMemoryUse memory_;
};

/// The body graphs of one conditional node, with handles the program fills them by. They go with the node.
struct ConditionalBodies {
  ConditionalBodies(ProgramHandles& all, unsigned count);
  explicit ConditionalBodies(const ConditionalBodies& other);  ///< clones of its graphs
  ~ConditionalBodies();
  ConditionalBodies& operator=(const ConditionalBodies&) = delete;

  ProgramHandles& all;  ///< where the handles are, too
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<cuda::CUgraph> handles;
};

/// A graph made ready to launch. Guarded by its mutex, which callers of Find and Edit hold (Lock).
class GraphExec {
 public:
  GraphExec(std::shared_ptr<const GraphPlan> plan, GraphMemoryUse memory, std::uint64_t flags)
      : flags_(flags), memory_(std::move(memory)), plan_(std::move(plan)) {}
  /// INVALID_VALUE for a cycle; NOT_SUPPORTED for a graph with memory nodes that there is an executable graph of.
  static cuda::CUresult Instantiate(const Graph& graph, std::uint64_t flags, std::shared_ptr<GraphExec>* exec);
  cuda::CUgraphExec handle() { return reinterpret_cast<cuda::CUgraphExec>(this); }
  std::uint64_t flags() const { return flags_; }
  std::uint32_t id() const { return id_; }

  std::unique_lock<std::mutex> Lock() const { return std::unique_lock(mutex_); }
  /// The node made from `origin`; null when there is none.
  const GraphPlan::Node* Find(const GraphNode* origin) const;
  /// The node that Find answered, for a change. Launches from before keep what they were launched with.
  GraphPlan::Node& Edit(const GraphPlan::Node& node);
  /// Takes over the operations of a graph of the same shape, all or none.
  cuda::CUresult Update(const Graph& graph, cuda::CUgraphExecUpdateResultInfo* info);

  /// INVALID_VALUE when graph memory forbids it (graph_memory.h). `oldest`: a task that the caller has to wait for
  /// without locks, since the stream's queue is full; null: none.
  cuda::CUresult Launch(Stream& stream, TaskPtr* oldest);

 private:
  mutable std::mutex mutex_;
  const std::uint32_t id_ = NextGraphId();
  const std::uint64_t flags_;
  const GraphMemoryUse memory_;
  std::shared_ptr<const GraphPlan> plan_;
  std::shared_ptr<GraphPlan> own_plan_;  ///< the same while no launch has it, so that it can be changed; else null
  TaskPtr last_launch_;                  ///< two launches of one executable graph never overlap
  std::uint64_t last_work_ = 0;          ///< the same in the program's timeline
  WorkOriginPtr last_origin_;            ///< the same for memcheck
};

/// cuGraphLaunch: refused while the stream is being captured.
cuda::CUresult LaunchGraph(Stream& stream, const std::shared_ptr<GraphExec>& exec);

}  // namespace gridloom::session
