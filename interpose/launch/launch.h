// The one way to start a kernel: every launching entry point, stream capture and explicit graph nodes come through
// MakeKernelOp and Submit. tests/interpose/funnel_test.cpp enumerates the entry points.
#pragma once

#include "interpose/launch/make_kernel.h"

namespace gridloom::session {

/// MakeKernelOp, then Submit.
cuda::CUresult Launch(Stream& stream, const LaunchRequest& asked);

}  // namespace gridloom::session
