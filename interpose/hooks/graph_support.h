// Look-up of graphs and nodes for the graph hooks.
#pragma once

#include "hooks/support.h"
#include "interpose/launch/node_params.h"
#include "interpose/objects/graph.h"

namespace gridloom::hooks {

using session::Graph;
using session::GraphExec;
using session::GraphNode;
using session::IsMemory;

inline CUresult FindGraph(Process& process, CUgraph handle, std::shared_ptr<Graph>* graph) {
  *graph = process.handles.graphs.Find(handle);
  return *graph != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
inline CUresult FindNode(Process& process, CUgraphNode handle, std::shared_ptr<GraphNode>* node) {
  *node = process.handles.graph_nodes.Find(handle);
  return *node != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
inline CUresult FindExec(Process& process, CUgraphExec handle, std::shared_ptr<GraphExec>* exec) {
  *exec = process.handles.graph_execs.Find(handle);
  return *exec != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
/// A node that holds an operation of one kind.
template <typename Op>
CUresult FindNode(Process& process, CUgraphNode handle, std::shared_ptr<GraphNode>* node, Op** op) {
  GL_CU_TRY(FindNode(process, handle, node));
  *op = std::get_if<Op>(&(*node)->operation);
  return *op != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
/// Writes up to *count handles and the number there are; a null array only asks for the number. Room left over is
/// nulled.
template <typename Range, typename Handle>
CUresult StoreHandles(const Range& items, Handle* handles, std::size_t* count) {
  GL_CU_REQUIRE(count != nullptr);
  if (handles == nullptr) {
    *count = items.size();
    return CUDA_SUCCESS;
  }
  std::size_t written = 0;
  for (const auto& item : items) {
    if (written == *count) break;
    handles[written++] = item->handle();
  }
  for (std::size_t i = written; i < *count; ++i) handles[i] = nullptr;
  *count = written;
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
