// Execution of a plan: its steps as kernels in the plan's stream.
#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "api_exports.h"
#include "interpose/base/log.h"
#include "interpose/fft/host_transform.h"
#include "interpose/fft/plan.h"
#include "interpose/hooks/own_kernels.h"

// The kernels' PTX, as text that ends with a zero byte.
asm(".section .rodata\n"
    "gl_fft_ptx:\n"
    ".incbin \"" GRIDLOOM_FFT_PTX
    "\"\n"
    ".byte 0\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const char gl_fft_ptx[];

namespace gridloom::fft {
namespace {

hooks::OwnKernels& TheKernels() {
  static hooks::OwnKernels kernels(gl_fft_ptx);
  return kernels;
}

/// Says once that kernels of ours run in place of cuFFT's.
void Announce() {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    GL_LOG(kInfo,
           "cuFFT's kernels for larger sizes are machine code; Gridloom's own make its transforms (gridloom_fft_*)");
}

unsigned BlocksOf(const Step& step) {
  Index blocks = (step.axes[0].count + (1 << step.log_lines) - 1) >> step.log_lines;
  for (int a = 1; a < kAxes; ++a) blocks *= step.axes[a].count;
  return static_cast<unsigned>(blocks);
}

bool IsPlain(const PlannedStep& planned) { return planned.step.in_plain && planned.step.out_plain; }
bool HasPowersOfTwo(const PlannedStep& planned) {
  const std::span passes(planned.step.pass, static_cast<std::size_t>(planned.step.passes));
  return std::ranges::all_of(passes,
                             [](const Pass& pass) { return pass.radix == 2 || pass.radix == 4 || pass.radix == 8; });
}

/// The kernel of all steps of a plan: one, since each kernel has to be compiled when it is launched first.
std::string KernelOf(const std::vector<PlannedStep>& steps, bool wide) {
  std::string name = wide ? "gridloom_fft_f64" : "gridloom_fft_f32";
  if (std::ranges::all_of(steps, IsPlain)) name += "_plain";
  if (std::ranges::all_of(steps, HasPowersOfTwo)) name += "_powers";
  return name;
}

}  // namespace

Status LaunchWhole(const Whole& whole, CUstream stream) {
  const hooks::OwnKernels::Shape shape{1, 1, 1, kThreads};
  const CUresult result = TheKernels().Launch("gridloom_fft_by_host", shape, &whole, stream, &TransformOnHost);
  return result == CUDA_SUCCESS ? kSuccess : kExecFailed;
}

Status Plan::Run(const Variant& variant, Addresses at, int direction) const {
  Announce();
  const auto address = [&](Buffer buffer) {
    switch (buffer) {
      case Buffer::kIn: return at.in;
      case Buffer::kOut: return at.out;
      case Buffer::kData: return at.work;
      case Buffer::kFirst: return at.work + static_cast<std::uint64_t>(variant.first_at);
      default: return at.work + static_cast<std::uint64_t>(variant.second_at);
    }
  };
  const bool wide = request_.in_number == Number::kF64;
  const auto shared = static_cast<unsigned>(4 * TileOf(wide ? 8 : 4) * (wide ? 8 : 4));
  const std::string kernel = KernelOf(variant.steps, wide);
  for (const PlannedStep& planned : variant.steps) {
    Step step = planned.step;
    step.in.address = address(planned.in), step.out.address = address(planned.out);
    if (direction == kInverse) {
      step.in.conjugate = step.in.conjugate != planned.first;
      step.out.conjugate = step.out.conjugate != planned.last;
    }
    const hooks::OwnKernels::Shape shape{BlocksOf(step), 1, 1, kThreads, shared};
    if (TheKernels().Launch(kernel.c_str(), shape, &step, stream_) != CUDA_SUCCESS) return kExecFailed;
  }
  return kSuccess;
}

}  // namespace gridloom::fft
