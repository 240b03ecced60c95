// Which instructions access global memory, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::analysis {

struct MemoryAccess {
  bool reads = false, writes = false;
  const ptx::AddressOperand* address = nullptr;
  std::uint32_t bytes = 0;  ///< from that address on
  bool generic = false;     ///< the address may also lie in another state space
  // A matrix (wmma): the same again, `rows` times, at distances of `stride` elements.
  std::uint32_t rows = 1, element_bytes = 0;
  const ptx::Operand* stride = nullptr;  ///< null: `default_stride`
  std::uint32_t default_stride = 0;
};

struct AccessClass {
  std::vector<MemoryAccess> accesses;
  /// Set when the instruction may access global memory in a way that cannot be told: why.
  std::string unknown;
};

/// Accesses to shared, local, constant and parameter memory and to textures and surfaces are none.
AccessClass ClassifyAccess(const ptx::Instruction& instruction);

}  // namespace gridloom::analysis
