#include "interpose/session/slicing.h"

#include <charconv>
#include <limits>

#include "interpose/session/log.h"
#include "interpose/session/operation.h"
#include "interpose/session/settings.h"
#include "interpose/session/summary.h"
#include "sim/exec/slices/slices.h"

namespace gridloom::session {

Result<std::uint64_t> ParseSliceSize(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::uint64_t{0};
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), size);
  if (error != std::errc() || end != text->data() + text->size())
    return Error{"GRIDLOOM_SLICE=" + *text + " is not a number of CTAs"};
  return size;
}

std::uint64_t SliceSize() {
  static const std::uint64_t size = [] {
    const auto parsed = ParseSliceSize(TheSettings().slice);
    return parsed.ok() ? *parsed : 0;
  }();
  return size;
}

std::uint64_t SliceSizeOf(const KernelOp& op) {
  if (SliceSize() != 0 || !op.bound.sliced_already) return SliceSize();
  return std::numeric_limits<std::uint64_t>::max();
}

passes::RewriteCache& TheRewrites() {
  constexpr std::size_t kKeptModules = 32;  // also when no program uses them any more
  static auto* const cache = new passes::RewriteCache(kKeptModules);
  return *cache;
}

cuda::CUresult ChooseSlices(KernelOp& op) {
  if (op.bound.sliced == nullptr) return cuda::CUDA_SUCCESS;
  std::string why_whole = op.bound.sliced->why_whole;
  // What the pass slices does not wait for other CTAs: a cooperative launch means nothing to it.
  if (op.bound.sliced_already) op.cooperative = false;
  if (op.bound.sliced_already && IsOn(TheSettings().timing)) why_whole = "its time is to be simulated";
  if (why_whole.empty() && op.cooperative) why_whole = "the launch is cooperative";
  if (why_whole.empty() && op.cluster.count() != 1) why_whole = "it is launched in clusters";
  op.in_slices = why_whole.empty();
  if (op.in_slices) return cuda::CUDA_SUCCESS;
  if (op.bound.sliced_already) {
    LogFormat(LogLevel::kError, "kernel %s cannot run: the file has it sliced, and %s", op.kernel->name().c_str(),
              why_whole.c_str());
    return cuda::CUDA_ERROR_NOT_SUPPORTED;
  }
  std::call_once(op.kernel->told_whole, [&] {
    LogFormat(LogLevel::kInfo, "kernel %s runs whole: %s", op.kernel->name().c_str(), why_whole.c_str());
    Summary::Get().NoteWhole(op.kernel->name(), why_whole);
  });
  return cuda::CUDA_SUCCESS;
}

}  // namespace gridloom::session
