// Streams, batch memory operations, capture control.
#include <cstring>

#include "hooks/support.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/copy.h"
#include "interpose/launch/submit.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::hooks {

using session::Stream;
using session::StreamPtr;

CUresult CreateStream(Context& context, session::GreenPtr green, Stream::Kind kind, int priority, CUstream* handle) {
  const StreamPtr stream = context.CreateStream(kind, std::clamp(priority, -5, 0), green);
  for (const session::EventPtr& gate : context.Gates(green.get()))
    GL_CU_TRY(session::Submit(*stream, session::EventWaitOp{gate}));
  *handle = stream->handle();
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(Process& process, CUstream* stream, unsigned flags, int priority) {
  GL_CU_REQUIRE(stream != nullptr && (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) == 0);
  const auto kind = (flags & CU_STREAM_NON_BLOCKING) != 0 ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking;
  return CreateStream(ThisContext(), session::CurrentGreenPtr(), kind, priority, stream);
}
CUresult cuStreamCreate(Process& process, CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(process, stream, flags, 0);
}

CUresult cuStreamDestroy_v2(Process& process, CUstream handle) {
  StreamPtr stream;
  GL_CU_TRY(FindAnyStream(process, handle, &stream));
  if (stream->kind() == Stream::Kind::kLegacy || stream->kind() == Stream::Kind::kPerThread)
    return CUDA_ERROR_INVALID_HANDLE;
  session::AbandonCapture(*stream);
  // A program with a stream for each launch is slowed down to the pace of its kernels. It is not made to wait for ever:
  // it may be the one that the oldest of them waits for.
  session::TaskPool::Get().WaitShortly(stream->context().ForgetStream(stream));
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(Process& process, CUstream handle, int* priority) {
  StreamPtr stream;
  GL_CU_REQUIRE(priority != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  *priority = stream->priority();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetFlags(Process& process, CUstream handle, unsigned* flags) {
  StreamPtr stream;
  GL_CU_REQUIRE(flags != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  *flags = stream->blocking() ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetId(Process& process, CUstream handle, std::uint64_t* id) {
  StreamPtr stream;
  GL_CU_REQUIRE(id != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  *id = stream->id();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(Process& process, CUstream handle, CUcontext* context) {
  StreamPtr stream;
  GL_CU_REQUIRE(context != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  session::GreenContext* const green = session::GreenOf(*stream);
  *context = green != nullptr ? green->context_handle() : stream->context().handle();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx_v2(Process& process, CUstream handle, CUcontext* context, CUgreenCtx* green_context) {
  StreamPtr stream;
  GL_CU_REQUIRE(context != nullptr && green_context != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  session::GreenContext* const green = session::GreenOf(*stream);
  // A green context has no default streams of its threads.
  if (green != nullptr && stream->kind() == Stream::Kind::kPerThread) return CUDA_ERROR_INVALID_HANDLE;
  *context = stream->context().handle();
  *green_context = green != nullptr ? green->handle() : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetGreenCtx(Process& process, CUstream handle, CUgreenCtx* green_context) {
  StreamPtr stream;
  GL_CU_REQUIRE(green_context != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  session::GreenContext* const green = session::GreenOf(*stream);
  *green_context = green != nullptr ? green->handle() : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetDevice(Process& process, CUstream handle, CUdevice* device) {
  StreamPtr stream;
  GL_CU_REQUIRE(device != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  *device = stream->context().device().ordinal();
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(Process& process, CUstream handle) {
  StreamPtr stream;
  GL_CU_TRY(FindOwnedStream(process, handle, &stream));
  GL_CU_TRY(session::RefuseWhileCapturing(*stream));
  stream->context().Wait(*stream);
  return stream->context().status();
}
CUresult cuStreamQuery(Process& process, CUstream handle) {
  StreamPtr stream;
  GL_CU_TRY(FindOwnedStream(process, handle, &stream));
  GL_CU_TRY(session::RefuseWhileCapturing(*stream));
  bool idle = stream->context().Idle(*stream);
  if (auto* const timeline = process.observers().timeline(); timeline != nullptr && (idle || timeline->timed())) {
    idle = timeline->Ask(*stream, idle) && stream->context().IdleShortly(*stream);
  }
  if (stream->context().failed()) return stream->context().status();
  if (idle) process.observers().memcheck().HostWaited(*stream);
  return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(Process& process, CUstream handle, CUevent event_handle, unsigned flags) {
  StreamPtr stream;
  GL_CU_REQUIRE((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) == 0);
  GL_CU_TRY(FindOwnedStream(process, handle, &stream));
  const auto event = process.handles.events.Find(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  bool captured = false;
  GL_CU_TRY(session::CaptureWait(stream, event, flags, &captured));
  return captured ? CUDA_SUCCESS : session::Submit(*stream, session::EventWaitOp{event});
}

CUresult cuStreamAddCallback(Process& process, CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  StreamPtr stream;
  GL_CU_REQUIRE(callback != nullptr && flags == 0);
  GL_CU_TRY(FindStream(handle, &stream));
  GL_CU_TRY(session::RefuseWhileCapturing(*stream));
  session::HostOp op;
  op.callback = callback;
  op.stream = handle;
  op.data = data;
  return session::Submit(*stream, op);
}

// ---- attributes

CUresult cuStreamGetAttribute(Process& process, CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  StreamPtr stream;
  GL_CU_REQUIRE(value != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  std::memset(value, 0, sizeof(*value));
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->access_policy_window = stream->access_policy_window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: value->sync_policy = stream->sync_policy; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value->priority = stream->priority(); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuStreamSetAttribute(Process& process, CUstream handle, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
  StreamPtr stream;
  GL_CU_REQUIRE(value != nullptr);
  GL_CU_TRY(FindStream(handle, &stream));
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      stream->access_policy_window = value->access_policy_window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: stream->sync_policy = value->sync_policy; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: stream->set_priority(std::clamp(value->priority, -5, 0)); return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return CUDA_SUCCESS;  // one domain
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuStreamCopyAttributes(Process& process, CUstream dst, CUstream src) {
  StreamPtr to, from;
  GL_CU_TRY(FindStream(dst, &to));
  GL_CU_TRY(FindStream(src, &from));
  to->access_policy_window = from->access_policy_window;
  to->sync_policy = from->sync_policy.load();
  to->set_priority(from->priority());
  return CUDA_SUCCESS;
}

// ---- batch memory operations

CUresult cuStreamBatchMemOp_v2(Process& process, CUstream handle, unsigned count, CUstreamBatchMemOpParams* items,
                               unsigned flags) {
  StreamPtr stream;
  GL_CU_REQUIRE(flags == 0);
  GL_CU_TRY(FindStream(handle, &stream));
  GL_CU_TRY(session::CheckBatch(stream->context(), items, count));
  return session::Submit(*stream, session::BatchOp{{items, items + count}, flags});
}

namespace {

CUresult OneMemOp(Process& process, CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address,
                  std::uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams item{};
  item.operation = operation;
  item.value.address = address;
  item.value.value = value;
  item.value.flags = flags;
  return cuStreamBatchMemOp_v2(process, stream, 1, &item, 0);
}

}  // namespace

CUresult cuStreamWaitValue32_v2(Process& process, CUstream stream, CUdeviceptr address, std::uint32_t value,
                                unsigned flags) {
  return OneMemOp(process, stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}
CUresult cuStreamWaitValue64_v2(Process& process, CUstream stream, CUdeviceptr address, std::uint64_t value,
                                unsigned flags) {
  return OneMemOp(process, stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
CUresult cuStreamWriteValue32_v2(Process& process, CUstream stream, CUdeviceptr address, std::uint32_t value,
                                 unsigned flags) {
  return OneMemOp(process, stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}
CUresult cuStreamWriteValue64_v2(Process& process, CUstream stream, CUdeviceptr address, std::uint64_t value,
                                 unsigned flags) {
  return OneMemOp(process, stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

}  // namespace gridloom::hooks
