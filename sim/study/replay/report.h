// The report of replays: report.html, report.json, runs.csv, kernels.csv, programs.csv, and per replay intervals/*.csv
// and trace-events/*.json. docs/reports.md describes them.
#pragma once

#include "sim/study/replay/run.h"
#include "sim/study/report/page.h"

namespace gridloom::study {

/// Replays whose timelines are in files of their own; those of more are in their results only.
inline constexpr std::size_t kMostTimelines = 64;
/// A page that is longer takes no more timelines: browsers stay quick.
inline constexpr std::size_t kLongPage = 12 << 20;

/// Writes all files into options.report. Reads the timelines from there, too.
Status WriteReport(const ReplayRun& run, const ReplayOptions& options);

/// The page. `timelines`: TimelineBlocks of the first replays that have a result, with what to call them.
using NamedBlocks = std::vector<std::pair<std::string, std::vector<report::Block>>>;
report::Page ReportPage(const ReplayRun& run, const ReplayOptions& options, NamedBlocks timelines);

/// What happened when in one replay: kernels, SMs, schedulers, memory.
std::vector<report::Block> TimelineBlocks(const Json& cell, const sim::DeviceSpec& device);

/// In the trace-event format, for Perfetto and chrome://tracing.
Json TraceEvents(const Json& cell, const sim::DeviceSpec& device);

}  // namespace gridloom::study
