#include "sim/exec/slices/slices.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewriter/passes/launch_fills.h"
#include "rewriter/passes/slice_range.h"
#include "sim/exec/add_stats.h"

namespace gridloom::exec {
namespace {

passes::GridShape ShapeOf(const Dim3& grid) { return {grid.x, grid.y, grid.z}; }

/// The kernel's own parameters, as the launch gave them, and room for the hidden ones.
std::vector<std::byte> ParamsOf(const LaunchParams& whole, const SlicedKernel& kernel) {
  std::vector<std::byte> params(whole.params.begin(), whole.params.end());
  params.resize(std::max<std::size_t>(params.size(), kernel.info->params.bytes));
  return params;
}

LaunchFault RunOne(Engine& engine, const LaunchParams& whole, const SlicedKernel& kernel, std::uint64_t first,
                   std::uint64_t count, std::uint64_t grid_id, std::vector<std::byte>& params, LaunchStats* stats) {
  for (const passes::HiddenParam& hidden : kernel.hidden) {
    const std::uint64_t value = passes::HiddenValue(hidden.role, ShapeOf(whole.grid), first, grid_id);
    std::memcpy(params.data() + hidden.offset, &value, passes::Info(hidden.role).bytes);  // little-endian
  }
  LaunchParams launch = whole;
  launch.program = kernel.program;
  launch.kernel = kernel.info;
  launch.params = params;
  launch.grid_id = grid_id;
  launch.grid = {static_cast<std::uint32_t>(count), 1, 1};
  launch.slice = SliceOf{whole.grid, first};
  return engine.Run(launch, stats);
}

}  // namespace

Status SlicedProgram::Rewrite() {
  GL_TRY(pipeline, passes::Pipeline::Parse("slice"));
  GL_TRY(rewrite, rewrites_.Get(pipeline, original_->module(), original_->key()));
  const std::shared_ptr<const ptx::Module> module(rewrite.rewritten, rewrite.rewritten->module.get());
  GL_TRY(program, Program::LoadVariant(module, rewrite.key, original_, memory_));
  rewrite_ = std::move(rewrite);
  program_ = std::move(program);
  return {};
}

std::shared_ptr<const SlicedKernel> FindSlicedAlready(const std::shared_ptr<Program>& program,
                                                      const KernelInfo& kernel) {
  auto hidden = passes::ParamsLaunchFills(program->module_as_read(), *kernel.function);
  if (hidden.empty()) return nullptr;
  return std::make_shared<SlicedKernel>(
      SlicedKernel{.program = program, .why_whole = {}, .info = &kernel, .hidden = std::move(hidden)});
}

std::shared_ptr<const SlicedKernel> SlicedProgram::Find(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(rewritten_, true)) {
    if (const Status status = Rewrite(); !status.ok())
      error_ = "its module cannot be rewritten: " + status.error().message;
  }
  auto sliced = std::make_shared<SlicedKernel>();
  if (program_ == nullptr) {
    sliced->why_whole = error_;
    return sliced;
  }
  const passes::KernelOutcome* const outcome = rewrite_.rewritten->Find(kernel);
  if (outcome == nullptr) {
    sliced->why_whole = "it is not in the rewritten module";
  } else if (outcome->status == passes::KernelStatus::kRefused) {
    sliced->why_whole = outcome->reason;
    if (outcome->loc.line != 0) sliced->why_whole += ", PTX line " + std::to_string(outcome->loc.line);
  } else {
    sliced->program = program_;
    sliced->info = program_->FindKernel(kernel);
    sliced->hidden = outcome->hidden;
  }
  return sliced;
}

LaunchFault RunSlice(Engine& engine, const LaunchParams& whole, const SlicedKernel& kernel, std::uint64_t first,
                     std::uint64_t count, std::uint64_t grid_id, LaunchStats* stats) {
  std::vector<std::byte> params = ParamsOf(whole, kernel);
  return RunOne(engine, whole, kernel, first, count, grid_id, params, stats);
}

SlicedRun RunInSlices(Engine& engine, const LaunchParams& whole, const SlicedKernel& kernel, std::uint64_t slice_size,
                      const std::function<bool()>& stop) {
  const passes::GridShape grid = ShapeOf(whole.grid);
  const std::uint64_t grid_id = whole.grid_id != 0 ? whole.grid_id : engine.NewGridId();
  std::vector<std::byte> params = ParamsOf(whole, kernel);
  SlicedRun run;
  for (std::uint64_t first = 0, count = 0; first < grid.count() && !stop(); first += count) {
    count = std::min(slice_size, passes::LongestSlice(grid, first));
    LaunchStats one;
    run.fault = RunOne(engine, whole, kernel, first, count, grid_id, params, &one);
    AddTo(run.stats, one);
    ++run.slices;
    if (run.fault.kind != FaultKind::kNone) break;
  }
  return run;
}

}  // namespace gridloom::exec
