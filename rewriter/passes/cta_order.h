// What the order of CTAs means to a kernel: may single CTAs of it run before, between and after those of other kernels,
// as long as no page is touched out of turn (docs/ranges.md, "Out of order")?
#pragma once

#include <string>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/cta_waits.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

struct CtaOrder {
  /// Why all of the grid has to run at once, with everything before it done and nothing after it begun; empty: it need
  /// not.
  std::string why_whole;
  SourceLoc loc;
  /// Results may depend on the order of its own CTAs: they change the same memory atomically in ways that do not
  /// commute.
  bool own_order_matters = false;
};

CtaOrder OrderOf(const analysis::CallGraph& calls, const CtaWaits& waits, const ptx::Function& kernel);

/// The kernel, or what it calls, may read memory that other kernels write.
bool ReadsGlobal(const analysis::CallGraph& calls, const ptx::Function& kernel);

/// The kernel, or what it calls, names a managed variable, itself or by another variable that begins with its address.
bool NamesManaged(const analysis::CallGraph& calls, const ptx::Function& kernel);

}  // namespace gridloom::passes
