// Many replays: in parallel, with progress, and without doing again what is finished.
#pragma once

#include <string>
#include <vector>

#include "sim/study/replay/cell.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study {

/// What became of a cell of the plan.
struct CellOutcome {
  Json result;          ///< CellJson without its timeline; null when there is none
  std::string problem;  ///< why there is none
  bool ok() const { return result.is_object(); }
};

struct ReplayRun {
  ReplayPlan plan;
  std::vector<CellOutcome> cells;  ///< by cell of the plan
};

/// Plans, replays what is not finished and writes the report if options.report names a folder. `options` must be
/// complete. Fails when nothing could be begun or the report cannot be written; what a single replay failed of is in
/// its outcome.
Result<ReplayRun> RunReplay(const ReplayOptions& options);

/// Replays the cells of these numbers that are not finished; the others' outcomes are empty.
Result<ReplayRun> RunCells(ReplayPlan plan, const ReplayOptions& options, const std::vector<std::size_t>& cells);

/// What is finished in the report's folder, nothing else.
ReplayRun GatherCells(ReplayPlan plan, const ReplayOptions& options);

/// Simulated time of the baseline's cell over that of this one; 0 when one of them has no result.
double SpeedUp(const ReplayRun& run, std::size_t cell);

}  // namespace gridloom::study
