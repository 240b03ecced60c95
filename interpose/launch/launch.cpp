#include "interpose/launch/launch.h"

#include "interpose/launch/submit.h"
#include "interpose/objects/process.h"

namespace gridloom::session {

using namespace cuda;

CUresult Launch(Stream& stream, const LaunchRequest& asked) {
  KernelOp op;
  LaunchRequest request = asked;
  request.may_be_task = stream.capture == nullptr;
  if (const auto status = MakeKernelOp(stream.context(), request, &op); status != CUDA_SUCCESS) return status;
  const bool blocking = stream.context().process().launch_blocking() && stream.capture == nullptr;
  return Submit(stream, std::move(op), blocking ? Waiting::kYes : Waiting::kNo);
}

}  // namespace gridloom::session
