// Which compute capability the running program needs: its device code is looked at before any of it is loaded, because
// programs ask for the device's properties first.
#pragma once

#include "rewriter/support/compute_capability.h"

namespace gridloom::session {

/// The capability on which every image of the executable and its loaded libraries has a usable PTX: `preferred` when
/// that does, else the lowest that fits. `preferred` too when the program carries no device code or nothing fits.
ComputeCapability CapabilityForProgram(ComputeCapability preferred);

}  // namespace gridloom::session
