// PTX lines as debug information: the lifter gives every instruction its line, the passes and the vectoriser carry it
// along, and the code generator writes a line table. Ordinary compilations drop it all right after lifting. A fault
// inside generated code compiles the kernel once more, with it, and looks its place up: debug information does not
// change the code.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace gridloom::exec {

/// Gives a function a place that debug locations can refer to.
void AddSubprogram(llvm::Function& function, std::string_view name, std::uint32_t line);

/// Code generation makes one instruction of a load and of what takes its value, and gives it the line of the latter.
/// Only accesses fault: so what takes a value of a load has the load's line.
void GiveLinesOfLoads(llvm::Module& module);

/// The line of the instruction at `offset` in the object's section .text, 0 when it has none, or when .text is not of
/// `text_bytes` bytes: then it is not the code that ran.
std::uint32_t LineAt(std::span<const std::uint8_t> object, std::uint64_t offset, std::uint64_t text_bytes);

}  // namespace gridloom::exec
