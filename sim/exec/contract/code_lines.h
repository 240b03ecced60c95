// Lines as compiled code names them in faults and findings. They count from 1 through the functions that a kernel
// reaches, each from its first instruction on, so that code is the same wherever in a text its functions stand. Made of
// the module alone, as layout.h.
#pragma once

#include <unordered_map>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// The lines of a function's instructions. Those with line 0 were made by no text.
struct FunctionLines {
  std::uint32_t first = 0, last = 0;  ///< 0: it has none

  std::uint32_t count() const { return first == 0 ? 0 : last - first + 1; }
};
FunctionLines LinesOf(const ptx::Function& function);

class CodeLines {
 public:
  /// All that the kernel reaches has been read.
  CodeLines(const ptx::Module& module, const ptx::Function& kernel);

  /// The number of the first instruction of a function that the kernel reaches. 0: the function has none with a line.
  std::uint32_t Begin(const ptx::Function& function) const;
  /// The number of the line of an instruction in such a function. 0 for 0.
  std::uint32_t Of(const ptx::Function& function, std::uint32_t ptx_line) const;
  /// The line of the PTX, 0 for 0 and for what names none.
  std::uint32_t PtxLine(std::uint32_t line) const;

 private:
  struct Piece {
    std::uint32_t begin = 0;  ///< code line of its first line
    FunctionLines lines;
  };
  std::vector<Piece> pieces_;  ///< in order
  std::unordered_map<const ptx::Function*, std::size_t> piece_of_;
};

}  // namespace gridloom::exec
