// The result of one replay as it is kept and reported: JSON whose names docs/reports.md explains.
#pragma once

#include <optional>
#include <string>

#include "sim/study/replay/job.h"
#include "sim/study/replay/plan.h"
#include "sim/study/report/files.h"

namespace gridloom::study {

using Json = report::Json;

/// Part of every key; changes with the format.
inline constexpr const char* kCellFormat = "gridloom-replay-2";

/// Where the results of a run are kept, one file each.
class CellStore {
 public:
  /// `folder` of the report; empty: nothing is kept.
  explicit CellStore(std::string folder) : folder_(std::move(folder)) {}
  Status Prepare() const;  ///< makes the folder
  std::string PathOf(const Cell& cell) const { return folder_ + "/cells/" + cell.file + ".json"; }
  /// Nothing when there is no result of that key, or one of another version. Fails with one sentence that names the
  /// file when it is damaged.
  Result<std::optional<Json>> Load(const Cell& cell, const sim::DeviceSpec& device) const;
  /// There or not there, whatever interrupts it.
  Status Save(const Cell& cell, const Json& result) const;
  bool keeps() const { return !folder_.empty(); }

 private:
  std::string folder_;
};

Json CellJson(const ReplayPlan& plan, const Cell& cell, const ReplayResult& result);

/// The part of a result without what happened when.
Json WithoutTimeline(const Json& cell);

}  // namespace gridloom::study
