// Graphs as a whole: creation, edges, queries, user objects.
#include <algorithm>
#include <fstream>

#include "hooks/graph_support.h"
#include "interpose/objects/pool.h"

namespace gridloom::hooks {

namespace {

CUresult ForEachEdge(Process& process, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                     std::size_t count, CUresult (Graph::*change)(GraphNode&, GraphNode&)) {
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  GL_CU_REQUIRE(count == 0 || (from != nullptr && to != nullptr));
  const auto lock = graph->Lock();
  for (std::size_t i = 0; i < count; ++i) {
    std::shared_ptr<GraphNode> a, b;
    GL_CU_TRY(FindNode(process, from[i], &a));
    GL_CU_TRY(FindNode(process, to[i], &b));
    GL_CU_REQUIRE(&a->graph == graph.get() && &b->graph == graph.get());
    GL_CU_TRY((graph.get()->*change)(*a, *b));
  }
  return CUDA_SUCCESS;
}

const char* NameOf(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "memset";
    case CU_GRAPH_NODE_TYPE_HOST: return "host";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "graph";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "wait event";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "record event";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "alloc";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "free";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "memory operations";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "conditional";
    default: return "empty";
  }
}

}  // namespace

CUresult cuGraphCreate(Process& process, CUgraph* handle, unsigned flags) {
  GL_CU_REQUIRE(handle != nullptr && flags == 0);
  *handle = process.handles.graphs.Add(std::make_shared<Graph>(process.handles));
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(Process& process, CUgraph handle) {
  return process.handles.graphs.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphClone(Process& process, CUgraph* copy, CUgraph handle) {
  GL_CU_REQUIRE(copy != nullptr);
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  if (graph->HasMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;  // an allocation node owns its memory alone
  *copy = process.handles.graphs.Add(graph->Clone());
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(Process& process, CUgraphNode* found, CUgraphNode original_handle,
                                CUgraph clone_handle) {
  GL_CU_REQUIRE(found != nullptr);
  std::shared_ptr<Graph> clone;
  std::shared_ptr<GraphNode> original;
  GL_CU_TRY(FindGraph(process, clone_handle, &clone));
  GL_CU_TRY(FindNode(process, original_handle, &original));
  const auto lock = clone->Lock();
  for (const auto& node : clone->nodes()) {
    if (node->cloned_from != original.get()) continue;
    *found = node->handle();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// ---- edges

CUresult cuGraphAddDependencies(Process& process, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  return ForEachEdge(process, graph, from, to, count, &Graph::AddEdge);
}
// A programmatic edge lets a kernel start early; a full dependency keeps every promise it makes.
CUresult cuGraphAddDependencies_v2(Process& process, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, std::size_t count) {
  return ForEachEdge(process, graph, from, to, count, &Graph::AddEdge);
}
CUresult cuGraphRemoveDependencies(Process& process, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  return ForEachEdge(process, graph, from, to, count, &Graph::RemoveEdge);
}
CUresult cuGraphRemoveDependencies_v2(Process& process, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, std::size_t count) {
  return ForEachEdge(process, graph, from, to, count, &Graph::RemoveEdge);
}

// ---- queries

CUresult cuGraphGetNodes(Process& process, CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  const auto lock = graph->Lock();
  return StoreHandles(graph->nodes(), nodes, count);
}

CUresult cuGraphGetRootNodes(Process& process, CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  const auto lock = graph->Lock();
  std::vector<GraphNode*> roots;
  for (const auto& node : graph->nodes()) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return StoreHandles(roots, nodes, count);
}

CUresult cuGraphGetEdges_v2(Process& process, CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                            std::size_t* count) {
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  GL_CU_REQUIRE(count != nullptr && (from == nullptr) == (to == nullptr));
  const auto lock = graph->Lock();
  std::vector<GraphNode*> starts, ends;
  for (const auto& node : graph->nodes()) {
    for (GraphNode* dependent : node->dependents) {
      starts.push_back(node.get());
      ends.push_back(dependent);
    }
  }
  std::size_t room = *count;
  GL_CU_TRY(StoreHandles(starts, from, &room));
  if (data != nullptr && from != nullptr) std::fill_n(data, room, CUgraphEdgeData{});
  return StoreHandles(ends, to, count);
}
CUresult cuGraphGetEdges(Process& process, CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return cuGraphGetEdges_v2(process, graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(Process& process, CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                                       std::size_t* count) {
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindNode(process, handle, &node));
  const auto lock = node->graph.Lock();
  GL_CU_TRY(StoreHandles(node->dependencies, nodes, count));
  if (data != nullptr && nodes != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependencies(Process& process, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return cuGraphNodeGetDependencies_v2(process, node, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependentNodes_v2(Process& process, CUgraphNode handle, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, std::size_t* count) {
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindNode(process, handle, &node));
  const auto lock = node->graph.Lock();
  GL_CU_TRY(StoreHandles(node->dependents, nodes, count));
  if (data != nullptr && nodes != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependentNodes(Process& process, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(process, node, nodes, nullptr, count);
}

CUresult cuGraphNodeGetType(Process& process, CUgraphNode handle, CUgraphNodeType* type) {
  std::shared_ptr<GraphNode> node;
  GL_CU_REQUIRE(type != nullptr);
  GL_CU_TRY(FindNode(process, handle, &node));
  *type = node->type();
  return CUDA_SUCCESS;
}

CUresult cuGraphGetId(Process& process, CUgraph handle, unsigned* id) {
  std::shared_ptr<Graph> graph;
  GL_CU_REQUIRE(id != nullptr);
  GL_CU_TRY(FindGraph(process, handle, &graph));
  *id = graph->id();
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetLocalId(Process& process, CUgraphNode handle, unsigned* id) {
  std::shared_ptr<GraphNode> node;
  GL_CU_REQUIRE(id != nullptr);
  GL_CU_TRY(FindNode(process, handle, &node));
  *id = node->local_id;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetToolsId(Process& process, CUgraphNode handle, std::uint64_t* id) {
  std::shared_ptr<GraphNode> node;
  GL_CU_REQUIRE(id != nullptr);
  GL_CU_TRY(FindNode(process, handle, &node));
  *id = std::uint64_t{node->graph.id()} << 32 | node->local_id;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetContainingGraph(Process& process, CUgraphNode handle, CUgraph* graph) {
  std::shared_ptr<GraphNode> node;
  GL_CU_REQUIRE(graph != nullptr);
  GL_CU_TRY(FindNode(process, handle, &node));
  // A child's graph is its node's, and known by its handle from when somebody asks.
  *graph = node->graph.handle();
  if (process.handles.graphs.Find(*graph) == nullptr) process.handles.graphs.Add(node->graph.shared_from_this());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(Process& process, CUgraphNode handle) {
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindNode(process, handle, &node));
  const auto lock = node->graph.Lock();
  if (node->graph.HasMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;
  node->graph.RemoveNode(*node);
  return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(Process& process, CUgraph handle, const char* path, unsigned) {
  std::shared_ptr<Graph> graph;
  GL_CU_REQUIRE(path != nullptr);
  GL_CU_TRY(FindGraph(process, handle, &graph));
  std::ofstream file(path);
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  const auto lock = graph->Lock();
  file << "digraph graph_" << graph->id() << " {\n";
  for (const auto& node : graph->nodes()) {
    const auto* kernel = std::get_if<session::KernelOp>(&node->operation);
    file << "  n" << node->local_id << " [label=\"" << NameOf(node->type())
         << (kernel != nullptr ? " " + kernel->kernel->name() : "") << "\"];\n";
    for (const GraphNode* dependent : node->dependents)
      file << "  n" << node->local_id << " -> n" << dependent->local_id << ";\n";
  }
  file << "}\n";
  return file ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

// ---- conditions

CUresult cuGraphConditionalHandleCreate(Process& process, CUgraphConditionalHandle* handle, CUgraph graph_handle,
                                        CUcontext, unsigned default_value, unsigned flags) {
  GL_CU_REQUIRE(handle != nullptr && (flags & ~kGraphConditionalAssignDefault) == 0);
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, graph_handle, &graph));
  const auto lock = graph->Lock();
  graph->conditions.push_back(session::Conditional::Make(default_value, (flags & kGraphConditionalAssignDefault) != 0));
  *handle = graph->conditions.back()->handle();
  return CUDA_SUCCESS;
}

// ---- user objects

CUresult cuUserObjectCreate(Process& process, CUuserObject* handle, void* object, CUhostFn destroy, unsigned references,
                            unsigned flags) {
  GL_CU_REQUIRE(handle != nullptr && destroy != nullptr && references != 0 && references <= 0x7fffffff &&
                flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  *handle = process.handles.user_objects.Add(std::make_shared<session::UserObject>(object, destroy, references));
  return CUDA_SUCCESS;
}
CUresult cuUserObjectRetain(Process& process, CUuserObject handle, unsigned count) {
  GL_CU_REQUIRE(count != 0 && count <= 0x7fffffff);
  const auto object = process.handles.user_objects.Find(handle);
  GL_CU_REQUIRE(object != nullptr);
  object->Retain(count);
  return CUDA_SUCCESS;
}
CUresult cuUserObjectRelease(Process& process, CUuserObject handle, unsigned count) {
  GL_CU_REQUIRE(count != 0 && count <= 0x7fffffff);
  const auto object = process.handles.user_objects.Find(handle);
  GL_CU_REQUIRE(object != nullptr);
  bool gone = false;
  GL_CU_REQUIRE(object->Release(count, &gone));
  if (gone) process.handles.user_objects.Remove(handle);
  return CUDA_SUCCESS;
}
CUresult cuGraphRetainUserObject(Process& process, CUgraph handle, CUuserObject object_handle, unsigned count,
                                 unsigned flags) {
  GL_CU_REQUIRE(count != 0 && count <= 0x7fffffff && (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) == 0);
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  const auto object = process.handles.user_objects.Find(object_handle);
  GL_CU_REQUIRE(object != nullptr);
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->Retain(count);
  const auto lock = graph->Lock();
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}
CUresult cuGraphReleaseUserObject(Process& process, CUgraph handle, CUuserObject object_handle, unsigned count) {
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, handle, &graph));
  const auto object = process.handles.user_objects.Find(object_handle);
  GL_CU_REQUIRE(object != nullptr && count != 0);
  {
    const auto lock = graph->Lock();
    const auto found = graph->user_objects.find(object);
    GL_CU_REQUIRE(found != graph->user_objects.end() && found->second >= count);
    found->second -= count;
    if (found->second == 0) graph->user_objects.erase(found);
  }
  bool gone = false;
  object->Release(count, &gone);  // outside the lock: it may run the program's destructor
  if (gone) process.handles.user_objects.Remove(object_handle);
  return CUDA_SUCCESS;
}

// ---- memory of graphs

CUresult cuDeviceGetGraphMemAttribute(Process& process, CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  Device* device = nullptr;
  GL_CU_REQUIRE(value != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  const auto pool = device->graph_pool();
  auto* const bytes = static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *bytes = pool->used(); return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *bytes = pool->used_high(); return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *bytes = pool->reserved(); return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *bytes = pool->reserved_high(); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuDeviceSetGraphMemAttribute(Process& process, CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  Device* device = nullptr;
  GL_CU_REQUIRE(value != nullptr &&
                (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  device->graph_pool()->ResetHigh();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGraphMemTrim(Process& process, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  if (device->has_backend()) device->graph_pool()->Trim(0);
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
