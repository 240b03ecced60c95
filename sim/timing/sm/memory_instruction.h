// A memory instruction of a warp as it is issued, and what it touches.
#pragma once

#include <cstdint>

#include "sim/timing/memory/address_space.h"
#include "sim/timing/sm/decoded_code.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

struct MemoryInstruction {
  const DecodedOp* op = nullptr;
  const trace::CtaTrace* cta = nullptr;
  trace::MemoryAccess access;
  std::uint64_t shift = 0;  ///< added to the addresses
  const AddressSpace* memory = nullptr;
  std::uint32_t launch = 0;
  std::uint16_t warp = 0;  ///< of the SM
};

}  // namespace gridloom::timing
