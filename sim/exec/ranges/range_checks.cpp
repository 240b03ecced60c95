#include "sim/exec/ranges/range_checks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/exec/ranges/page_recorder.h"
#include "sim/exec/ranges/reference_counts.h"

namespace gridloom::exec {
namespace {

std::string PageText(const DeviceMemory& memory, std::uint64_t cta, std::uint64_t page, std::uint32_t page_bytes,
                     std::uint32_t flags) {
  const auto allocation = memory.Find(page * page_bytes + page_bytes / 2);
  const std::string where = allocation ? std::to_string(page - allocation->base / page_bytes) +
                                             " of an allocation of " + std::to_string(allocation->bytes) + " bytes"
                                       : "at " + std::to_string(page * page_bytes);
  return "CTA " + std::to_string(cta) + ", page " + where + ", " + (flags & kRangeRead ? "read" : "") +
         (flags & kRangeWrite ? "written" : "");
}

bool InAllocation(const DeviceMemory& memory, std::uint64_t page, std::uint32_t page_bytes) {
  return memory.Find(page * page_bytes) || memory.Find((page + 1) * page_bytes - 1) ||
         memory.Find(page * page_bytes + page_bytes / 2);
}

/// What one CTA touched, against what it had reported.
void Compare(const DeviceMemory& memory, const CtaPages& touched, const PageSet& reported, std::uint32_t page_bytes,
             RangeFindings& findings) {
  findings.touched += touched.pages.size();
  for (const PageSet::Range& range : touched.pages.ranges()) {
    for (std::uint64_t page = range.first; page <= range.last; ++page) {
      const std::uint32_t missed = range.flags & ~reported.FlagsOf(page);
      if (missed == 0) continue;
      if (!InAllocation(memory, page, page_bytes)) ++findings.outside;
      else if (findings.missed.empty()) findings.missed = PageText(memory, touched.cta, page, page_bytes, missed);
    }
  }
}

}  // namespace

LaunchParams ProfilerLaunch(const LaunchParams& whole, const RangedKernel& kernel, std::vector<std::byte>& params) {
  params.assign(whole.params.begin(), whole.params.end());
  params.resize(std::max<std::size_t>(params.size(), kernel.profiler->params.bytes));
  for (const passes::HiddenParam& hidden : kernel.hidden) {
    const std::uint32_t size = hidden.role == passes::HiddenRole::kBlockX   ? whole.block.x
                               : hidden.role == passes::HiddenRole::kBlockY ? whole.block.y
                                                                            : whole.block.z;
    std::memcpy(params.data() + hidden.offset, &size, sizeof size);
  }
  LaunchParams profile;
  profile.program = kernel.program;
  profile.kernel = kernel.profiler;
  profile.grid = whole.grid;
  profile.block = {1, 1, 1};
  profile.params = params;
  return profile;
}

Status RangedProgram::Rewrite() {
  GL_TRY(pipeline, passes::Pipeline::Parse(form_ == passes::RangeForm::kInterval ? "profile,release"
                                                                                 : "profile-strided,release-strided"));
  GL_TRY(rewrite, rewrites_.Get(pipeline, original_->module(), original_->key()));
  const std::shared_ptr<const ptx::Module> module(rewrite.rewritten, rewrite.rewritten->module.get());
  GL_TRY(program, Program::LoadVariant(module, rewrite.key, original_, memory_));
  rewrite_ = std::move(rewrite);
  program_ = std::move(program);
  return {};
}

RangedKernel RangedProgram::Find(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(rewritten_, true)) {
    if (const Status status = Rewrite(); !status.ok())
      error_ = "its module cannot be rewritten: " + status.error().message;
  }
  RangedKernel ranged;
  if (program_ == nullptr) {
    ranged.why_not = error_;
    return ranged;
  }
  const passes::KernelOutcome* const outcome = rewrite_.rewritten->Find(kernel);
  const auto& added = rewrite_.rewritten->added;
  const auto profiler = std::ranges::find(added, kernel, &passes::AddedKernel::of);
  if (outcome == nullptr || outcome->status == passes::KernelStatus::kRefused || profiler == added.end()) {
    ranged.why_not = outcome == nullptr ? "it is not in the rewritten module" : outcome->reason;
    if (outcome != nullptr && outcome->loc.line != 0)
      ranged.why_not += ", PTX line " + std::to_string(outcome->loc.line);
    return ranged;
  }
  ranged.program = program_;
  ranged.info = program_->FindKernel(kernel);
  ranged.profiler = program_->FindKernel(profiler->name);
  ranged.hidden = profiler->hidden;
  return ranged;
}

LaunchFault RunWithRanges(Engine& engine, const DeviceMemory& memory, const LaunchParams& whole,
                          const RangedKernel& kernel, std::uint32_t page_bytes, std::uint64_t most_ctas,
                          RangeFindings& findings, LaunchStats* stats) {
  const CtaSample sample = CtaSample::Of(whole.grid, most_ctas);
  findings.sampled = sample.every != 1;
  ReferenceCounts counts(memory, page_bytes, sample);
  std::vector<std::byte> params;
  LaunchParams profile = ProfilerLaunch(whole, kernel, params);
  profile.ranges = &counts;
  if (LaunchFault fault = engine.Run(profile); fault.kind != FaultKind::kNone) return fault;
  const auto set = counts.SetByCta();
  findings.set_calls = counts.calls();
  PageRecorder recorder(page_bytes, sample);
  LaunchParams launch = whole;
  launch.program = kernel.program;
  launch.kernel = kernel.info;
  launch.observer = &recorder;
  launch.ranges = &counts;
  LaunchFault fault = engine.Run(launch, stats);
  if (fault.kind != FaultKind::kNone) return fault;
  for (const CtaPages& cta : set) findings.reported += cta.pages.size();
  auto reported = set.begin();
  for (const CtaPages& touched : recorder.Pages()) {
    while (reported != set.end() && reported->cta < touched.cta) ++reported;
    const bool found = reported != set.end() && reported->cta == touched.cta;
    Compare(memory, touched, found ? reported->pages : PageSet(), page_bytes, findings);
  }
  for (const auto& [page, count] : counts.Counts()) {
    if (!findings.unbalanced.empty()) break;
    findings.unbalanced = "page " + std::to_string(page) + ": " + std::to_string(count.read) + " reads and " +
                          std::to_string(count.write) + " writes are left";
  }
  return fault;
}

}  // namespace gridloom::exec
