// Whether a run of a kernel can be undone by giving the memory that it writes its bytes back.
#pragma once

#include <string>

#include "rewriter/analysis/call_graph.h"

namespace gridloom::exec {

/// Why it cannot, as one sentence that begins with "it": the kernel, or what it may call, prints, takes memory of the
/// device's heap, calls the device runtime, or works on textures or surfaces, which are no memory of the program's.
/// Empty: it can.
std::string WhyNotUndoable(const analysis::CallGraph& calls, const ptx::Function& kernel);

}  // namespace gridloom::exec
