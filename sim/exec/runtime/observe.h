// Passing on what kernels record (sim/exec/contract/records.h).
#pragma once

#include <cstdint>
#include <span>

#include "sim/exec/contract/recorded_event.h"
#include "sim/exec/record_sink.h"
#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {

void PutPlace(const Warp& warp, RecordPlace& place);
/// Local memory of a CTA's first warp as records tell of it: a window for each of so many warps as large devices hold
/// at a time, whichever host thread runs them, so that what is recorded is the same for any number of threads.
std::uint64_t LocalWindow(const Warp& warp, std::uint64_t cta);
/// Tells the launch's observer of the accesses to global memory among records that begin with this warp's and go on
/// with the next ones' of the CTA; `loops` is of their buffer. How many warps' ends are among them.
std::uint32_t TellObserver(const Warp* warp, std::span<const std::uint64_t> words, RecordLoops& loops);

/// Appends an event to what the warp records, if anybody wants its records: of a lane, by the instruction whose helper
/// got `imm` (MayRecordEvents). Only from such helpers: others find the warp's cursor in a register.
void RecordEvent(Warp& warp, std::uint32_t lane, std::uint64_t imm, const RecordedEvent& event);

}  // namespace gridloom::exec
