// L2 with labels (S. Mu et al., "Exploiting the task-pipelined parallelism of stream programs on many-core GPUs", IEICE
// Trans. Inf. & Syst. E96-D, 2013, section 3.2): each line knows which kernel of which stream wrote it. Lines that the
// next kernel of the stream is to read stay longer than others; when that kernel has ended they are written back and
// dropped.
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kTaggedL2;

}  // namespace gridloom::hardware
