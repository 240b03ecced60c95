// Ends of launches that are not the natural one.
#pragma once

#include <cstdint>
#include <string>

#include "sim/exec/runtime/launch.h"

namespace gridloom::exec {

struct Warp;

/// Lane number for faults of a whole warp.
inline constexpr std::uint32_t kNoLane = 32;

/// What a line that compiled code gave is in the PTX (CodeLines). 0: not known. Walks the kernel's functions. Where
/// there is no program, as in tests of the runtime alone, lines are what they are.
std::uint32_t PtxLineOf(const Launch& launch, std::uint32_t line);

/// Ends the launch: notes the fault unless an earlier one is noted, tells the other workers to stop, and goes back to
/// the worker. Callers must not own anything that a destructor would have to free: the warp's stack is simply left.
/// `line`: as compiled code gives it; the engine turns it into one of the PTX when the grid has ended.
/// `space`: of the address; shared and local ones are described beside the CTA's and the thread's memory.
[[noreturn]] void RaiseFault(Warp& warp, FaultKind kind, std::uint32_t lane, std::uint64_t address, std::uint32_t line,
                             const char* text, Space space = Space::kGeneric);

/// The same without leaving: for the worker's own stack.
/// `pc`: where in generated code it happened, when that is all that is known of its place.
void RecordFault(Launch& launch, const Warp* warp, FaultKind kind, std::uint32_t lane, std::uint64_t address,
                 std::uint32_t line, std::string text, std::uintptr_t pc = 0, Space space = Space::kGeneric);

/// "0x7000…: 16 bytes past the end of the allocation of 4096 bytes at 0x7000…"
std::string DescribeAddress(const DeviceMemory& memory, std::uint64_t address);

/// A launch that was stopped by another warp: leave this one. Does not return.
[[noreturn]] void LeaveStopped(Warp& warp);

}  // namespace gridloom::exec
