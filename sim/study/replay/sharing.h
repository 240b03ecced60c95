// What the programs of a mix take together, beside what each takes alone on the same device.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/model/sharing.h"
#include "sim/study/replay/run.h"
#include "sim/study/report/page.h"

namespace gridloom::study {

/// Times of the programs of a cell, in seconds, by trace. Empty for a program alone, and where its own result is
/// missing.
std::vector<model::SharedTime> SharedTimes(const ReplayRun& run, std::size_t cell);

/// Adds to the record of a cell's result what docs/reports.md says under `runs.csv`, and to its programs what it says
/// under `programs.csv`: null where it is not known.
void AddSharing(const ReplayRun& run, std::size_t cell, Json& record);

/// Whether somebody shares the device in one of the replays.
bool HasMixes(const ReplayPlan& plan);

/// Columns of programs.csv: one row per replay of a mix and program.
std::vector<report::Column> ProgramColumns();
/// Rows for these columns, from the record of a replay.
std::vector<Json> ProgramRecords(const Json& run_record);

/// The section of the page.
void AddMixes(const ReplayRun& run, report::Page& page);

}  // namespace gridloom::study
