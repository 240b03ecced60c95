// The contexts of the calling thread: which is current, and which were before.
#pragma once

#include "interpose/api/cuda_types.h"

namespace gridloom::session {

class Context;
class GreenContext;

/// Top of the calling thread's stack; null when empty.
Context* CurrentContext();
/// Top of the stack, which CheckNeed found to be usable.
Context& ThisContext();
/// `green`: the green context that was converted to it; null: none.
void PushContext(Context* context, GreenContext* green = nullptr);
/// Null when the stack was empty.
Context* PopContext();
void SetContext(Context* context, GreenContext* green = nullptr);
/// What CurrentContext() was made current as; null when there is none.
cuda::CUcontext CurrentHandle();
/// The green context that the current one was converted from; null: none.
GreenContext* CurrentGreen();

}  // namespace gridloom::session
