#include "sim/study/crcs/outcomes.h"

#include <algorithm>
#include <map>
#include <set>

namespace gridloom::study::crcs {
namespace {

using timing::WorkKind;
using timing::WorkResult;

/// Names of the kernels that are made from others to tell what these will touch.
std::set<std::string> ProfilersOf(const trace::TraceFile& file) {
  std::set<std::string> names;
  for (const trace::TraceFile::Launch& launch : file.launches()) {
    if (launch.info.role == trace::LaunchInfo::Role::kProfiler) names.insert(file.kernels()[launch.info.kernel].name);
  }
  return names;
}

}  // namespace

Result<Times> Times::Of(const Replayed& replayed) {
  const std::set<std::string> profilers = ProfilersOf(replayed.file);
  Times times;
  times.total = replayed.Milliseconds(replayed.result.cycles);
  std::vector<double> kernels;  // in the order of the program
  const auto add_kernel = [&](const WorkResult& work, double took) {
    const bool profiler = profilers.contains(work.name);
    (profiler ? times.profiler_instructions : times.kernel_instructions) += static_cast<double>(work.warp_instructions);
    if (profiler) times.profilers += took;
    else kernels.push_back(took);
  };
  for (const WorkResult& work : replayed.result.works) {
    if (!work.done()) continue;
    const double took = replayed.Milliseconds(work.ended - work.started);
    switch (work.kind) {
      case WorkKind::kKernel: add_kernel(work, took); break;
      case WorkKind::kCopyToDevice: times.to_device += took; break;
      case WorkKind::kCopyToHost: times.to_host += took; break;
      case WorkKind::kStorageRead: times.read += took; break;
      case WorkKind::kStorageWrite: times.write += took; break;
      default: break;
    }
  }
  times.kernels = static_cast<double>(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    (i == 0 ? times.first : i + 1 == kernels.size() ? times.last : times.middle) += kernels[i];
  }
  times.most_references = replayed.Counter("most_references");
  times.most_kernels = replayed.Counter("most_kernels");
  return times;
}

Result<Progress> Progress::Of(const Replayed& replayed) {
  const ReplayResult& result = replayed.result;
  if (result.sampler->ctas_left_out() != 0) return Error{"more than " + std::to_string(kMostCtas) + " thread blocks"};
  const std::set<std::string> profilers = ProfilersOf(replayed.file);
  Progress progress{.total = replayed.Milliseconds(result.cycles), .prelude_ends = 0, .kernels = {}};
  std::map<std::uint32_t, std::vector<timing::Cycle>> ends;  // by kernel
  for (const timing::CtaInterval& cta : result.sampler->ctas()) ends[cta.place.launch].push_back(cta.end);
  for (const WorkResult& work : result.works) {
    if (work.done() && work.kind == WorkKind::kStorageRead)
      progress.prelude_ends = std::max(progress.prelude_ends, replayed.Milliseconds(work.ended));
  }
  for (auto& [launch, cycles] : ends) {
    if (profilers.contains(result.works[launch].name)) continue;
    std::ranges::sort(cycles);
    std::vector<double>& kernel = progress.kernels.emplace_back();
    for (std::size_t i = 1; i <= kSteps; ++i)
      kernel.push_back(replayed.Milliseconds(cycles[(cycles.size() * i + kSteps - 1) / kSteps - 1]));
  }
  return progress;
}

}  // namespace gridloom::study::crcs
