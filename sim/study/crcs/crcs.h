// The study of CRCS and PPCS (G. Kim et al., PACT 2016): what its class makes of an experiment's file (configs/experiments/_crcs.yaml;
// docs/crcs-results.md).
#pragma once

#include <memory>

#include "sim/study/experiment/study.h"

namespace gridloom::study {

Result<std::unique_ptr<Study>> MakeCrcs(const Settings& settings, const Environment& environment);

}  // namespace gridloom::study
