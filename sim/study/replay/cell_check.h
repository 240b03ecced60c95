// Whether a kept result of a replay has everything that reports read of it, of the types that they expect. The file may
// have been written by anybody.
#pragma once

#include <string>

#include "sim/study/replay/cell.h"

namespace gridloom::study {

/// Empty, or one sentence that names the first part that is missing or wrong. Of a cell with its timeline, replayed on
/// that device.
std::string CellProblem(const Json& cell, const sim::DeviceSpec& device);

}  // namespace gridloom::study
