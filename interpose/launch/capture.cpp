#include "interpose/launch/capture.h"

#include <algorithm>
#include <atomic>

#include "interpose/base/thread_state.h"
#include "interpose/launch/recapture.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/device.h"
#include "interpose/objects/graph_memory.h"
#include "interpose/objects/process.h"

namespace gridloom::session {

using namespace cuda;

namespace {

// Number of captures under way: the fast path of every operation is one load.
std::atomic<int> g_active{0};

struct Captures {
  std::vector<std::shared_ptr<Capture>> all;
};
Captures& TheCaptures() {
  static Captures* const captures = new Captures;
  return *captures;
}

bool BlockingStreamCaptures(Context& context) {
  return std::ranges::any_of(TheCaptures().all, [&](const auto& capture) {
    return std::ranges::any_of(capture->streams, [&](const StreamPtr& stream) {
      return &stream->context() == &context && stream->blocking();
    });
  });
}

void Invalidate(Capture& capture) { capture.invalidated = true; }

/// Ends the capture for every stream that takes part.
void Finish(const std::shared_ptr<Capture>& capture) {
  for (const StreamPtr& stream : capture->streams) {
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->capture_tail.clear();
    }
  }
  std::erase(TheCaptures().all, capture);
  g_active.fetch_sub(1, std::memory_order_release);
}

void AddUnique(std::vector<GraphNode*>& nodes, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more) {
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
}

/// The node of the capture's graph that the next operation becomes. With the graph locked.
CUresult TakeNode(Capture& capture, const Operation& operation, const std::vector<GraphNode*>& dependencies,
                  GraphNode** node) {
  if (capture.recapture == nullptr) return capture.graph->AddNode(operation, dependencies, node);
  const CUresult status = capture.recapture->Next(*capture.graph, operation, dependencies, node);
  if (status != CUDA_SUCCESS) Invalidate(capture);
  return status;
}

}  // namespace

std::recursive_mutex& CaptureMutex() {
  static std::recursive_mutex* const mutex = new std::recursive_mutex;
  return *mutex;
}

CUresult CaptureOperation(Stream& stream, const Operation& operation, bool host_waits, bool* captured) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  if (stream.capture == nullptr) {
    if (stream.kind() != Stream::Kind::kLegacy || !BlockingStreamCaptures(stream.context())) return CUDA_SUCCESS;
    for (const auto& capture : TheCaptures().all) {
      if (&capture->origin->context() == &stream.context()) Invalidate(*capture);
    }
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  Capture& capture = *stream.capture;
  if (host_waits) Invalidate(capture);
  if (host_waits) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const auto graph_lock = capture.graph->Lock();
  GraphNode* node = nullptr;
  if (const auto status = TakeNode(capture, operation, stream.capture_tail, &node); status != CUDA_SUCCESS)
    return status;
  stream.capture_tail = {node};
  *captured = true;
  return CUDA_SUCCESS;
}

