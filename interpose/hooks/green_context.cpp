// Green contexts: creation, streams, events.
#include "interpose/objects/green_context.h"

#include "hooks/support.h"
#include "interpose/base/log.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/submit.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/observers.h"

namespace gridloom::hooks {

using session::EventPtr;
using session::GreenContext;
using session::GreenPtr;
using session::Stream;
using session::StreamPtr;

CUresult FindGreen(Process& process, CUgreenCtx handle, GreenPtr* green) {
  *green = process.handles.greens.Find(handle);
  if (*green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return (*green)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(Process& process, CUgreenCtx* context, CUdevResourceDesc desc, CUdevice ordinal,
                          unsigned flags) {
  Device* device = nullptr;
  GL_CU_REQUIRE(context != nullptr && (flags & ~CU_GREEN_CTX_DEFAULT_STREAM) == 0);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  const auto description = process.handles.resource_descriptions.Find(desc);
  GL_CU_REQUIRE(description != nullptr && description->device == ordinal);
  if (process.observers().timeline() != nullptr) {
    session::Log(session::LogLevel::kWarn,
                 "green contexts are refused where time is simulated or traced: all kernels have all SMs there");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUcontext primary = nullptr;
  GL_CU_TRY(cuDevicePrimaryCtxRetain(process, &primary, ordinal));
  *context = process.handles.greens.Add(std::make_shared<GreenContext>(device->primary(), *description));
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(Process& process, CUgreenCtx handle) {
  GreenPtr green;
  GL_CU_TRY(FindGreen(process, handle, &green));
  for (const StreamPtr& stream : green->primary().Streams(green.get())) session::AbandonCapture(*stream);
  if (!green->Destroy()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  green->primary().SetGate(green.get(), nullptr);
  process.ShelveGreen(*green);
  return cuDevicePrimaryCtxRelease(process, green->primary().device().ordinal());
}

CUresult cuCtxFromGreenCtx(Process& process, CUcontext* context, CUgreenCtx handle) {
  GreenPtr green;
  GL_CU_REQUIRE(context != nullptr);
  GL_CU_TRY(FindGreen(process, handle, &green));
  *context = green->context_handle();
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(Process& process, CUgreenCtx handle, std::uint64_t* id) {
  GL_CU_REQUIRE(id != nullptr);
  GreenPtr green = session::CurrentGreenPtr();
  if (handle != nullptr || green == nullptr) GL_CU_TRY(FindGreen(process, handle, &green));
  if (green->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = green->id();
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(Process& process, CUstream* stream, CUgreenCtx handle, unsigned flags, int priority) {
  GreenPtr green;
  GL_CU_REQUIRE(stream != nullptr && flags == CU_STREAM_NON_BLOCKING);
  GL_CU_TRY(FindGreen(process, handle, &green));
  GL_CU_TRY(green->primary().status());
  return CreateStream(green->primary(), green, Stream::Kind::kNonBlocking, priority, stream);
}

// ---- events of all that a context does

namespace {

/// A stream of nobody's, for operations that belong to no stream.
class OwnStream {
 public:
  explicit OwnStream(Context& context)
      : context_(context), stream_(context.CreateStream(Stream::Kind::kNonBlocking, 0)) {}
  ~OwnStream() { session::TaskPool::Get().WaitShortly(context_.ForgetStream(stream_)); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  CUresult WaitFor(const EventPtr& event) { return session::Submit(*stream_, session::EventWaitOp{event}); }
  CUresult Record(const EventPtr& event) { return session::Submit(*stream_, session::EventRecordOp{event}); }

 private:
  Context& context_;
  const StreamPtr stream_;
};

EventPtr NewEvent(Context& context) { return std::make_shared<session::Event>(context, CU_EVENT_DISABLE_TIMING); }

/// The streams of `green` or, if that is null, of the context. None of them may be captured, nor the event.
CUresult StreamsFor(Process& process, Context& context, const GreenContext* green, CUevent handle, EventPtr* event,
                    std::vector<StreamPtr>* streams) {
  *event = process.handles.events.Find(handle);
  if (*event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  GL_CU_TRY(RefuseCaptured(**event, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  *streams = session::StreamsOf(context, green);
  CUresult status = CUDA_SUCCESS;
  for (const StreamPtr& stream : *streams) {
    if (const CUresult refused = session::RefuseWhileCapturing(*stream); refused != CUDA_SUCCESS) status = refused;
  }
  return status;
}

CUresult RecordEvent(Process& process, Context& context, const GreenContext* green, CUevent handle) {
  EventPtr event;
  std::vector<StreamPtr> streams;
  GL_CU_TRY(StreamsFor(process, context, green, handle, &event, &streams));
  if (&event->context() != &context) return CUDA_ERROR_INVALID_HANDLE;
  OwnStream behind(context);
  for (const StreamPtr& stream : streams) {
    const EventPtr part = NewEvent(context);
    GL_CU_TRY(session::Submit(*stream, session::EventRecordOp{part}));
    GL_CU_TRY(behind.WaitFor(part));
  }
  return behind.Record(event);
}

CUresult WaitEvent(Process& process, Context& context, const GreenContext* green, CUevent handle) {
  EventPtr event;
  std::vector<StreamPtr> streams;
  GL_CU_TRY(StreamsFor(process, context, green, handle, &event, &streams));
  for (const StreamPtr& stream : streams) GL_CU_TRY(session::Submit(*stream, session::EventWaitOp{event}));
  // A stream that is made later waits for the event, too, in the state that it has now.
  OwnStream behind(context);
  for (const EventPtr& gate : context.Gates(green)) GL_CU_TRY(behind.WaitFor(gate));
  GL_CU_TRY(behind.WaitFor(event));
  const EventPtr gate = NewEvent(context);
  GL_CU_TRY(behind.Record(gate));
  context.SetGate(green, gate);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGreenCtxRecordEvent(Process& process, CUgreenCtx handle, CUevent event) {
  GreenPtr green;
  GL_CU_TRY(FindGreen(process, handle, &green));
  return RecordEvent(process, green->primary(), green.get(), event);
}

CUresult cuGreenCtxWaitEvent(Process& process, CUgreenCtx handle, CUevent event) {
  GreenPtr green;
  GL_CU_TRY(FindGreen(process, handle, &green));
  return WaitEvent(process, green->primary(), green.get(), event);
}

CUresult cuCtxRecordEvent(Process& process, CUcontext handle, CUevent event) {
  Context* context = nullptr;
  GreenPtr green;
  GL_CU_TRY(FindContext(process, handle, &context, &green));
  return RecordEvent(process, *context, green.get(), event);
}

CUresult cuCtxWaitEvent(Process& process, CUcontext handle, CUevent event) {
  Context* context = nullptr;
  GreenPtr green;
  GL_CU_TRY(FindContext(process, handle, &context, &green));
  return WaitEvent(process, *context, green.get(), event);
}

}  // namespace gridloom::hooks
