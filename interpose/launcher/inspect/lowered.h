// `gridloom inspect --lowered`: kernels beside what a device executes in their place (docs/lowering.md).
#pragma once

#include <string>

#include "interpose/launcher/inspect/show.h"
#include "sim/device/device_spec.h"

namespace gridloom::launcher {

/// Block by block: what is executed, with the lines of PTX that it stands for, and the cycles that one warp takes when
/// all its loads hit L1.
std::string LoweredText(const InspectReport& report, const InspectView& view, const sim::DeviceSpec& device);

}  // namespace gridloom::launcher
