// The study of Kernelet: what its class makes of an experiment's file (configs/experiments/_kernelet.yaml;
// docs/kernelet-results.md).
#pragma once

#include <memory>

#include "sim/study/experiment/study.h"

namespace gridloom::study {

Result<std::unique_ptr<Study>> MakeKernelet(const Settings& settings, const Environment& environment);

}  // namespace gridloom::study
