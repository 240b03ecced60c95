// Does a kernel wait for other CTAs? Then its CTAs must be able to run at the same time, and slices of it would hang.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// A place where a thread may wait for what another CTA does.
struct CtaWait {
  std::string reason;  ///< a clause: "a loop may wait for what another CTA writes (ld.volatile.global.u32)"
  SourceLoc loc;       ///< of the read it waits on
  const ptx::Function* function = nullptr;  ///< that has the loop
};

/// Finds such a place in a function, or in one that may be called from it; nothing when there is none for certain.
///
/// A wait is a loop that a branch decides to leave or to go on with, where the branch depends (through registers,
/// memory or calls) on a read inside that loop that another CTA's writes can change:
///   - a volatile, relaxed, acquire or mmio load, one with .cv, a surface load, or the result of an atomic operation,
///     in global or generic memory; malloc, which may wait for a free;
///   - a plain load there when the loop contains a fence, or when the address is the same in every round: in a program
///     without data races (ISA 8.7) such a load sees no other CTA's write, but unoptimised code is often written so.
/// The loops that are looked at are not only natural ones: any cycle of the flow graph, irreducible or one of several
/// paths through a loop's header (`continue`), unless each round of it passes a counter's exit test, that is, unless it
/// ends whatever other CTAs do. Two atomic idioms that wait for no one in particular are let through: see
/// cta_waits.cpp. A recursive function with such a read counts as a loop.
class CtaWaits {
 public:
  CtaWaits(const ptx::Module& module, const analysis::CallGraph& calls);

  const std::optional<CtaWait>& of(analysis::NodeId function) const { return waits_[function]; }

 private:
  std::vector<std::optional<CtaWait>> waits_;  ///< by function, those it calls included
};

}  // namespace gridloom::passes
