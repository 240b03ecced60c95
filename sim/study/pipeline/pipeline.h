// The study of task pipelines: S. Mu, D. Li, Y. Chen, Y. Deng and Z. Wang, "Exploiting the task-pipelined parallelism of stream programs on
// many-core GPUs", IEICE Trans. Inf. & Syst. E96-D, 2013 (docs/pipelines.md).
#pragma once

#include <memory>

#include "sim/study/experiment/study.h"

namespace gridloom::study {

Result<std::unique_ptr<Study>> MakePipeline(const Settings& settings, const Environment& environment);

}  // namespace gridloom::study
