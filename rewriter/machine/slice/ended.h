// Code that counts the threads of a slice as they end, so that it is known how many of its CTAs have run while it runs.
//
// All ends of a kernel lead to one piece of code, which the lanes of a warp that end together pass together. The first
// of them adds how many they are to the count of its CTA, and all end. Lanes that end elsewhere or later add theirs
// then. A CTA has run when its count is that of its threads (docs/machine-code.md#progress).
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/machine/flow.h"
#include "rewriter/machine/slice/kernel_parts.h"

namespace gridloom::machine {

/// Registers of that code: general ones for an address, a pair, and one more; from sm_80 on a pair of uniform ones.
struct EndedRegisters {
  unsigned address = 0, other = 0, descriptor = 0;
};

/// Registers that are free where threads end: no instruction that may read them late (MayReadLate) has them, and no
/// instruction at all has the uniform ones, as those are of lanes that go on, too. `count`: the kernel's registers,
/// with kReservedRegisters. An error when there are none.
Result<EndedRegisters> FreeWhereThreadsEnd(const FlowGraph& flow, unsigned sm, std::uint32_t count);

/// That code; `hidden_at` is where the hidden parameters are in constant bank 0.
Result<std::vector<Word>> CountEnded(unsigned sm, const EndedRegisters& registers, std::uint32_t hidden_at);

/// Whether the instruction may read general registers after the next ones have been issued, without a scoreboard that
/// says when it has.
bool MayReadLate(const Instruction& instruction);

}  // namespace gridloom::machine
