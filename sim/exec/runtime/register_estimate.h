// How many 32-bit registers a kernel would need per thread: what the driver API reports and the occupancy is computed
// from. PTX has no register allocation, so this is the widest point of a linear live-range scan, loops taken into account.
#pragma once

#include <cstdint>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

std::uint32_t EstimateRegisters(const ptx::Function& function);

}  // namespace gridloom::exec
