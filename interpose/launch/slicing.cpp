#include "interpose/launch/slicing.h"

#include <limits>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/slice_size.h"
#include "interpose/base/summary.h"
#include "interpose/objects/operation.h"
#include "interpose/objects/process.h"
#include "sim/exec/slices/slices.h"

namespace gridloom::session {

std::uint64_t SliceSizeOf(const KernelOp& op) {
  if (SliceSize() != 0 || !op.bound.sliced_already) return SliceSize();
  return std::numeric_limits<std::uint64_t>::max();
}

cuda::CUresult ChooseSlices(KernelOp& op, Process& process) {
  if (op.bound.sliced == nullptr) return cuda::CUDA_SUCCESS;
  std::string why_whole = op.bound.sliced->why_whole;
  // What the pass slices does not wait for other CTAs: a cooperative launch means nothing to it.
  if (op.bound.sliced_already) op.cooperative = false;
  if (op.bound.sliced_already && IsOn(TheSettings().timing)) why_whole = "its time is to be simulated";
  if (why_whole.empty() && op.cooperative) why_whole = "the launch is cooperative";
  if (why_whole.empty() && op.cluster.count() != 1) why_whole = "it is launched in clusters";
  op.plan.in_slices = why_whole.empty();
  if (op.plan.in_slices) return cuda::CUDA_SUCCESS;
  if (op.bound.sliced_already) {
    LogFormat(LogLevel::kError, "kernel %s cannot run: the file has it sliced, and %s", op.kernel->name().c_str(),
              why_whole.c_str());
    return cuda::CUDA_ERROR_NOT_SUPPORTED;
  }
  std::call_once(op.kernel->told_whole, [&] {
    LogFormat(LogLevel::kInfo, "kernel %s runs whole: %s", op.kernel->name().c_str(), why_whole.c_str());
    process.summary().NoteWhole(op.kernel->name(), why_whole);
  });
  return cuda::CUDA_SUCCESS;
}

}  // namespace gridloom::session
