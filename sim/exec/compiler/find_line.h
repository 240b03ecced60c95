// Which PTX line a place in compiled code belongs to: the compiler library's answer for messages about faults.
#pragma once

#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec {

/// The PTX line of the instruction at `text_offset` in the code that gridloom_compile made of the kernel with these
/// options, 0 when it is not known. Compiles the kernel again. `text_bytes`: size of that code.
extern "C" __attribute__((visibility("default"))) std::uint32_t gridloom_find_line(const ptx::Module* module,
                                                                                   const char* kernel,
                                                                                   const CompileOptions* options,
                                                                                   std::uint64_t text_offset,
                                                                                   std::uint64_t text_bytes);
using FindLineFn = decltype(&gridloom_find_line);

}  // namespace gridloom::exec
