// The study of launches by kernels: J. Wang, N. Rubin, A. Sidelnik and S. Yalamanchili, "Dynamic thread block launch: a lightweight
// execution mechanism to support irregular applications on GPUs", ISCA 2015 (docs/device-launches.md).
#pragma once

#include <memory>

#include "sim/study/experiment/study.h"

namespace gridloom::study {

Result<std::unique_ptr<Study>> MakeDtbl(const Settings& settings, const Environment& environment);

}  // namespace gridloom::study
