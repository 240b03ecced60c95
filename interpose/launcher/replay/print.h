// The outcomes of replays for a terminal, and as JSON for programs.
#pragma once

#include "sim/study/replay/run.h"

namespace gridloom::launcher {

/// On standard output, as tables or JSON. Returns the exit code: failed when one of them has no result.
int PrintReplay(const study::ReplayRun& run, bool json);

}  // namespace gridloom::launcher
