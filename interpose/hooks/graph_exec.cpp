// Executable graphs: instantiation, update, parameters of single nodes. Launching is in launch.cpp.
#include "hooks/graph_support.h"

namespace gridloom::hooks {

using session::Operation;

namespace {

CUresult Instantiate(Process& process, CUgraphExec* handle, CUgraph graph_handle, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  GL_CU_REQUIRE(handle != nullptr && (flags & ~kKnown) == 0);
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
    return CUDA_ERROR_NOT_SUPPORTED;  // graphs that kernels launch
  std::shared_ptr<Graph> graph;
  GL_CU_TRY(FindGraph(process, graph_handle, &graph));
  std::shared_ptr<GraphExec> exec;
  GL_CU_TRY(GraphExec::Instantiate(*graph, flags, &exec));
  *handle = process.handles.graph_execs.Add(std::move(exec));
  return CUDA_SUCCESS;
}

CUresult Replace(Process& process, CUgraphExec handle, CUgraphNode origin, Operation operation) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindExec(process, handle, &exec));
  GL_CU_TRY(FindNode(process, origin, &node));
  const auto lock = exec->Lock();
  const session::GraphPlan::Node* const made = exec->Find(node.get());
  GL_CU_REQUIRE(made != nullptr && made->operation.index() == operation.index() && !IsMemory(operation));
  std::shared_ptr<const session::GraphPlan> child_plan;
  if (const auto* child =
          std::get_if<session::ChildOp>(&operation)) {  // what is launched is the child as it was instantiated
    CUgraphExecUpdateResultInfo info{};
    GL_CU_TRY(made->child->Updated(*child->graph, &info, &child_plan));
  }
  session::GraphPlan::Node& edited = exec->Edit(*made);
  edited.operation = std::move(operation);
  edited.child = std::move(child_plan);
  return CUDA_SUCCESS;
}

template <typename Params>
CUresult SetParams(Process& process, CUgraphExec exec, CUgraphNode node, Params* params, CUcontext context_handle) {
  GL_CU_REQUIRE(params != nullptr);
  Context* context = nullptr;
  GL_CU_TRY(session::NodeContext(process, context_handle, &context));
  Operation operation;
  GL_CU_TRY(session::MakeOperation(*context, *params, &operation));
  return Replace(process, exec, node, std::move(operation));
}

