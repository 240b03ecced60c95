// Address space on both sides of device memory that is reserved and never mapped (runtime/address_space.h). An address
// made of one within device memory and an index of 32 bits, scaled, ends either in device memory or in a zone, where
// the processor finds it: such accesses need no test of their own (compiler/warp_guard.h).
#pragma once

#include <cstdint>

namespace gridloom::exec {

/// On each side. The largest index that counts, 2^32 elements of 16 bytes, takes a quarter of it.
inline constexpr std::uint64_t kGuardZone = std::uint64_t{1} << 38;

}  // namespace gridloom::exec
