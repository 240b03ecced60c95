// What was found: named once for each place in the code, counted after that.
#include <algorithm>
#include <bit>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/check_support.h"
#include "sim/exec/runtime/memcheck/places.h"
#include "sim/exec/runtime/program_impl.h"
#include "sim/exec/runtime/source_line.h"

namespace gridloom::exec {

MemcheckAccess Memcheck::Describe(const Warp& warp, std::uint32_t lane, AccessKind kind, std::uint32_t bytes,
                                  std::uint32_t line) const {
  MemcheckAccess access;
  access.kind = kind;
  access.bytes = bytes;
  access.several = lane >= kWarpSize;
  const std::uint32_t at = access.several ? static_cast<std::uint32_t>(std::countr_zero(warp.ctx.initial_mask)) : lane;
  access.thread = {warp.ctx.tid[0][at], warp.ctx.tid[1][at], warp.ctx.tid[2][at]};
  const Launch& launch = LaunchOf(warp);
  access.ptx_line = PtxLineOf(launch, line);
  if (access.ptx_line == 0 || !launch.program) return access;
  if (auto source =
          FindSource(launch.program->module(), launch.info ? launch.info->function : nullptr, access.ptx_line)) {
    access.file = std::move(source->file);
    access.source_line = source->line;
  }
  return access;
}

namespace {

/// Where an access is in the code: its source line, or the straight line of code that it is in.
std::string LineOf(const Launch& launch, std::uint32_t line) {
  if (line == 0 || !launch.program) return {};
  const ptx::Module& module = launch.program->module();
  const ptx::Function* const function = launch.info ? launch.info->function : nullptr;
  if (const auto source = FindSource(module, function, line)) return source->text();
  const CodePlace place = FindInCode(module, function, line);
  return "behind " + std::to_string(place.begin) + " " + place.opcode;
}

}  // namespace

Memcheck::ErrorPlace Memcheck::PlaceOf(const Launch& launch, const MemcheckReport& report,
                                       std::uint32_t other_line) const {
  ErrorPlace place{.kernel = report.kernel,
                   .kind = report.kind,
                   .what = {},
                   .other = LineOf(launch, PtxLineOf(launch, other_line)),
                   .space = report.space};
  const MemcheckAccess& access = report.access;
  if (!access.file.empty()) {
    place.what = access.file + ":" + std::to_string(access.source_line);
    return place;
  }
  place.what = LineOf(launch, access.ptx_line);
  if (report.space == Space::kGlobal) place.what += " " + GlobalNeighbour(memory_, heap_, report.address);
  else if (report.space == Space::kShared && launch.program && launch.ctas_per_unit == 1)
    place.what +=
        " " + std::to_string(SharedVariableAt(launch.program->module(), *launch.info->function, report.address).offset);
  return place;
}

void Memcheck::Note(Warp& warp, MemcheckKind kind, const LaneRequest& request, std::uint64_t shown,
                    std::uint32_t other_line, const Fill& fill) {
  const Launch& launch = LaunchOf(warp);
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  const auto [it, inserted] =
      index_.try_emplace(Key{launch.kernel_name, kind, request.line, other_line, request.space}, found_.size());
  if (!inserted) {
    if (it->second < found_.size()) ++found_[it->second].report.times;
    else ++not_kept_;
    return;
  }
  Finding finding;
  finding.launch = launch.serial;
  MemcheckReport& report = finding.report;
  report.kind = kind;
  report.space = request.space;
  report.kernel = launch.kernel_name;
  report.library = launch.library;
  report.access = Describe(warp, request.lane, request.kind, request.bytes, request.line);
  report.cta = PlaceInGrid(*warp.cta);
  report.address = shown;
  const auto [same, first] = by_place_.try_emplace(PlaceOf(launch, report, other_line), found_.size());
  if (!first || found_.size() >= limit_) {
    if (first) same->second = SIZE_MAX;
    it->second = same->second;
    if (it->second < found_.size()) ++found_[it->second].report.times;
    else ++not_kept_;
    return;
  }
  fill(report);
  found_.push_back(std::move(finding));
}

void Memcheck::Race(Warp& warp, const LaneRequest& request, const SharedShadow::Finding& finding) {
  const bool race = finding.kind == MemcheckKind::kRace;
  Note(warp, finding.kind, request, finding.offset, race ? finding.other_line : 0, [&](MemcheckReport& report) {
    report.place = SharedPlace(LaunchOf(warp), finding.offset);
    if (!race) return;
    const Warp& other = warp.cta->unit->warps[finding.other_warp];
    report.other = Describe(other, finding.other_lane, finding.other_kind, 0, finding.other_line);
  });
}

std::string Memcheck::Place(const Warp& warp, MemcheckKind kind, const LaneRequest& request) const {
  const Launch& launch = LaunchOf(warp);
  if (kind == MemcheckKind::kMisaligned)
    return std::to_string(request.bytes) + "-byte accesses need a multiple of " +
           std::to_string(std::bit_ceil(request.bytes));
  if (request.space == Space::kShared) {
    return "the CTA has " + WithCommas(launch.ctx.total_shared_bytes) + " bytes of shared memory (" +
           WithCommas(launch.info->static_shared_bytes) + " static, " + WithCommas(launch.ctx.dynamic_shared_bytes) +
           " dynamic)";
  }
  if (request.space == Space::kLocal)
    return "the thread has " + WithCommas(warp.ctx.local_bytes) + " bytes of local memory";
  const CtaCtx& cta = warp.cta->ctx;
  if (request.address - cta.shared_base < cta.shared_bytes)
    return "it lies in shared memory, and the instruction is for global memory";
  return GlobalPlace(memory_, heap_, request.address, request.bytes);
}

std::string Memcheck::SharedPlace(const Launch& launch, std::uint64_t offset) const {
  if (!launch.program) return {};
  if (launch.ctas_per_unit > 1) offset %= launch.ctx.shared_stride;
  return SharedVariablePlace(launch.program->module(), *launch.info->function, offset);
}

void Memcheck::EndOfGrid(std::uint64_t first_serial, std::uint64_t last_serial) {
  std::vector<MemcheckReport> reports;
  {
    const std::lock_guard lock(mutex_);
    for (Finding& finding : found_) {
      const bool here = ended_ || finding.launch == first_serial || finding.launch == last_serial;
      if (!here || finding.told) continue;
      finding.told = true;
      reports.push_back(finding.report);
    }
  }
  if (!on_finding_) return;
  for (const MemcheckReport& report : reports) on_finding_(report);
}

void Memcheck::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  EndOfGrid(0, 0);
}

Engine::Findings Memcheck::findings() const {
  const std::lock_guard lock(mutex_);
  Engine::Findings findings;
  for (const Finding& finding : found_) findings.reports.push_back(finding.report);
  findings.not_kept = not_kept_;
  heap_.CountLive(&findings.heap_blocks, &findings.heap_bytes);
  return findings;
}

}  // namespace gridloom::exec
