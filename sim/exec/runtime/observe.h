// Passing on what kernels record (sim/exec/records.h).
#pragma once

#include <cstdint>
#include <span>

#include "sim/exec/record_sink.h"
#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {

RecordPlace PlaceOf(const Warp& warp);
/// Tells the launch's observer of the accesses to global memory among a warp's records.
void TellObserver(const Warp& warp, std::span<const std::uint64_t> words);

}  // namespace gridloom::exec
