// Runs a lowered kernel for one thread, on made-up values, and says what it did: the reference that passes are compared
// with. It knows nothing of dependences, liveness or passes: it does one node after the other.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/lowering/kernel.h"

namespace gridloom::test {

/// What a thread did that others can see.
struct Effects {
  /// Space and address of a byte; what was stored there last.
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> memory;
  /// By visit of a block and record of that visit: address, and what was stored.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> records;
  /// Instructions that stay in order, with all that they read.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> ordered;
  /// Branches between parts of regions, which need not be there.
  std::set<std::uint32_t> inner_branches;
};

/// The blocks of `path`, one after the other. Equal seeds give equal parameters, special registers and memory.
Effects Interpret(const lowering::Kernel& kernel, const std::vector<std::uint32_t>& path, std::uint64_t seed);

/// A way through the kernel from block 0, of at most so many blocks.
std::vector<std::uint32_t> RandomPath(const lowering::Kernel& kernel, std::uint64_t seed, std::size_t most);

/// What `changed` did otherwise than `original`, whose records it may leave out where they are loads; empty: nothing.
std::string Difference(const Effects& original, const Effects& changed);

}  // namespace gridloom::test
