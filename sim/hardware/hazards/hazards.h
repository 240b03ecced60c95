// A check of the model by the model: works that depend on each other touch memory in their order. No hardware, and it
// costs no time; it stands on what SMs, caches and copies do, and knows nothing of what other parts mean to do
// (docs/overlap.md).
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kHazards;

}  // namespace gridloom::hardware
