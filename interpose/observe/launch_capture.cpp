#include "interpose/observe/launch_capture.h"

#include <chrono>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "interpose/base/log.h"
#include "interpose/observe/range_checking.h"
#include "interpose/observe/timeline.h"
#include "interpose/observe/tracing.h"

namespace gridloom::session {
namespace {

struct CodeTables {
  std::mutex mutex;
  std::unordered_map<const ptx::Function*, std::unique_ptr<const trace::CodeTable>> tables;
  std::vector<std::shared_ptr<exec::Program>> programs;  ///< whose functions are keys
  trace::StreamPool streams;
};

CodeTables& TheTables() {
  static CodeTables* const tables = new CodeTables;
  return *tables;
}

/// Later launches begin later; their distance is of no meaning.
exec::CountedClocks ClocksOf(const KernelOp& op) {
  constexpr std::uint64_t kBetweenWorks = 1'000'000;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.clock_ns = op.plan.work * kBetweenWorks,
          .timer_ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count())};
}

}  // namespace

TracedLaunch KernelOf(const KernelOp& op, RangeChecks* checks) {
  if (checks != nullptr) {
    const exec::RangedKernel ranged = checks->Find(op.bound.program, std::string(op.bound.info->name));
    if (ranged.program != nullptr) return {.program = ranged.program, .info = ranged.info, .block = op.block};
  }
  return {.program = op.bound.program, .info = op.bound.info, .block = op.block};
}

TracedLaunch ProfilerOf(const exec::RangedKernel& kernel, trace::LaunchInfo::Ranges form) {
  return {.program = kernel.program,
          .info = kernel.profiler,
          .block = {1, 1, 1},  // a thread says what a CTA will touch
          .role = trace::LaunchInfo::Role::kProfiler,
          .ranges = form};
}

TracedLaunch ReleasingOf(const KernelOp& op, const exec::RangedKernel& kernel, trace::LaunchInfo::Ranges form) {
  return {.program = kernel.program,
          .info = kernel.info,
          .block = op.block,
          .role = trace::LaunchInfo::Role::kReleasing,
          .ranges = form};
}

RangedLaunch* RangedLaunchOf(const KernelOp& op) { return dynamic_cast<RangedLaunch*>(op.plan.ctas.get()); }

const trace::CodeTable& CodeTableOf(const TracedLaunch& launch) {
  CodeTables& tables = TheTables();
  const std::lock_guard lock(tables.mutex);
  auto& table = tables.tables[launch.info->function];
  if (table == nullptr) {
    tables.programs.push_back(launch.program);
    table = std::make_unique<const trace::CodeTable>(
        trace::BuildCodeTable(launch.program->module(), *launch.info->function));
  }
  return *table;
}

trace::LaunchShape ShapeOf(const KernelOp& op, const TracedLaunch& launch) {
  const bool profiler = launch.role == trace::LaunchInfo::Role::kProfiler;
  return {.ctas = op.grid.count(),
          .threads_per_cta = static_cast<std::uint32_t>(launch.block.count()),
          .registers_per_thread = launch.info->registers,
          .shared_bytes = launch.info->static_shared_bytes + (profiler ? 0 : op.dynamic_shared_bytes),
          .together = !profiler && (op.cooperative || op.cluster.count() > 1)};
}

bool MayLaunch(const KernelOp& op) {
  // sim/exec/contract/device_calls.def: what device code calls to launch is named so, after CUDA dynamic parallelism 1
  // or 2.
  constexpr std::string_view kNames[] = {"LaunchDevice", "LaunchDeviceV2"};
  constexpr std::string_view kPrefixes[] = {"cnp", "__cuda_syscall_cnp", "__cuda_syscall_cnpv2"};
  const ptx::Module& module = op.bound.program->module_as_read();
  for (const std::string_view prefix : kPrefixes) {
    for (const std::string_view name : kNames) {
      if (module.FindFunction(std::string(prefix) + std::string(name)) != nullptr) return true;
    }
  }
  return module.FindFunction("cudaLaunchAggGroup") != nullptr || module.FindFunction("cudaLaunchAggGroupV2") != nullptr;
}

LaunchCapture::LaunchCapture(const KernelOp& op, const TracedLaunch& what, Tracing* tracing,
                             std::shared_ptr<trace::CtaSink> live)
    : live_(std::move(live)) {
  if (tracing != nullptr) writer_ = tracing->Begin(op, what, &keep_every_);
  if (writer_ == nullptr && live_ == nullptr) return;
  const auto take = [this](const trace::CtaRun& run) {
    run.ForEach([this](std::uint64_t cta, const trace::LoadedCta& trace) { Take(cta, trace); });
  };
  capture_.emplace(CodeTableOf(what), ShapeOf(op, what), take, ClocksOf(op), &TheTables().streams);
}

LaunchCapture::~LaunchCapture() {
  if (live_ != nullptr) live_->Close();
}

void LaunchCapture::Take(std::uint64_t cta, const trace::LoadedCta& trace) {
  if (writer_ != nullptr && cta % keep_every_ == 0) writer_->Add(cta, trace);
  else ++left_out_;
  if (live_ != nullptr) live_->Push(cta, trace);
}

void LaunchCapture::End() {
  if (writer_ != nullptr) writer_->End(left_out_);
  if (const std::uint64_t dropped = capture_ ? capture_->dropped() : 0; dropped != 0)
    LogFormat(LogLevel::kInfo, "trace: %llu accesses of instructions that copy in bulk are left out",
              static_cast<unsigned long long>(dropped));
  if (const std::uint64_t cut = capture_ ? capture_->cut() : 0; cut != 0)
    LogFormat(LogLevel::kWarn,
              "trace: %llu CTAs make more visits than a trace has room for (%llu different ones, %llu in all): the "
              "rest is left out",
              static_cast<unsigned long long>(cut), static_cast<unsigned long long>(trace::kMostVisits),
              static_cast<unsigned long long>(trace::kMostVisitsMade));
}

}  // namespace gridloom::session
