#include "interpose/launch/recapture.h"

#include <algorithm>
#include <cstring>

#include "interpose/launch/node_params.h"
#include "interpose/objects/green_context.h"

namespace gridloom::session {

using namespace cuda;

namespace {

bool Same(const exec::Dim3& a, const exec::Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

/// Byte by byte, without what lies between parameters.
bool SameArguments(const KernelOp& a, const KernelOp& b) {
  const exec::KernelInfo& info = *a.bound.info;
  for (std::size_t i = 0; i < a.bound.own_params(); ++i) {
    const std::uint32_t offset = info.params.offsets[i];
    if (std::memcmp(a.params.data() + offset, b.params.data() + offset, info.param_bytes[i]) != 0) return false;
  }
  return true;
}

bool Same(const KernelOp& a, const KernelOp& b) {
  return a.kernel == b.kernel && a.bound.info == b.bound.info && Same(a.grid, b.grid) && Same(a.block, b.block) &&
         Same(a.cluster, b.cluster) && a.dynamic_shared_bytes == b.dynamic_shared_bytes &&
         a.cooperative == b.cooperative && a.priority == b.priority && a.green == b.green && SameArguments(a, b);
}
bool Same(const CopyOp& a, const CopyOp& b) {
  const bool one_row = a.height <= 1 && a.depth <= 1;  // then distances between rows are nobody's
  return a.src == b.src && a.dst == b.dst && a.width == b.width && a.height == b.height && a.depth == b.depth &&
         (one_row || (a.src_pitch == b.src_pitch && a.dst_pitch == b.dst_pitch && a.src_slice == b.src_slice &&
                      a.dst_slice == b.dst_slice));
}
bool Same(const FillOp& a, const FillOp& b) {
  const CUDA_MEMSET_NODE_PARAMS &p = a.params, &q = b.params;
  return p.dst == q.dst && p.value == q.value && p.element_size == q.element_size && p.width == q.width &&
         p.height == q.height && (p.height <= 1 || p.pitch == q.pitch);
}
bool Same(const HostOp& a, const HostOp& b) {
  return a.function == b.function && a.callback == b.callback && a.stream == b.stream && a.data == b.data;
}
bool Same(const EventRecordOp& a, const EventRecordOp& b) { return a.event == b.event; }
bool Same(const EventWaitOp& a, const EventWaitOp& b) { return a.event == b.event; }
bool Same(const AllocOp& a, const AllocOp& b) {
  const CUmemPoolProps &p = a.params.pool_props, &q = b.params.pool_props;
  return a.params.bytes == b.params.bytes && p.alloc_type == q.alloc_type && p.location.type == q.location.type &&
         p.location.id == q.location.id;
}
bool Same(const FreeOp& a, const FreeOp& b) { return a.address == b.address && a.of_graph == b.of_graph; }
bool Same(const CUstreamBatchMemOpParams& a, const CUstreamBatchMemOpParams& b) {
  if (a.operation != b.operation) return false;
  if (a.operation == CU_STREAM_MEM_OP_BARRIER) return a.value.reserved == b.value.reserved;  // its flags
  return a.value.address == b.value.address && a.value.value == b.value.value && a.value.flags == b.value.flags;
}
bool Same(const BatchOp& a, const BatchOp& b) {
  return a.flags == b.flags &&
         std::ranges::equal(a.items, b.items, [](const auto& p, const auto& q) { return Same(p, q); });
}
bool Same(const ChildOp& a, const ChildOp& b) { return a.graph == b.graph; }
bool Same(const ConditionalOp& a, const ConditionalOp& b) { return a.condition == b.condition && a.type == b.type; }
bool Same(const EmptyOp&, const EmptyOp&) { return true; }

bool DependsOn(const GraphNode& node, const std::vector<GraphNode*>& dependencies) {
  return std::ranges::is_permutation(node.dependencies, dependencies);
}

}  // namespace

bool HasSameParameters(const Operation& one, const Operation& other) {
  return std::visit([&]<typename Op>(const Op& op) { return Same(op, std::get<Op>(other)); }, one);
}

CUresult Recapture::Next(Graph& graph, const Operation& operation, const std::vector<GraphNode*>& dependencies,
                         GraphNode** node) {
  if (complete(graph)) return CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
  GraphNode& next = *graph.nodes()[next_++];
  *node = &next;
  if (next.operation.index() != operation.index() || !DependsOn(next, dependencies))
    return CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
  if (HasSameParameters(next.operation, operation)) return CUDA_SUCCESS;
  if (IsMemory(operation)) return CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
  if (callback_ != nullptr) {
    GraphNode anew(graph, operation);
    CUgraphNodeParams before, after;
    Describe(next, &before);
    Describe(anew, &after);
    // An executable graph's nodes can be given whatever parameters a node of the kind has.
    if (callback_(data_, next.handle(), &before, &after, CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE) != CUDA_SUCCESS)
      return CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
  }
  next.operation = operation;
  return CUDA_SUCCESS;
}

}  // namespace gridloom::session
