// Passing on what kernels record (sim/exec/records.h).
#pragma once

#include <cstdint>
#include <span>

#include "sim/exec/record_sink.h"
#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {

void PutPlace(const Warp& warp, RecordPlace& place);
/// Tells the launch's observer of the accesses to global memory among records that begin with this warp's and go on with the next
/// ones' of the CTA; `loops` is of their buffer. How many warps' ends are among them.
std::uint32_t TellObserver(const Warp* warp, std::span<const std::uint64_t> words, RecordLoops& loops);

}  // namespace gridloom::exec
