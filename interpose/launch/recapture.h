// A stream that is captured to a graph that there is already: the graph's nodes, one after the other, get the
// parameters of what is captured.
#pragma once

#include <cstddef>
#include <vector>

#include "interpose/api/newer_types.h"
#include "interpose/objects/graph.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

/// What cuStreamBeginRecaptureToGraph was told, and how far the capture has got.
class Recapture {
 public:
  /// `callback`: the program's function, told of changed parameters; may be null.
  Recapture(cuda::CUgraphRecaptureCallback callback, void* data) : callback_(callback), data_(data) {}

  /// The next operation that is captured: gives the graph's next node its parameters. GRAPH_RECAPTURE_FAILURE when that
  /// node is of another kind, depends on others, or allocates or frees other memory, when there is none, or when the
  /// program's function refuses the change. With the graph locked.
  cuda::CUresult Next(Graph& graph, const Operation& operation, const std::vector<GraphNode*>& dependencies,
                      GraphNode** node);
  /// All of the graph's nodes were captured anew.
  bool complete(const Graph& graph) const { return next_ == graph.nodes().size(); }

 private:
  const cuda::CUgraphRecaptureCallback callback_;
  void* const data_;
  std::size_t next_ = 0;
};

/// Whether a node with either operation does the same. Both are of one kind.
bool HasSameParameters(const Operation& one, const Operation& other);

}  // namespace gridloom::session
