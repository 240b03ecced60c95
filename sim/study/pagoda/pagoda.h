// The study of Pagoda (T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann, T. G. Rogers, PPoPP 2017).
#pragma once

#include <memory>

#include "sim/study/experiment/study.h"

namespace gridloom::study {

Result<std::unique_ptr<Study>> MakePagoda(const Settings& settings, const Environment& environment);

}  // namespace gridloom::study
