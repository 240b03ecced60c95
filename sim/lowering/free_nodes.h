// Nodes that are no instructions of a GPU's.
#pragma once

#include "sim/lowering/kernel.h"

namespace gridloom::lowering {

/// Takes out the nodes that are free: what reads their results waits for what they read. Nodes whose results others
/// write, too, become instructions. The kernel no longer computes what it did, but waits as it did.
void RemoveFree(Kernel& kernel);

}  // namespace gridloom::lowering
