// What the compiled code of a kernel depends on in its module, as a number: the name of the code in the disk cache. Comments, blanks, names
// of files, .loc, debug sections, values in tables and functions that the kernel does not reach are none of it; lines of the PTX are, as
// faults and memcheck name them.
#pragma once

#include "rewriter/ptx/ir.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/program.h"

namespace gridloom::exec {

/// What all kernels of a module depend on: its header, and all variables of module scope, but not what their initialisers hold. `symbols`
/// are the module's.
ProgramKey SharedCodeKey(const ptx::Module& module, const SymbolTable& symbols);

/// `shared`: the module's SharedCodeKey. The kernel has been read, and whatever it names. `recorded`: its code writes records, which number
/// the instructions of all device functions.
ProgramKey CodeKey(const ptx::Module& module, const SymbolTable& symbols, const ProgramKey& shared, const ptx::Function& kernel,
                   bool recorded);

}  // namespace gridloom::exec