CUresult BeginCapture(const StreamPtr& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                      std::vector<GraphNode*> dependencies, std::shared_ptr<Recapture> recapture) {
  static std::uint64_t next_id = 1;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->kind() == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(CaptureMutex());
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = next_id++;
  capture->mode = mode;
  capture->thread = ThreadNumber();
  capture->origin = stream.get();
  capture->streams.push_back(stream);
  capture->graph = std::move(graph);
  capture->recapture = std::move(recapture);
  stream->capture = capture;
  stream->capture_tail = std::move(dependencies);
  TheCaptures().all.push_back(std::move(capture));
  g_active.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult EndCapture(const StreamPtr& stream, std::shared_ptr<Graph>* graph) {
  const std::lock_guard lock(CaptureMutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream.get()) {
    Invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != ThreadNumber()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult status = CUDA_SUCCESS;
  if (capture->invalidated) {
    status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else {
    // Work of streams that joined must lead back to the origin.
    const auto graph_lock = capture->graph->Lock();
    for (const StreamPtr& other : capture->streams) {
      for (const GraphNode* node : other->capture_tail) {
        if (other.get() != stream.get() && node->dependents.empty() &&
            std::ranges::find(stream->capture_tail, node) == stream->capture_tail.end()) {
          status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        }
      }
    }
  }
  if (status == CUDA_SUCCESS && capture->recapture != nullptr && !capture->recapture->complete(*capture->graph))
    status = CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
  Finish(capture);
  if (status == CUDA_SUCCESS) *graph = capture->graph;
  else if (capture->listed) capture->graph->handles().graphs.Remove(capture->graph->handle());
  return status;
}

CUresult CaptureRecord(Stream& stream, const EventPtr& event, unsigned flags, bool* captured) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  if (stream.capture == nullptr) {
    event->capture.reset();
    event->capture_nodes.clear();
    return CUDA_SUCCESS;  // Submit checks use of the legacy stream
  }
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) return CaptureOperation(stream, EventRecordOp{event}, false, captured);
  event->capture = stream.capture;
  event->capture_nodes = stream.capture_tail;
  *captured = true;
  return CUDA_SUCCESS;
}

CUresult CaptureWait(const StreamPtr& stream, const EventPtr& event, unsigned flags, bool* captured) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  const std::shared_ptr<Capture> from = event->capture.lock();
  const bool live = from != nullptr && std::ranges::find(TheCaptures().all, from) != TheCaptures().all.end();
  if (stream->capture != nullptr && (flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    return CaptureOperation(*stream, EventWaitOp{event}, false, captured);
  }
  if (!live) {
    if (stream->capture == nullptr) return CUDA_SUCCESS;
    Invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (from->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->kind() == Stream::Kind::kLegacy) {
    Invalidate(*from);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture == nullptr) {
    stream->capture = from;
    stream->capture_tail.clear();
    from->streams.push_back(stream);
  } else if (stream->capture != from) {
    Invalidate(*from);
    Invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  AddUnique(stream->capture_tail, event->capture_nodes);
  *captured = true;
  return CUDA_SUCCESS;
}

CUresult MakeAllocOp(Device& device, CUDA_MEM_ALLOC_NODE_PARAMS params, AllocOp* op) {
  if (params.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  op->params = params;
  op->params.access_descs = nullptr;
  op->params.access_desc_count = 0;
  op->memory = GraphMemory::Make(device, params.bytes);
  if (op->memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  op->params.pointer = op->memory->address();
  return CUDA_SUCCESS;
}

CUresult CaptureFree(Stream& stream, CUdeviceptr pointer, bool* captured) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  if (stream.capture == nullptr) return CUDA_SUCCESS;  // Submit checks use of the legacy stream
  const FreeOp op{pointer, nullptr, GraphMemory::Find(pointer)};
  return op.of_graph != nullptr ? CaptureOperation(stream, op, false, captured) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CaptureAllocation(Stream& stream, std::size_t bytes, CUdeviceptr* pointer) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool_props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool_props.location = {CU_MEM_LOCATION_TYPE_DEVICE, stream.context().device().ordinal()};
  params.bytes = bytes;
  AllocOp op;
  if (const auto status = MakeAllocOp(stream.context().device(), params, &op); status != CUDA_SUCCESS) return status;
  bool captured = false;
  const std::lock_guard lock(CaptureMutex());
  if (const auto status = CaptureOperation(stream, op, false, &captured); status != CUDA_SUCCESS) return status;
  // One that is captured anew keeps its memory.
  *pointer = captured ? std::get<AllocOp>(stream.capture_tail.front()->operation).params.pointer : op.params.pointer;
  return CUDA_SUCCESS;
}

CUresult RefuseWhileCapturing(Stream& stream) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  if (stream.capture != nullptr) {
    Invalidate(*stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return RefuseLegacyWhileCapturing(stream);
}

CUresult RefuseLegacyWhileCapturing(const Stream& stream) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  const bool refused = stream.kind() == Stream::Kind::kLegacy && BlockingStreamCaptures(stream.context());
  return refused ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult RefuseUnsafeCall() {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  if (t_state.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  bool refused = false;
  for (const auto& capture : TheCaptures().all) {
    const bool own = capture->thread == ThreadNumber();
    const bool global =
        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && t_state.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!global && !(own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)) continue;
    Invalidate(*capture);
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult RefuseWhileAnyCaptures(Context& context) {
  if (g_active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(CaptureMutex());
  bool refused = false;
  for (const auto& capture : TheCaptures().all) {
    if (&capture->origin->context() != &context) continue;
    Invalidate(*capture);
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

void AbandonCapture(Stream& stream) {
  const std::lock_guard lock(CaptureMutex());
  const auto capture = stream.capture;
  if (capture == nullptr) return;
  if (capture->origin == &stream) return Finish(capture);
  stream.capture = nullptr;  // the capture keeps the stream, and with it what has not led back to the origin
}

}  // namespace gridloom::session
