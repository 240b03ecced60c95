// Does a function of machine code wait for other CTAs? Then its CTAs have to be able to run at the same time, and
// slices of it would hang. The rules are those of PTX (rewriter/passes/cta_waits.h), for registers that are used again.
#pragma once

#include <cstdint>
#include <optional>

#include "rewriter/machine/flow.h"

namespace gridloom::machine {

/// The number of a read on which a loop may wait for what another CTA writes; nothing when there is none for certain.
///
/// A wait is a cycle of the flow graph with a branch that depends, through registers or memory, on a read in that cycle
/// that another CTA's writes can change: a strong load or an atomic operation of global or generic memory, a call of
/// code outside, or a weak load when the cycle has a fence or its address stays the same. Two things are let through: a
/// cycle of which each round passes a counter's exit test, and a compare-and-swap that is repeated with what it found.
/// `calls_wait`: code outside may itself wait, as malloc does.
std::optional<std::uint32_t> WaitOf(const FlowGraph& flow, bool calls_wait);

}  // namespace gridloom::machine
