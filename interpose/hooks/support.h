// What the hooks share.
#pragma once

#include <memory>

#include "hooks.h"
#include "interpose/objects/context.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/green_context.h"
#include "interpose/objects/process.h"

/// Returns the status of a call from the hook unless it succeeded.
#define GL_CU_TRY(call)                                                                                   \
  do {                                                                                                    \
    if (const ::gridloom::cuda::CUresult gl_status = (call); gl_status != ::gridloom::cuda::CUDA_SUCCESS) \
      return gl_status;                                                                                   \
  } while (false)

/// Returns INVALID_VALUE from the hook when the condition does not hold.
#define GL_CU_REQUIRE(condition) \
  if (!(condition)) return ::gridloom::cuda::CUDA_ERROR_INVALID_VALUE

namespace gridloom::hooks {

using session::Context;
using session::Device;
using session::Process;
using session::ThisContext;

/// The stream a handle means in the current context.
inline CUresult FindStream(CUstream handle, session::StreamPtr* stream) {
  *stream = ThisContext().FindStream(handle);
  if (*stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return (*stream)->detached() ? CUDA_ERROR_STREAM_DETACHED : CUDA_SUCCESS;
}
/// The same for calls that need no current context: a stream that was created is of its own context, whichever is
/// current. One whose green context is gone, too.
inline CUresult FindAnyStream(Process& process, CUstream handle, session::StreamPtr* stream) {
  if (Context* const current = session::CurrentContext()) {
    GL_CU_TRY(current->status());
    *stream = current->FindStream(handle);
    if (*stream != nullptr) return CUDA_SUCCESS;
  } else if (Context::IsDefaultStream(handle)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *stream = process.FindStream(handle);
  return *stream != nullptr ? (*stream)->context().status() : CUDA_ERROR_INVALID_HANDLE;
}
/// The same, but for those whose green context is gone.
inline CUresult FindOwnedStream(Process& process, CUstream handle, session::StreamPtr* stream) {
  GL_CU_TRY(FindAnyStream(process, handle, stream));
  return (*stream)->detached() ? CUDA_ERROR_STREAM_DETACHED : CUDA_SUCCESS;
}
inline CUresult FindDevice(Process& process, CUdevice ordinal, Device** device) {
  *device = process.FindDevice(ordinal);
  return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
/// A context handle that may be null for the current one.
inline CUresult FindContext(Process& process, CUcontext handle, Context** context) {
  *context = handle == nullptr ? session::CurrentContext() : process.FindContext(handle);
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}
/// The same with the green context that was converted to it, or null.
inline CUresult FindContext(Process& process, CUcontext handle, Context** context, session::GreenPtr* green) {
  GL_CU_TRY(FindContext(process, handle, context));
  *green = handle == nullptr ? session::CurrentGreenPtr() : process.FindGreen(handle);
  return *green != nullptr && (*green)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}
/// A green context that has not been destroyed.
CUresult FindGreen(Process& process, CUgreenCtx handle, session::GreenPtr* green);
/// `status`, and the capture becomes invalid, for an event of a capture that is going on.
CUresult RefuseCaptured(const session::Event& event, CUresult status);
/// A new stream, of `green` unless that is null. It waits for what the context's streams were told to wait for.
CUresult CreateStream(Context& context, session::GreenPtr green, session::Stream::Kind kind, int priority,
                      CUstream* stream);
/// Stores through an optional result pointer.
template <typename T, typename V>
void Store(T* pointer, V value) {
  if (pointer != nullptr) *pointer = static_cast<T>(value);
}

}  // namespace gridloom::hooks
