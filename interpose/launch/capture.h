// Stream capture: operations of a capturing stream become nodes of a graph. Rules: CUDA C++ Programming Guide,
// "Creating a Graph Using Stream Capture".
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/graph.h"
#include "interpose/objects/operation.h"
#include "interpose/objects/stream.h"

namespace gridloom::session {

class Recapture;

/// One capture sequence: the stream it began in and those that joined it through events.
class Capture {
 public:
  std::uint64_t id = 0;
  cuda::CUstreamCaptureMode mode = cuda::CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;  ///< that began it
  Stream* origin = nullptr;
  std::vector<StreamPtr> streams;  ///< all that take part, the origin first
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Recapture> recapture;  ///< the graph's nodes get what is captured; null: nodes are added to it
  bool invalidated = false;
  bool listed = false;  ///< the program has been given the graph's handle before the capture's end
};

/// Guards every Stream::capture, Event::capture and Capture.
std::recursive_mutex& CaptureMutex();

/// When the stream is being captured, adds the operation to its graph and sets `captured`. Refuses what cannot be
/// captured: operations the host waits for, and use of the legacy stream while a blocking stream is capturing.
cuda::CUresult CaptureOperation(Stream& stream, const Operation& operation, bool host_waits, bool* captured);

cuda::CUresult BeginCapture(const StreamPtr& stream, cuda::CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                            std::vector<GraphNode*> dependencies, std::shared_ptr<Recapture> recapture = nullptr);
cuda::CUresult EndCapture(const StreamPtr& stream, std::shared_ptr<Graph>* graph);
/// cuEventRecord and cuStreamWaitEvent when a capture is involved; `captured` as above.
cuda::CUresult CaptureRecord(Stream& stream, const EventPtr& event, unsigned flags, bool* captured);
cuda::CUresult CaptureWait(const StreamPtr& stream, const EventPtr& event, unsigned flags, bool* captured);
/// cuMemFreeAsync in a capturing stream: a free node. INVALID_VALUE, and the capture goes on, for memory that no
/// allocation node of this or another graph allocates.
cuda::CUresult CaptureFree(Stream& stream, cuda::CUdeviceptr pointer, bool* captured);
/// cuMemAllocAsync in a capturing stream: an allocation node.
cuda::CUresult CaptureAllocation(Stream& stream, std::size_t bytes, cuda::CUdeviceptr* pointer);
/// The operation of an allocation node, its memory already chosen.
cuda::CUresult MakeAllocOp(Device& device, cuda::CUDA_MEM_ALLOC_NODE_PARAMS params, AllocOp* op);
/// STREAM_CAPTURE_UNSUPPORTED, and the capture becomes invalid, when the stream is capturing.
cuda::CUresult RefuseWhileCapturing(Stream& stream);
/// STREAM_CAPTURE_IMPLICIT for the legacy stream while a blocking stream captures, which goes on.
cuda::CUresult RefuseLegacyWhileCapturing(const Stream& stream);
/// The same for calls that may not be made while certain captures run (cuMemAlloc, synchronous copies, ...):
/// "potentially unsafe API calls" of cuThreadExchangeStreamCaptureMode.
cuda::CUresult RefuseUnsafeCall();
/// A stream of the context is capturing.
cuda::CUresult RefuseWhileAnyCaptures(Context& context);
/// The stream goes: a capture that began in it ends, one that it joined goes on.
void AbandonCapture(Stream& stream);

}  // namespace gridloom::session
