#include "interpose/launcher/trace_ranges.h"

#include <cstdio>

#include "rewriter/support/demangle.h"
#include "rewriter/support/printable.h"
#include "sim/exec/memcheck.h"
#include "sim/trace/range_forms.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

}  // namespace

void TraceRanges::Add(const trace::LaunchInfo& info, const std::string& kernel, const Launch& launch) {
  switch (info.role) {
    case trace::LaunchInfo::Role::kProfiler: ranged_[info.ranges][info.work].profiler = launch; return;
    case trace::LaunchInfo::Role::kReleasing: ranged_[info.ranges][info.work].releasing = launch; return;
    case trace::LaunchInfo::Role::kKernel: break;
  }
  ++launches_;
  kernels_[info.work] += launch.warp_instructions;
  if (!info.no_ranges.empty()) ++reasons_[{DemangledName(kernel), Printable(info.no_ranges)}];
}

std::map<trace::LaunchInfo::Ranges, TraceRanges::Sum> TraceRanges::Sums() const {
  std::map<Form, Sum> sums;
  for (const auto& [form, works] : ranged_) {
    Sum& sum = sums[form];
    for (const auto& [work, ranged] : works) {
      if (!ranged.profiler.complete || !ranged.releasing.complete) {
        ++sum.incomplete;
        continue;
      }
      ++sum.launches;
      sum.set += ranged.profiler.set;
      sum.released += ranged.releasing.released;
      sum.profilers += ranged.profiler.warp_instructions;
      sum.releasing += ranged.releasing.warp_instructions;
      if (const auto kernel = kernels_.find(work); kernel != kernels_.end()) sum.kernels += kernel->second;
    }
  }
  return sums;
}

std::string TraceRanges::Text() const {
  std::string text;
  for (const auto& [form, sum] : Sums()) {
    text += "ranges, " + std::string(trace::NameOf(form)) + ": " + exec::WithCommas(sum.launches) + " of " +
            exec::WithCommas(launches_) + " launches, " + exec::WithCommas(sum.set) + " set and " +
            exec::WithCommas(sum.released) + " released; profilers execute " + Percent(sum.profilers, sum.kernels) +
            " of what the kernels do, kernels with release code " + Percent(sum.releasing, sum.kernels);
    if (sum.incomplete != 0) text += "; " + exec::WithCommas(sum.incomplete) + " not complete";
    text += "\n";
  }
  for (const auto& [reason, launches] : reasons_)
    text += "no ranges: " + exec::WithCommas(launches) + " launches of " + reason.first + ": " + reason.second + "\n";
  return text;
}

Json TraceRanges::FormsJson() const {
  Json json = Json::array();
  for (const auto& [form, sum] : Sums()) {
    json.push_back({{"form", trace::NameOf(form)},
                    {"launches", sum.launches},
                    {"incomplete_launches", sum.incomplete},
                    {"set", sum.set},
                    {"released", sum.released},
                    {"profiler_warp_instructions", sum.profilers},
                    {"releasing_warp_instructions", sum.releasing},
                    {"kernel_warp_instructions", sum.kernels}});
  }
  return json;
}

Json TraceRanges::ReasonsJson() const {
  Json json = Json::array();
  for (const auto& [reason, launches] : reasons_)
    json.push_back({{"kernel", reason.first}, {"launches", launches}, {"reason", reason.second}});
  return json;
}

}  // namespace gridloom::launcher
