// The figures of the paper's evaluation, and what goes beyond it.
#pragma once

#include <string>

#include "sim/study/dtbl/runs.h"
#include "sim/study/experiment/exhibit.h"

namespace gridloom::study::dtbl {

Result<Exhibit> Fig6(const Settings& settings, Runs& runs);      ///< warp activity
Result<Exhibit> Fig7(const Settings& settings, Runs& runs);      ///< DRAM efficiency
Result<Exhibit> Fig8(const Settings& settings, Runs& runs);      ///< occupancy of the SMs
Result<Exhibit> Fig9(const Settings& settings, Runs& runs);      ///< from a launch to its first thread block
Result<Exhibit> Fig10(const Settings& settings, Runs& runs);     ///< device memory that pending launches take
Result<Exhibit> Fig11(const Settings& settings, Runs& runs);     ///< speed-up over the flat form
Result<Exhibit> Fig12(const Settings& settings, Runs& runs);     ///< sizes of the aggregated group table
Result<Exhibit> Matches(const Settings& settings, Runs& runs);   ///< groups that found a kernel to join
Result<Exhibit> Readings(const Settings& settings, Runs& runs);  ///< where the paper is open: each replaces one default
Result<Exhibit> Devices(const Settings& settings, Runs& runs);   ///< on other devices, and with launches that cost less

}  // namespace gridloom::study::dtbl
