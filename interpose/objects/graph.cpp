#include "interpose/objects/graph.h"

#include <algorithm>

#include "interpose/objects/program_handles.h"

namespace gridloom::session {

using namespace cuda;

bool UserObject::Release(unsigned count, bool* gone) {
  std::int64_t before = count_.load();
  do {
    if (before < count) return false;
  } while (!count_.compare_exchange_weak(before, before - count));
  *gone = before == count;
  if (*gone && destroy_ != nullptr) destroy_(object_);
  return true;
}

void ReleaseAll(ProgramHandles& handles, const UserObjects& objects) {
  for (const auto& [object, count] : objects) {
    bool gone = false;
    object->Release(count, &gone);
    if (gone) handles.user_objects.Remove(reinterpret_cast<CUuserObject>(object.get()));
  }
}

GraphNode::~GraphNode() {
  // The graph of a child node is the node's own, whoever has asked for its handle: it goes with the node.
  if (const auto* child = std::get_if<ChildOp>(&operation))
    child->graph->handles().graphs.Remove(child->graph->handle());
}

CUgraphNodeType GraphNode::type() const {
  struct Visitor {
    CUgraphNodeType operator()(const EmptyOp&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelOp&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyOp&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const FillOp&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostOp&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const EventRecordOp&) const { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const EventWaitOp&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const AllocOp&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeOp&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const BatchOp&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    CUgraphNodeType operator()(const ChildOp&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const ConditionalOp&) const { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
  };
  return std::visit(Visitor{}, operation);
}

std::uint32_t NextGraphId() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

Graph::~Graph() {
  for (const auto& node : nodes_) handles_.graph_nodes.Remove(node->handle());
  ReleaseAll(handles_, user_objects);
}

CUresult Graph::AddNode(Operation operation, const std::vector<GraphNode*>& dependencies, GraphNode** node) {
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    if (dependencies[i] == nullptr || &dependencies[i]->graph != this) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(dependencies.begin(), dependencies.begin() + static_cast<std::ptrdiff_t>(i), dependencies[i]) !=
        dependencies.begin() + static_cast<std::ptrdiff_t>(i)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (const auto status = NoteMemory(operation); status != CUDA_SUCCESS) return status;
  if (const auto* child = std::get_if<ChildOp>(&operation)) child->graph->around_ = weak_from_this();
  if (const auto* conditional = std::get_if<ConditionalOp>(&operation)) {
    for (const auto& body : conditional->bodies->graphs) body->around_ = weak_from_this();
  }
  auto made = std::make_shared<GraphNode>(*this, std::move(operation));
  made->dependencies = dependencies;
  made->index = static_cast<std::uint32_t>(nodes_.size());
  made->local_id = nodes_made_++;
  for (GraphNode* dependency : dependencies) dependency->dependents.push_back(made.get());
  *node = made.get();
  nodes_.push_back(made);
  handles_.graph_nodes.Add(std::move(made));
  return CUDA_SUCCESS;
}

void Graph::RemoveNode(GraphNode& node) {
  for (GraphNode* other : node.dependencies) std::erase(other->dependents, &node);
  for (GraphNode* other : node.dependents) std::erase(other->dependencies, &node);
  const std::uint32_t index = node.index;
  handles_.graph_nodes.Remove(node.handle());
  nodes_.erase(nodes_.begin() + index);  // may free the node
  for (std::size_t i = index; i < nodes_.size(); ++i) nodes_[i]->index = static_cast<std::uint32_t>(i);
}

CUresult Graph::AddEdge(GraphNode& from, GraphNode& to) {
  if (&from == &to || std::ranges::find(to.dependencies, &from) != to.dependencies.end())
    return CUDA_ERROR_INVALID_VALUE;
  from.dependents.push_back(&to);
  to.dependencies.push_back(&from);
  return CUDA_SUCCESS;
}

CUresult Graph::RemoveEdge(GraphNode& from, GraphNode& to) {
  if (HasMemoryNodes())
    return CUDA_ERROR_NOT_SUPPORTED;  // "any attempt to do so will return an error" (cuGraphRemoveDependencies)
  if (std::erase(to.dependencies, &from) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::erase(from.dependents, &to);
  return CUDA_SUCCESS;
}

bool Graph::MayUse(const Conditional& condition) const {
  const auto of = [&](const Graph& graph) {
    return std::ranges::any_of(graph.conditions, [&](const auto& own) { return own.get() == &condition; });
  };
  if (of(*this)) return true;
  for (auto graph = around_.lock(); graph != nullptr; graph = graph->around_.lock()) {
    if (of(*graph)) return true;
  }
  return false;
}

CUresult Graph::NoteMemory(const Operation& operation) {
  GraphMemoryUse more;
  if (const auto* alloc = std::get_if<AllocOp>(&operation)) more.AddAllocation(*alloc->memory);
  if (const auto* child = std::get_if<ChildOp>(&operation)) more.Add(child->graph->memory());
  std::shared_ptr<Graph> outermost = shared_from_this();
  while (const auto next = outermost->around_.lock()) outermost = next;
  if (const auto* free = std::get_if<FreeOp>(&operation)) {
    if (free->of_graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const auto status = outermost->memory_.AddFree(*free->of_graph); status != CUDA_SUCCESS) return status;
    more.NoteFree(*free->of_graph);
  }
  for (std::shared_ptr<Graph> graph = shared_from_this(); more.any() && graph != nullptr;
       graph = graph->around_.lock()) {
    graph->memory_.Add(more);
  }
  return CUDA_SUCCESS;
}

bool Graph::Order(std::vector<GraphNode*>* order) const {
  std::vector<std::uint32_t> missing(nodes_.size());
  order->clear();
  for (const auto& node : nodes_) {
    missing[node->index] = static_cast<std::uint32_t>(node->dependencies.size());
    if (missing[node->index] == 0) order->push_back(node.get());
  }
  for (std::size_t i = 0; i < order->size(); ++i) {
    for (GraphNode* next : (*order)[i]->dependents) {
      if (--missing[next->index] == 0) order->push_back(next);
    }
  }
  return order->size() == nodes_.size();
}

std::shared_ptr<Graph> Graph::Clone() const {
  const auto lock = Lock();
  auto copy = std::make_shared<Graph>(handles_);
  std::vector<GraphNode*> made;
  for (const auto& node : nodes_) {
    GraphNode* twin = nullptr;
    Operation operation = node->operation;
    if (auto* child = std::get_if<ChildOp>(&operation)) child->graph = child->graph->Clone();
    if (auto* conditional = std::get_if<ConditionalOp>(&operation)) {
      conditional->bodies = std::make_shared<ConditionalBodies>(*conditional->bodies);
    }
    copy->AddNode(std::move(operation), {}, &twin);
    twin->cloned_from = node.get();
    made.push_back(twin);
  }
  for (const auto& node : nodes_) {
    for (const GraphNode* dependency : node->dependencies) copy->AddEdge(*made[dependency->index], *made[node->index]);
  }
  copy->conditions = conditions;
  copy->user_objects = user_objects;
  for (const auto& [object, count] : user_objects) object->Retain(count);
  return copy;
}

ConditionalBodies::ConditionalBodies(ProgramHandles& all, unsigned count) : all(all) {
  for (unsigned i = 0; i < count; ++i) {
    graphs.push_back(std::make_shared<Graph>(all));
    handles.push_back(all.graphs.Add(graphs.back()));
  }
}

ConditionalBodies::ConditionalBodies(const ConditionalBodies& other) : all(other.all) {
  for (const auto& graph : other.graphs) {
    graphs.push_back(graph->Clone());
    handles.push_back(all.graphs.Add(graphs.back()));
  }
}

ConditionalBodies::~ConditionalBodies() {
  for (const CUgraph handle : handles) all.graphs.Remove(handle);
}

}  // namespace gridloom::session
