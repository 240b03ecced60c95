// The code of one kernel for slices: reads of the grid's size are sent to the hidden parameters where they stand, and
// each read of %ctaid is replaced by a jump to code behind the kernel's own, which computes what the original grid has
// there and jumps back. Each end of threads becomes a jump to code that counts them (ended.h), where there is room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewriter/machine/flow.h"
#include "rewriter/machine/slice/kernel_parts.h"

namespace gridloom::machine {

struct PatchedCode {
  std::vector<std::byte> code{};
  std::uint32_t registers = 0;   ///< the kernel's new count
  std::uint32_t sites = 0;       ///< reads of %ctaid
  std::uint32_t grid_reads = 0;  ///< of the grid's size
  std::uint32_t exits = 0;       ///< ends of threads that count them; 0: the form does not count
  std::string why_uncounted{};   ///< not empty: it cannot
  /// Byte offsets of all EXITs, when it counts.
  std::vector<std::uint32_t> exit_offsets{};
  /// Old and new byte offset of each instruction that reads %ctaid.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved{};
};

/// An error that names the place where it cannot be done.
Result<PatchedCode> PatchCode(image::Bytes code, unsigned sm, const FlowGraph& flow, const KernelParts& parts);

}  // namespace gridloom::machine
