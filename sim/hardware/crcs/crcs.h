// Overlapped execution of dependent kernels: coarse-grained reference counting-based scoreboarding (CRCS), the pages
// that its CTA scheduler goes by, and the way of data between storage, host and device beside kernels that run
// (docs/overlap.md).
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kCrcs;

}  // namespace gridloom::hardware
