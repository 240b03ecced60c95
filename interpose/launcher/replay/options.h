// The options that `replay` and `compare` have in common.
#pragma once

#include <CLI/App.hpp>

#include "sim/study/replay/options.h"

namespace gridloom::launcher {

/// Adds the options about devices, policies and the report. Call options.Complete() when they are parsed.
void DescribeReplay(CLI::App& app, study::ReplayOptions& options);

}  // namespace gridloom::launcher
