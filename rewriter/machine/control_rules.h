// The rules of control bits: what code has to say about waiting so that no instruction uses a register that another one
// is still at work with (docs/machine-code.md#rules-of-control-bits).
#pragma once

#include "rewriter/machine/flow.h"

namespace gridloom::machine {

/// An error that names the first place that breaks a rule.
Status CheckControl(const FlowGraph& flow);

}  // namespace gridloom::machine
