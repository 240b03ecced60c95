// Batches of narrow tasks under a SuperKernel, as GeMTC runs them (super_kernel.h says after whom): what Pagoda is
// compared with. No hardware, but a runtime on the host and a kernel, which the model runs instruction by instruction.
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kGemtc;

}  // namespace gridloom::hardware
