// Lazy and block CTA scheduling (M. Lee et al., "Improving GPGPU resource utilization through alternative thread block
// scheduling", HPCA 2014): how many CTAs an SM gets is found by watching the first ones, and neighbouring CTAs go to
// one SM (docs/hardware.md).
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kLazyCtas;

}  // namespace gridloom::hardware
