// What exhibits of several papers have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/study/experiment/exhibit.h"
#include "sim/study/experiment/settings.h"
#include "sim/study/paper/runs.h"

namespace gridloom::study {

using Row = std::vector<nlohmann::ordered_json>;

/// How much faster, and how much more, in per cent. More than nothing: 0.
inline double Gain(double before, double after) { return 100 * (before / after - 1); }
inline double More(double before, double after) { return before == 0 ? 0 : 100 * (after / before - 1); }

/// Null for what is no number.
nlohmann::ordered_json Cell(double value);
/// What the paper says: a number below `paper.KEY.NAME`, or null.
nlohmann::ordered_json PaperValue(const Settings& settings, const std::string& key, const std::string& name);
/// A finding and a note with the paper's side of it, which stands below `paper.findings.KEY`.
Status AddFinding(const Settings& settings, const std::string& what, const std::string& key, const std::string& ours,
                  Exhibit& exhibit);
/// The note "The paper: …." with what stands below `paper.findings.KEY`.
Status AddPapersNote(const Settings& settings, const std::string& key, Exhibit& exhibit);

/// "KEY=VALUE KEY=VALUE"
Result<DeviceKeys> KeysFrom(const Settings& settings, const std::string& key);
/// Where the paper is open: "default", which has no keys, and the names below `readings` with theirs.
Result<std::vector<std::pair<std::string, DeviceKeys>>> ReadingsFrom(const Settings& settings);

}  // namespace gridloom::study
