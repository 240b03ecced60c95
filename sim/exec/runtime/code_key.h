// What the compiled code of a kernel depends on in its module, as a number: the name of the code in the disk cache.
// Comments, blanks, names of files, .loc, debug sections, values in tables, functions that the kernel does not reach,
// and names that nobody outside of the module knows are none of it (nvcc makes such names from the path of the source).
// Faults and memcheck name lines of the PTX: how the lines of a function lie to each other is part of it, where the
// function stands in the text is not (CodeLines).
#pragma once

#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/printer.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/program.h"

namespace gridloom::exec {

/// What all kernels of a module depend on: its header, and all variables of module scope, but not what their
/// initialisers hold.
struct SharedCode {
  ProgramKey key{};
  ptx::SymbolNames names;  ///< numbers in place of names that do not matter
};
/// `symbols` are the module's.
SharedCode SharedCodeOf(const ptx::Module& module, const SymbolTable& symbols);

/// `shared`: the module's. The kernel has been read, and whatever it names. `recorded`: its code writes records, which
/// number the instructions of all device functions.
ProgramKey CodeKey(const ptx::Module& module, const SymbolTable& symbols, const SharedCode& shared,
                   const ptx::Function& kernel, bool recorded);

}  // namespace gridloom::exec
