// Events.
#include "hooks/support.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/submit.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::hooks {

using session::EventPtr;

CUresult RefuseCaptured(const session::Event& event, CUresult status) {
  const std::lock_guard lock(session::CaptureMutex());
  const auto capture = event.capture.lock();
  if (capture == nullptr || capture->streams.front()->capture != capture) return CUDA_SUCCESS;
  capture->invalidated = true;
  return status;
}

namespace {

CUresult FindEvent(Process& process, CUevent handle, EventPtr* event) {
  *event = process.handles.events.Find(handle);
  return *event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Events of a live capture stand for graph nodes: the host can neither wait for them nor ask.
CUresult RefuseCapturedEvent(const session::Event& event) {
  return hooks::RefuseCaptured(event, CUDA_ERROR_CAPTURED_EVENT);
}

/// Between the two works, in simulated time if that is known.
double ElapsedNs(Process& process, const session::Event& start, const session::Event& end, const session::Task& from,
                 const session::Task& to) {
  if (const auto* timeline = process.observers().timeline()) {
    const auto began = timeline->EndNs(start.work()), ended = timeline->EndNs(end.work());
    if (began && ended) return *ended - *began;
  }
  return static_cast<double>(to.finished_ns() - from.finished_ns());
}

/// Whether both are over for a host that asks now.
bool BothOver(Process& process, const session::Event& start, const session::Event& end, bool executed) {
  auto* const timeline = process.observers().timeline();
  return timeline != nullptr ? timeline->AskForTimes(start.work(), end.work(), executed) : executed;
}

}  // namespace

CUresult cuEventCreate(Process& process, CUevent* event, unsigned flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  GL_CU_REQUIRE(event != nullptr && (flags & ~kKnown) == 0);
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    GL_CU_REQUIRE((flags & CU_EVENT_DISABLE_TIMING) != 0);
  }
  *event = process.handles.events.Add(std::make_shared<session::Event>(ThisContext(), flags));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(Process& process, CUevent handle) {
  return process.handles.events.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecordWithFlags(Process& process, CUevent handle, CUstream stream_handle, unsigned flags) {
  GL_CU_REQUIRE((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) == 0);
  EventPtr event;
  GL_CU_TRY(FindEvent(process, handle, &event));
  session::StreamPtr stream;
  GL_CU_TRY(FindOwnedStream(process, stream_handle, &stream));
  if (&event->context() != &stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  bool captured = false;
  GL_CU_TRY(session::CaptureRecord(*stream, event, flags, &captured));
  return captured ? CUDA_SUCCESS : session::Submit(*stream, session::EventRecordOp{event}, session::Waiting::kIfIdle);
}
CUresult cuEventRecord(Process& process, CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(process, event, stream, 0);
}

CUresult cuEventQuery(Process& process, CUevent handle) {
  EventPtr event;
  GL_CU_TRY(FindEvent(process, handle, &event));
  GL_CU_TRY(RefuseCapturedEvent(*event));
  event->context().CloseBatches();
  const auto marker = event->marker();
  if (event->context().failed()) return event->context().status();
  const auto executed = [&] { return marker == nullptr || marker->done(); };
  bool over = executed();
  if (auto* const timeline = process.observers().timeline(); timeline != nullptr && (over || timeline->timed())) {
    over = timeline->Ask(event->work(), over) && session::TaskPool::Get().WaitShortly(marker);
  }
  if (over) process.observers().memcheck().HostWaited(*event);
  return over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(Process& process, CUevent handle) {
  EventPtr event;
  GL_CU_TRY(FindEvent(process, handle, &event));
  GL_CU_TRY(RefuseCapturedEvent(*event));
  event->context().CloseBatches();
  if (const auto marker = event->marker()) session::TaskPool::Get().Wait(marker);
  if (auto* const timeline = process.observers().timeline()) timeline->Wait(event->work());
  process.observers().memcheck().HostWaited(*event);
  return event->context().status();
}

CUresult cuEventElapsedTime(Process& process, float* milliseconds, CUevent start_handle, CUevent end_handle) {
  GL_CU_REQUIRE(milliseconds != nullptr);
  EventPtr start, end;
  GL_CU_TRY(FindEvent(process, start_handle, &start));
  GL_CU_TRY(FindEvent(process, end_handle, &end));
  if (!start->timed() || !end->timed()) return CUDA_ERROR_INVALID_HANDLE;
  const auto from = start->marker(), to = end->marker();
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (start->context().failed()) return start->context().status();
  if (!BothOver(process, *start, *end, from->done() && to->done())) return CUDA_ERROR_NOT_READY;
  process.observers().memcheck().HostWaited(*start);
  process.observers().memcheck().HostWaited(*end);
  *milliseconds = static_cast<float>(ElapsedNs(process, *start, *end, *from, *to) * 1e-6);
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
