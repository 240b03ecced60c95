// memcheck: where values go that were read from shared memory which nobody has written.
//
// Each value of the SPMD form that can come from such a read gets a second one, its *invalid bits*: an integer as wide
// as the value, with a one for each bit that depends on memory without a value. Values that cannot come from shared
// memory have none and cost nothing. What decides something is checked: the condition of a branch, the address of an
// access, what an atomic operation is given, and what is stored outside of shared memory; stores to shared memory carry
// the invalid bits on. docs/memcheck.md says what counts.
#pragma once

#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// Lines are taken from debug locations. Before control flow is brought into the vectoriser's shape.
void FollowInvalidValues(SpmdModule& spmd);

}  // namespace gridloom::exec
