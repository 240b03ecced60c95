// Between the parameter structs of graph nodes and operations.
#pragma once

#include "interpose/api/cuda_types.h"
#include "interpose/objects/graph.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

cuda::CUresult MakeOperation(Context& context, const cuda::CUDA_KERNEL_NODE_PARAMS_v2& params, Operation* operation);
cuda::CUresult MakeOperation(Context& context, const cuda::CUDA_MEMCPY3D& params, Operation* operation);
cuda::CUresult MakeOperation(Context& context, const cuda::CUDA_MEMSET_NODE_PARAMS& params, Operation* operation);
cuda::CUresult MakeOperation(Context& context, const cuda::CUDA_HOST_NODE_PARAMS& params, Operation* operation);
cuda::CUresult MakeOperation(Context& context, const cuda::CUDA_BATCH_MEM_OP_NODE_PARAMS& params, Operation* operation);
/// Any kind of node (cuGraphAddNode). An allocation's address and a condition's body graphs are written back into
/// `params`. NOT_SUPPORTED for semaphore nodes.
cuda::CUresult MakeOperation(Context& context, cuda::CUgraphNodeParams& params, Operation* operation);

/// A node that runs a copy of the graph, or with `moved` the graph itself, which belongs to the node then.
/// NOT_SUPPORTED for a copy of one with memory nodes.
cuda::CUresult MakeChild(const std::shared_ptr<Graph>& graph, bool moved, Operation* operation);

cuda::CUDA_KERNEL_NODE_PARAMS_v2 Widen(const cuda::CUDA_KERNEL_NODE_PARAMS_v1& params);

/// What a kernel node was given. The parameter pointers lead into the node and stay valid until it is changed.
void Describe(GraphNode& node, const KernelOp& op, cuda::CUDA_KERNEL_NODE_PARAMS_v2* params);

/// The same of a node of any kind; arrays in it are the node's, too. With the graph locked.
void Describe(GraphNode& node, cuda::CUgraphNodeParams* params);
/// The handle of a child node's graph, which is the node's own and stays valid as long as the node.
cuda::CUgraph HandleOf(const ChildOp& child);

/// The context a node belongs to: the one named, else the current one.
cuda::CUresult NodeContext(const Process& process, cuda::CUcontext handle, Context** context);

}  // namespace gridloom::session
