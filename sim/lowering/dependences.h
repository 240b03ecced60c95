// What has to stay in order within a block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/lowering/kernel.h"

namespace gridloom::lowering {

/// That a later node comes behind an earlier one, by so many cycles at least if nothing is to wait.
struct Dependence {
  std::uint32_t before = 0, after = 0;  ///< of the nodes
  std::uint32_t cycles = 0;
};

/// Of nodes that follow each other and of which none is Node::ordered, in the order of `after`: results that are read,
/// registers that are written again, and memory. A load goes over a store only if they cannot touch the same bytes;
/// nothing goes over barriers, fences, volatile accesses and atomics but what leaves memory alone.
std::vector<Dependence> DependencesOf(std::span<const Node> nodes, const Target& target);

}  // namespace gridloom::lowering
