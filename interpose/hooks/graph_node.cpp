// Nodes of graphs: adding them, reading and changing their parameters.
#include <cstring>

#include "hooks/graph_support.h"
#include "interpose/launch/slicing.h"
#include "interpose/objects/conditional.h"

namespace gridloom::hooks {

using session::Operation;

namespace {

CUresult Add(Process& process, CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies,
             std::size_t count, Operation operation) {
  GL_CU_REQUIRE(handle != nullptr && (dependencies != nullptr || count == 0));
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, graph_handle, &graph));
  const auto lock = graph->Lock();
  if (const auto* conditional = std::get_if<session::ConditionalOp>(&operation))
    GL_CU_REQUIRE(graph->MayUse(*conditional->condition));
  std::vector<GraphNode*> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    std::shared_ptr<GraphNode> node;
    GL_CU_TRY(FindNode(process, dependencies[i], &node));
    nodes.push_back(node.get());
  }
  GraphNode* node = nullptr;
  GL_CU_TRY(graph->AddNode(std::move(operation), nodes, &node));
  *handle = node->handle();
  return CUDA_SUCCESS;
}

/// Makes the operation in a context and adds the node.
template <typename Params>
CUresult AddMade(Process& process, CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                 std::size_t count, Params* params, CUcontext context_handle) {
  GL_CU_REQUIRE(params != nullptr);
  Context* context = nullptr;
  GL_CU_TRY(session::NodeContext(process, context_handle, &context));
  Operation operation;
  GL_CU_TRY(session::MakeOperation(*context, *params, &operation));
  return Add(process, handle, graph, dependencies, count, std::move(operation));
}

/// Gives a node a new operation of the kind it has.
CUresult Replace(Process& process, GraphNode& node, Operation operation) {
  GL_CU_REQUIRE(node.operation.index() == operation.index() && !IsMemory(operation));
  const auto lock = node.graph.Lock();
  node.operation = std::move(operation);
  return CUDA_SUCCESS;
}
template <typename Params>
CUresult SetParams(Process& process, CUgraphNode handle, Params* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindNode(process, handle, &node));
  Context* context = nullptr;
  GL_CU_TRY(session::NodeContext(process, nullptr, &context));
  Operation operation;
  GL_CU_TRY(session::MakeOperation(*context, *params, &operation));
  return Replace(process, *node, std::move(operation));
}

template <typename Op>
CUresult AddEvent(Process& process, CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                  std::size_t count, CUevent event_handle) {
  const auto event = process.handles.events.Find(event_handle);
  GL_CU_REQUIRE(event != nullptr);
  return Add(process, handle, graph, dependencies, count, Op{event});
}
template <typename Op>
CUresult GetEvent(Process& process, CUgraphNode handle, CUevent* event) {
  GL_CU_REQUIRE(event != nullptr);
  std::shared_ptr<GraphNode> node;
  Op* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *event = reinterpret_cast<CUevent>(op->event.get());
  return CUDA_SUCCESS;
}
template <typename Op>
CUresult SetEvent(Process& process, CUgraphNode handle, CUevent event_handle) {
  const auto event = process.handles.events.Find(event_handle);
  GL_CU_REQUIRE(event != nullptr);
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindNode(process, handle, &node));
  return Replace(process, *node, Op{event});
}

}  // namespace

CUresult cuGraphAddKernelNode_v2(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return AddMade(process, node, graph, dependencies, count, params, nullptr);
}
CUresult cuGraphAddKernelNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  GL_CU_REQUIRE(params != nullptr);
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = session::Widen(*params);
  return AddMade(process, node, graph, dependencies, count, &wide, nullptr);
}
CUresult cuGraphAddMemcpyNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_MEMCPY3D* params, CUcontext context) {
  return AddMade(process, node, graph, dependencies, count, params, context);
}
CUresult cuGraphAddMemsetNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  return AddMade(process, node, graph, dependencies, count, params, context);
}
CUresult cuGraphAddHostNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            std::size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  return AddMade(process, node, graph, dependencies, count, params, nullptr);
}
CUresult cuGraphAddBatchMemOpNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  return AddMade(process, node, graph, dependencies, count, params, params->context);
}
CUresult cuGraphAddEmptyNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             std::size_t count) {
  return Add(process, node, graph, dependencies, count, session::EmptyOp{});
}
CUresult cuGraphAddChildGraphNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t count, CUgraph child_handle) {
  std::shared_ptr<Graph> child;
  GL_CU_TRY(FindGraph(process, child_handle, &child));
  Operation operation;
  GL_CU_TRY(session::MakeChild(child, false, &operation));
  return Add(process, node, graph, dependencies, count, std::move(operation));
}
CUresult cuGraphAddEventRecordNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                   std::size_t count, CUevent event) {
  return AddEvent<session::EventRecordOp>(process, node, graph, dependencies, count, event);
}
CUresult cuGraphAddEventWaitNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t count, CUevent event) {
  return AddEvent<session::EventWaitOp>(process, node, graph, dependencies, count, event);
}

CUresult cuGraphAddMemAllocNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  any.alloc = *params;
  GL_CU_TRY(AddMade(process, node, graph, dependencies, count, &any, nullptr));
  params->pointer = any.alloc.pointer;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddMemFreeNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t count, CUdeviceptr pointer) {
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  any.free_pointer = pointer;
  return AddMade(process, node, graph, dependencies, count, &any, nullptr);
}
CUresult cuGraphAddNode(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t count, CUgraphNodeParams* params) {
  return AddMade(process, node, graph, dependencies, count, params, nullptr);
}
CUresult cuGraphAddNode_v2(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, std::size_t count, CUgraphNodeParams* params) {
  return AddMade(process, node, graph, dependencies, count, params, nullptr);
}

