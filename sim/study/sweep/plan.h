// A sweep as its tasks read it: which replays there are and who does which. Kept in the report's folder as sweep.json.
#pragma once

#include <string>
#include <vector>

#include "sim/study/replay/options.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study {

struct SweepPlan {
  ReplayOptions options;  ///< complete
  ReplayPlan replays;
  std::size_t tasks = 1;

  std::string path() const { return options.report + "/sweep.json"; }
  std::size_t TaskOf(std::size_t cell) const { return cell % tasks; }
};

Status SaveSweep(const SweepPlan& plan);

/// Fails when this build or the traces are not those that the sweep was planned with: its results would not belong to
/// it.
Result<SweepPlan> LoadSweep(const std::string& path);

}  // namespace gridloom::study
