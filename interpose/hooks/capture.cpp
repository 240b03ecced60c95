// Control of stream capture.
#include "interpose/launch/capture.h"

#include <algorithm>

#include "hooks/support.h"
#include "interpose/launch/recapture.h"

namespace gridloom::hooks {

using session::GraphNode;
using session::StreamPtr;

namespace {

// cuStreamGetCaptureInfo hands out pointers that stay valid until the thread's next call.
struct CaptureView {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};

CUresult GetInfo(Process& process, CUstream handle, CUstreamCaptureStatus* status, std::uint64_t* id, CUgraph* graph,
                 const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  StreamPtr stream;
  GL_CU_REQUIRE(status != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  const std::lock_guard lock(session::CaptureMutex());
  GL_CU_TRY(session::RefuseLegacyWhileCapturing(*stream));
  const auto& capture = stream->capture;
  *status = capture == nullptr
                ? CU_STREAM_CAPTURE_STATUS_NONE
                : (capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  Store(id, capture->id);
  if (graph != nullptr) {
    // The program may add nodes and conditions to the graph while it is being captured.
    if (process.handles.graphs.Find(capture->graph->handle()) == nullptr) {
      process.handles.graphs.Add(capture->graph);
      capture->listed = true;
    }
    *graph = capture->graph->handle();
  }
  if (nodes == nullptr && edges == nullptr && count == nullptr) return CUDA_SUCCESS;
  static thread_local CaptureView* view = nullptr;  // kept: see ThreadState about thread-locals during exit
  if (view == nullptr) view = new CaptureView;
  view->nodes.clear();
  for (GraphNode* node : stream->capture_tail) view->nodes.push_back(node->handle());
  view->edges.assign(view->nodes.size(), CUgraphEdgeData{});
  if (nodes != nullptr) *nodes = view->nodes.data();
  if (edges != nullptr) *edges = view->edges.data();
  Store(count, view->nodes.size());
  return CUDA_SUCCESS;
}

CUresult FindNodes(Process& process, const session::Graph& graph, const CUgraphNode* handles, std::size_t count,
                   std::vector<GraphNode*>* nodes) {
  GL_CU_REQUIRE(handles != nullptr || count == 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto node = process.handles.graph_nodes.Find(handles[i]);
    GL_CU_REQUIRE(node != nullptr && &node->graph == &graph);
    nodes->push_back(node.get());
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamBeginCapture_v2(Process& process, CUstream handle, CUstreamCaptureMode mode) {
  StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  return session::BeginCapture(stream, mode, std::make_shared<session::Graph>(process.handles), {});
}

CUresult cuStreamBeginCapture(Process& process, CUstream stream) {
  return cuStreamBeginCapture_v2(process, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(Process& process, CUstream handle, CUgraph graph_handle,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*, std::size_t count,
                                     CUstreamCaptureMode mode) {
  StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  const auto graph = process.handles.graphs.Find(graph_handle);
  GL_CU_REQUIRE(graph != nullptr);
  std::vector<GraphNode*> nodes;
  GL_CU_TRY(FindNodes(process, *graph, dependencies, count, &nodes));
  return session::BeginCapture(stream, mode, graph, std::move(nodes));
}

CUresult cuStreamBeginRecaptureToGraph(Process& process, CUstream handle, CUstreamCaptureMode mode,
                                       CUgraph graph_handle, CUgraphRecaptureCallback callback, void* user_data) {
  StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  const auto graph = process.handles.graphs.Find(graph_handle);
  GL_CU_REQUIRE(graph != nullptr);
  GL_CU_TRY(session::BeginCapture(stream, mode, graph, {}, std::make_shared<session::Recapture>(callback, user_data)));
  session::UserObjects objects;
  {
    const auto lock = graph->Lock();
    objects.swap(graph->user_objects);
  }
  session::ReleaseAll(process.handles, objects);
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(Process& process, CUstream handle, CUgraph* graph_handle) {
  StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  Store(graph_handle, nullptr);  // not wanted when the program has the graph already (cuStreamBeginCaptureToGraph)
  std::shared_ptr<session::Graph> graph;
  GL_CU_TRY(session::EndCapture(stream, &graph));
  const CUgraph made = process.handles.graphs.Add(std::move(graph));
  Store(graph_handle, made);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(Process& process, CUstream handle, CUstreamCaptureStatus* status) {
  return GetInfo(process, handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo(Process& process, CUstream handle, CUstreamCaptureStatus* status, std::uint64_t* id) {
  return GetInfo(process, handle, status, id, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo_v2(Process& process, CUstream handle, CUstreamCaptureStatus* status, std::uint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, std::size_t* count) {
  return GetInfo(process, handle, status, id, graph, nodes, nullptr, count);
}
CUresult cuStreamGetCaptureInfo_v3(Process& process, CUstream handle, CUstreamCaptureStatus* status, std::uint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                                   std::size_t* count) {
  return GetInfo(process, handle, status, id, graph, nodes, edges, count);
}

CUresult cuStreamUpdateCaptureDependencies(Process& process, CUstream handle, CUgraphNode* dependencies,
                                           std::size_t count, unsigned flags) {
  StreamPtr stream;
  GL_CU_REQUIRE(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  GL_CU_TRY(FindStream(handle, &stream));
  const std::lock_guard lock(session::CaptureMutex());
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  std::vector<GraphNode*> nodes;
  GL_CU_TRY(FindNodes(process, *stream->capture->graph, dependencies, count, &nodes));
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->capture_tail.clear();
  for (GraphNode* node : nodes) {
    if (std::ranges::find(stream->capture_tail, node) == stream->capture_tail.end())
      stream->capture_tail.push_back(node);
  }
  return CUDA_SUCCESS;
}
CUresult cuStreamUpdateCaptureDependencies_v2(Process& process, CUstream handle, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, std::size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies(process, handle, dependencies, count, flags);
}

}  // namespace gridloom::hooks