// ---- parameters

CUresult cuGraphKernelNodeGetParams_v2(Process& process, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  session::KernelOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  const auto lock = node->graph.Lock();
  session::Describe(*node, *op, params);
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(Process& process, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  GL_CU_REQUIRE(params != nullptr);
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  GL_CU_TRY(cuGraphKernelNodeGetParams_v2(process, handle, &wide));
  std::memcpy(params, &wide, sizeof(*params));  // the older struct is a prefix of the newer
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetParams_v2(Process& process, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetParams(process, node, params);
}
CUresult cuGraphKernelNodeSetParams(Process& process, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  GL_CU_REQUIRE(params != nullptr);
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = session::Widen(*params);
  return SetParams(process, node, &wide);
}
CUresult cuGraphMemcpyNodeGetParams(Process& process, CUgraphNode handle, CUDA_MEMCPY3D* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  session::CopyOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *params = op->described;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeSetParams(Process& process, CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return SetParams(process, node, params);
}
CUresult cuGraphMemsetNodeGetParams(Process& process, CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  session::FillOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *params = op->params;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeSetParams(Process& process, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return SetParams(process, node, params);
}
CUresult cuGraphHostNodeGetParams(Process& process, CUgraphNode handle, CUDA_HOST_NODE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  session::HostOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *params = {op->function, op->data};
  return CUDA_SUCCESS;
}
CUresult cuGraphHostNodeSetParams(Process& process, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return SetParams(process, node, params);
}
CUresult cuGraphBatchMemOpNodeGetParams(Process& process, CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  session::BatchOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *params = {nullptr, static_cast<unsigned>(op->items.size()), op->items.data(), op->flags};
  return CUDA_SUCCESS;
}
CUresult cuGraphBatchMemOpNodeSetParams(Process& process, CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return SetParams(process, node, params);
}
CUresult cuGraphNodeSetParams(Process& process, CUgraphNode node, CUgraphNodeParams* params) {
  return SetParams(process, node, params);
}

CUresult cuGraphChildGraphNodeGetGraph(Process& process, CUgraphNode handle, CUgraph* graph) {
  GL_CU_REQUIRE(graph != nullptr);
  std::shared_ptr<GraphNode> node;
  session::ChildOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *graph = session::HandleOf(*op);
  return CUDA_SUCCESS;
}
CUresult cuGraphEventRecordNodeGetEvent(Process& process, CUgraphNode node, CUevent* event) {
  return GetEvent<session::EventRecordOp>(process, node, event);
}
CUresult cuGraphEventRecordNodeSetEvent(Process& process, CUgraphNode node, CUevent event) {
  return SetEvent<session::EventRecordOp>(process, node, event);
}
CUresult cuGraphEventWaitNodeGetEvent(Process& process, CUgraphNode node, CUevent* event) {
  return GetEvent<session::EventWaitOp>(process, node, event);
}
CUresult cuGraphEventWaitNodeSetEvent(Process& process, CUgraphNode node, CUevent event) {
  return SetEvent<session::EventWaitOp>(process, node, event);
}
CUresult cuGraphMemAllocNodeGetParams(Process& process, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  session::AllocOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *params = op->params;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemFreeNodeGetParams(Process& process, CUgraphNode handle, CUdeviceptr* pointer) {
  GL_CU_REQUIRE(pointer != nullptr);
  std::shared_ptr<GraphNode> node;
  session::FreeOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  *pointer = op->address;
  return CUDA_SUCCESS;
}

// Whoever wants a node's parameters without knowing its type.
CUresult cuGraphNodeGetParams(Process& process, CUgraphNode handle, CUgraphNodeParams* params) {
  GL_CU_REQUIRE(params != nullptr);
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindNode(process, handle, &node));
  const auto lock = node->graph.Lock();
  session::Describe(*node, params);
  return CUDA_SUCCESS;
}

// ---- attributes of kernel nodes

CUresult cuGraphKernelNodeGetAttribute(Process& process, CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue* value) {
  GL_CU_REQUIRE(value != nullptr);
  std::shared_ptr<GraphNode> node;
  session::KernelOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  std::memset(value, 0, sizeof(*value));
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: value->cooperative = op->cooperative; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value->priority = op->priority; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      value->cluster_dim = {op->cluster.x, op->cluster.y, op->cluster.z};
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuGraphKernelNodeSetAttribute(Process& process, CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
  GL_CU_REQUIRE(value != nullptr);
  std::shared_ptr<GraphNode> node;
  session::KernelOp* op = nullptr;
  GL_CU_TRY(FindNode(process, handle, &node, &op));
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      op->cooperative = value->cooperative != 0;
      return session::ChooseSlices(*op, process);
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: op->priority = value->priority; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const exec::Dim3 cluster{value->cluster_dim.x, value->cluster_dim.y, value->cluster_dim.z};
      GL_CU_REQUIRE(cluster.count() != 0);
      if (op->grid.x % cluster.x != 0 || op->grid.y % cluster.y != 0 || op->grid.z % cluster.z != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
      op->cluster = cluster;
      return session::ChooseSlices(*op, process);
    }
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return CUDA_SUCCESS;  // caching hints
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuGraphKernelNodeCopyAttributes(Process& process, CUgraphNode dst_handle, CUgraphNode src_handle) {
  std::shared_ptr<GraphNode> dst, src;
  session::KernelOp *to = nullptr, *from = nullptr;
  GL_CU_TRY(FindNode(process, dst_handle, &dst, &to));
  GL_CU_TRY(FindNode(process, src_handle, &src, &from));
  to->cooperative = from->cooperative;
  to->priority = from->priority;
  to->cluster = from->cluster;
  return session::ChooseSlices(*to, process);
}

}  // namespace gridloom::hooks
