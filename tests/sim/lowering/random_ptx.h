// PTX for tests of lowering: random blocks with copies, sums, accesses whose pointers may meet, guards and barriers.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace gridloom::test {

/// Entry `k` of so many labelled blocks. It need not end; it is not run but interpreted (interpreter.h).
std::string RandomPtx(std::uint64_t seed, unsigned blocks, unsigned instructions);

}  // namespace gridloom::test
