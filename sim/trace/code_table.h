// The static half of a trace: the code of a kernel as the timing model sees it, made from PTX. An instruction of PTX
// becomes one or more entries: cp.async a load and a store, an access of 32 bytes a lane two of 16.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// The code, and where what records name (exec::InstructionNumbers) is in it.
struct CodeTable {
  static constexpr std::uint32_t kNoBlock = ~0u;
  struct Entry {
    std::uint32_t first = 0, count = 0;  ///< entries of KernelCode::instructions
    std::uint32_t block = kNoBlock;      ///< the block that begins here
  };
  KernelCode code;
  std::vector<Entry> entries;  ///< by instruction number
};

/// The kernel and every device function it may come to. Registers are packed as an allocator would, so that their
/// number is near the kernel's pressure; functions have registers of their own.
CodeTable BuildCodeTable(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::trace
