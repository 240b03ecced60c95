// From a line of PTX to the line of the source that .loc names (PTX ISA, 11.5.3), where the program was built with
// -lineinfo or -G.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

struct SourcePlace {
  std::string file;  ///< relative to the current folder when it lies below
  std::uint32_t line = 0;

  std::string text() const { return file + ":" + std::to_string(line); }
};

/// From the last .loc at or before a line of a function's body; nothing when there is none. A linked module has lines
/// of several texts: `preferred` (may be null) is looked at first, then every other function whose body has such a
/// line. What is of a header of a CUDA toolkit, and was inlined, counts as the line of its caller.
std::optional<SourcePlace> FindSource(const ptx::Module& module, const ptx::Function* preferred,
                                      std::uint32_t ptx_line);

/// An instruction among others: its text without operands, and where the straight line of code begins that it is in.
struct CodePlace {
  std::uint32_t begin = 0;  ///< line of the label or branch before it; 0: the function's beginning, or not known
  std::string opcode;       ///< "st.global.u32"; empty: not known
};
CodePlace FindInCode(const ptx::Module& module, const ptx::Function* preferred, std::uint32_t ptx_line);

}  // namespace gridloom::exec
