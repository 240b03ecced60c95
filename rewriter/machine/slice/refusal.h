// Why a kernel of machine code runs whole.
#pragma once

#include <optional>
#include <string>

#include "rewriter/machine/flow.h"
#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/kernel_parts.h"

namespace gridloom::machine {

/// A clause that completes "kernel k is not sliced: "; nothing when its CTAs are independent of each other, as far as
/// its code says. Launches of it must still run whole when they are cooperative or of clusters.
std::optional<std::string> WhyWhole(const CubinFile& cubin, const KernelParts& parts, const FlowGraph& flow);

}  // namespace gridloom::machine