template <typename Op>
CUresult SetEvent(Process& process, CUgraphExec exec, CUgraphNode node, CUevent event_handle) {
  const auto event = process.handles.events.Find(event_handle);
  GL_CU_REQUIRE(event != nullptr);
  return Replace(process, exec, node, Op{event});
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(Process& process, CUgraphExec* exec, CUgraph graph, std::uint64_t flags) {
  return Instantiate(process, exec, graph, flags);
}
CUresult cuGraphInstantiate_v2(Process& process, CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                               std::size_t log_bytes) {
  Store(error_node, nullptr);
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return Instantiate(process, exec, graph, 0);
}
CUresult cuGraphInstantiateWithParams(Process& process, CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  GL_CU_REQUIRE(params != nullptr);
  params->error_node = nullptr;
  const CUresult status = Instantiate(process, exec, graph, params->flags);
  params->result = status == CUDA_SUCCESS               ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                   : status == CUDA_ERROR_NOT_SUPPORTED ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                                                        : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return status;
}

CUresult cuGraphExecDestroy(Process& process, CUgraphExec handle) {
  return process.handles.graph_execs.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphExecGetFlags(Process& process, CUgraphExec handle, std::uint64_t* flags) {
  std::shared_ptr<GraphExec> exec;
  GL_CU_REQUIRE(flags != nullptr);
  GL_CU_TRY(FindExec(process, handle, &exec));
  *flags = exec->flags();
  return CUDA_SUCCESS;
}
CUresult cuGraphExecGetId(Process& process, CUgraphExec handle, unsigned* id) {
  std::shared_ptr<GraphExec> exec;
  GL_CU_REQUIRE(id != nullptr);
  GL_CU_TRY(FindExec(process, handle, &exec));
  *id = exec->id();
  return CUDA_SUCCESS;
}
// There is nothing to upload: kernels and parameters are in host memory already.
CUresult cuGraphUpload(Process& process, CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<GraphExec> exec;
  session::StreamPtr stream;
  GL_CU_TRY(FindExec(process, handle, &exec));
  return FindStream(stream_handle, &stream);
}

CUresult cuGraphExecUpdate_v2(Process& process, CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Graph> graph;
  GL_CU_REQUIRE(info != nullptr);
  GL_CU_TRY(FindExec(process, handle, &exec));
  GL_CU_TRY(FindGraph(process, graph_handle, &graph));
  return exec->Update(*graph, info);
}
CUresult cuGraphExecUpdate(Process& process, CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = cuGraphExecUpdate_v2(process, exec, graph, &info);
  Store(error_node, info.error_node);
  Store(result, info.result);
  return status;
}

CUresult cuGraphExecKernelNodeSetParams_v2(Process& process, CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetParams(process, exec, node, params, nullptr);
}
CUresult cuGraphExecKernelNodeSetParams(Process& process, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  GL_CU_REQUIRE(params != nullptr);
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = session::Widen(*params);
  return SetParams(process, exec, node, &wide, nullptr);
}
CUresult cuGraphExecMemcpyNodeSetParams(Process& process, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext context) {
  return SetParams(process, exec, node, params, context);
}
CUresult cuGraphExecMemsetNodeSetParams(Process& process, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  return SetParams(process, exec, node, params, context);
}
CUresult cuGraphExecHostNodeSetParams(Process& process, CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  return SetParams(process, exec, node, params, nullptr);
}
CUresult cuGraphExecBatchMemOpNodeSetParams(Process& process, CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return SetParams(process, exec, node, params, nullptr);
}
CUresult cuGraphExecNodeSetParams(Process& process, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return SetParams(process, exec, node, params, nullptr);
}
CUresult cuGraphExecEventRecordNodeSetEvent(Process& process, CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetEvent<session::EventRecordOp>(process, exec, node, event);
}
CUresult cuGraphExecEventWaitNodeSetEvent(Process& process, CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetEvent<session::EventWaitOp>(process, exec, node, event);
}
CUresult cuGraphExecChildGraphNodeSetParams(Process& process, CUgraphExec handle, CUgraphNode origin,
                                            CUgraph child_handle) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<GraphNode> node;
  std::shared_ptr<Graph> child;
  GL_CU_TRY(FindExec(process, handle, &exec));
  GL_CU_TRY(FindNode(process, origin, &node));
  GL_CU_TRY(FindGraph(process, child_handle, &child));
  const auto lock = exec->Lock();
  const session::GraphPlan::Node* const made = exec->Find(node.get());
  GL_CU_REQUIRE(made != nullptr && made->child != nullptr);
  CUgraphExecUpdateResultInfo info{};
  std::shared_ptr<const session::GraphPlan> plan;
  GL_CU_TRY(made->child->Updated(*child, &info, &plan));
  exec->Edit(*made).child = std::move(plan);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetEnabled(Process& process, CUgraphExec handle, CUgraphNode origin, unsigned enabled) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<GraphNode> node;
  GL_CU_TRY(FindExec(process, handle, &exec));
  GL_CU_TRY(FindNode(process, origin, &node));
  const auto type = node->type();
  GL_CU_REQUIRE(type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMSET ||
                type == CU_GRAPH_NODE_TYPE_MEMCPY);
  const auto lock = exec->Lock();
  const session::GraphPlan::Node* const made = exec->Find(node.get());
  GL_CU_REQUIRE(made != nullptr);
  exec->Edit(*made).enabled = enabled != 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetEnabled(Process& process, CUgraphExec handle, CUgraphNode origin, unsigned* enabled) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<GraphNode> node;
  GL_CU_REQUIRE(enabled != nullptr);
  GL_CU_TRY(FindExec(process, handle, &exec));
  GL_CU_TRY(FindNode(process, origin, &node));
  const auto lock = exec->Lock();
  const session::GraphPlan::Node* const made = exec->Find(node.get());
  GL_CU_REQUIRE(made != nullptr);
  *enabled = made->enabled;
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
