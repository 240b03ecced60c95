// Dynamic thread block launch (J. Wang, N. Rubin, A. Sidelnik, S. Yalamanchili, "Dynamic thread block launch: a
// lightweight execution mechanism to support irregular applications on GPUs", ISCA 2015): thread blocks that a kernel
// launches join a kernel of the same code that runs.
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kDtbl;

}  // namespace gridloom::hardware
