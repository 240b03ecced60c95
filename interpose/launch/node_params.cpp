#include "interpose/launch/node_params.h"

#include <cstring>

#include "interpose/launch/capture.h"
#include "interpose/launch/copy.h"
#include "interpose/launch/make_kernel.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/graph_memory.h"
#include "interpose/objects/green_context.h"
#include "interpose/objects/process.h"

namespace gridloom::session {

using namespace cuda;

CUresult NodeContext(const Process& process, CUcontext handle, Context** context) {
  *context = handle == nullptr ? CurrentContext() : process.FindContext(handle);
  return *context != nullptr && !(*context)->destroyed() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA_KERNEL_NODE_PARAMS_v2 Widen(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  return {p.function,    p.grid_dim_x,       p.grid_dim_y,    p.grid_dim_z, p.block_dim_x, p.block_dim_y,
          p.block_dim_z, p.shared_mem_bytes, p.kernel_params, p.extra,      nullptr,       nullptr};
}

CUresult MakeOperation(Context& context, const CUDA_KERNEL_NODE_PARAMS_v2& p, Operation* operation) {
  const Process& process = context.process();
  Context* target = &context;
  if (p.context != nullptr) {
    if (const auto status = NodeContext(process, p.context, &target); status != CUDA_SUCCESS) return status;
  }
  LaunchRequest request;
  request.function = p.function != nullptr ? p.function : reinterpret_cast<CUfunction>(p.kernel);
  // A module's function runs in its own context, whichever is named or current.
  const auto kernel = process.handles.kernels.Find(reinterpret_cast<CUkernel>(request.function));
  if (kernel != nullptr && kernel->owner() != nullptr) target = kernel->owner();
  request.grid = {p.grid_dim_x, p.grid_dim_y, p.grid_dim_z};
  request.block = {p.block_dim_x, p.block_dim_y, p.block_dim_z};
  request.dynamic_shared_bytes = p.shared_mem_bytes;
  const GreenPtr named = p.context != nullptr ? process.FindGreen(p.context) : nullptr;
  request.green = p.context != nullptr ? named.get() : CurrentGreen();
  request.kernel_params = p.kernel_params;
  request.extra = p.extra;
  KernelOp op;
  if (const auto status = MakeKernelOp(*target, request, &op); status != CUDA_SUCCESS) return status;
  *operation = std::move(op);
  return CUDA_SUCCESS;
}

CUresult MakeOperation(Context& context, const CUDA_MEMCPY3D& p, Operation* operation) {
  CopyOp op;
  if (const auto status = MakeCopy(context, p, &op); status != CUDA_SUCCESS) return status;
  *operation = std::move(op);
  return CUDA_SUCCESS;
}

CUresult MakeOperation(Context& context, const CUDA_MEMSET_NODE_PARAMS& p, Operation* operation) {
  FillOp op;
  if (const auto status = MakeFill(context, p, &op); status != CUDA_SUCCESS) return status;
  *operation = op;
  return CUDA_SUCCESS;
}

CUresult MakeOperation(Context&, const CUDA_HOST_NODE_PARAMS& p, Operation* operation) {
  if (p.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostOp op;
  op.function = p.fn;
  op.data = p.user_data;
  *operation = op;
  return CUDA_SUCCESS;
}

CUresult MakeOperation(Context& context, const CUDA_BATCH_MEM_OP_NODE_PARAMS& p, Operation* operation) {
  if (const auto status = CheckBatch(context, p.params, p.count); status != CUDA_SUCCESS) return status;
  *operation = BatchOp{{p.params, p.params + p.count}, p.flags};
  return CUDA_SUCCESS;
}

/// The bodies are made here and told in the parameters, for the program to fill them.
CUresult MakeOperation(Context& context, CUDA_CONDITIONAL_NODE_PARAMS& p, Operation* operation) {
  const unsigned most = p.type == CU_GRAPH_COND_TYPE_IF ? 2 : p.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : ~0u;
  if (p.type < CU_GRAPH_COND_TYPE_IF || p.type > CU_GRAPH_COND_TYPE_SWITCH) return CUDA_ERROR_INVALID_VALUE;
  if (p.size == 0 || p.size > most) return CUDA_ERROR_INVALID_VALUE;
  ConditionalOp op{Conditional::Find(p.handle), p.type, nullptr};
  if (op.condition == nullptr) return CUDA_ERROR_INVALID_VALUE;
  op.bodies = std::make_shared<ConditionalBodies>(context.process().handles, p.size);
  p.graphs = op.bodies->handles.data();
  *operation = std::move(op);
  return CUDA_SUCCESS;
}

CUresult MakeChild(const std::shared_ptr<Graph>& graph, bool moved, Operation* operation) {
  if (!moved && graph->HasMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;  // an allocation node owns its memory alone
  if (moved && graph->inside()) return CUDA_ERROR_INVALID_VALUE;
  *operation = ChildOp{moved ? graph : graph->Clone()};
  return CUDA_SUCCESS;
}

CUresult MakeOperation(Context& context, CUgraphNodeParams& p, Operation* operation) {
  Process& process = context.process();
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return MakeOperation(context, p.kernel, operation);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return MakeOperation(context, p.memcpy.copy, operation);
    case CU_GRAPH_NODE_TYPE_MEMSET: return MakeOperation(context, p.memset.params, operation);
    case CU_GRAPH_NODE_TYPE_HOST: return MakeOperation(context, p.host, operation);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return MakeOperation(context, p.mem_op, operation);
    case CU_GRAPH_NODE_TYPE_EMPTY: *operation = EmptyOp{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      const auto child = process.handles.graphs.Find(p.graph.graph);
      if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return MakeChild(child, p.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, operation);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
      const auto event = process.handles.events.Find(p.event);
      if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (p.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) *operation = EventWaitOp{event};
      else *operation = EventRecordOp{event};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      AllocOp op;
      if (const auto status = MakeAllocOp(context.device(), p.alloc, &op); status != CUDA_SUCCESS) return status;
      p.alloc.pointer = op.params.pointer;
      *operation = op;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      if (p.free_pointer == 0) return CUDA_ERROR_INVALID_VALUE;
      *operation = FreeOp{p.free_pointer, nullptr, GraphMemory::Find(p.free_pointer)};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return MakeOperation(context, p.conditional, operation);
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void Describe(GraphNode& node, const KernelOp& op, CUDA_KERNEL_NODE_PARAMS_v2* p) {
  node.param_pointers.clear();
  for (std::size_t i = 0; i < op.bound.own_params(); ++i) {
    node.param_pointers.push_back(const_cast<std::byte*>(op.params.data()) + op.bound.info->params.offsets[i]);
  }
  *p = {op.kernel->function_handle(),
        op.grid.x,
        op.grid.y,
        op.grid.z,
        op.block.x,
        op.block.y,
        op.block.z,
        op.dynamic_shared_bytes,
        node.param_pointers.data(),
        nullptr,
        op.kernel->kernel_handle(),
        nullptr};
}

CUgraph HandleOf(const ChildOp& child) {
  auto& graphs = child.graph->handles().graphs;
  if (graphs.Find(child.graph->handle()) == nullptr) graphs.Add(child.graph);
  return child.graph->handle();
}

namespace {

/// Fills in the parameters of a node's kind.
struct NodeDescriber {
  GraphNode& node;
  CUgraphNodeParams& p;

  void operator()(const EmptyOp&) const {}  // has none
  void operator()(const KernelOp& op) const { Describe(node, op, &p.kernel); }
  void operator()(const CopyOp& op) const { p.memcpy.copy = op.described; }
  void operator()(const FillOp& op) const { p.memset.params = op.params; }
  void operator()(const HostOp& op) const { p.host = {op.function, op.data}; }
  void operator()(const EventRecordOp& op) const { p.event = reinterpret_cast<CUevent>(op.event.get()); }
  void operator()(const EventWaitOp& op) const { p.event = reinterpret_cast<CUevent>(op.event.get()); }
  void operator()(const AllocOp& op) const { p.alloc = op.params; }
  void operator()(const FreeOp& op) const { p.free_pointer = op.address; }
  void operator()(const BatchOp& op) const {
    p.mem_op = {nullptr, static_cast<unsigned>(op.items.size()), const_cast<CUstreamBatchMemOpParams*>(op.items.data()),
                op.flags};
  }
  void operator()(const ChildOp& op) const { p.graph.graph = HandleOf(op); }
  void operator()(const ConditionalOp& op) const {
    p.conditional = {op.condition->handle(), op.type, static_cast<unsigned>(op.bodies->handles.size()),
                     op.bodies->handles.data(), nullptr};
  }
};

}  // namespace

void Describe(GraphNode& node, CUgraphNodeParams* params) {
  std::memset(params, 0, sizeof(*params));
  params->type = node.type();
  std::visit(NodeDescriber{node, *params}, node.operation);
}

}  // namespace gridloom::session
