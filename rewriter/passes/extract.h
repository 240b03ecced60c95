// One kernel as a module of its own, to be loaded beside the module that it comes from: it works on that module's
// variables, at the addresses they have there. So two forms of a kernel can take turns: the original, and one that a
// pass rewrote.
//
//   before:  .global .u32 count;  .const .f32 scale[4];
//            .entry k(…) { …  ld.const.f32 %f1, [scale+4];  atom.global.add.u32 %r1, [count], 1;  … }
//            .entry other(…) { … }
//   after:   .entry k(…) { …  mov.u64 %gl_scale, 0x7f0000000200;  ld.global.f32 %f1, [%gl_scale+4];
//                             mov.u64 %gl_count, 0x7f0000000400;  atom.global.add.u32 %r1, [%gl_count], 1;  … }
//
// Constants are read as global memory: the address of a .const variable that a driver tells is one there, and so is
// what cvta.const makes of it. Source lines and debug sections are left out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"

namespace gridloom::passes {

/// Names of the variables of a module in .global and .const, with addresses.
using VariableAddresses = std::map<std::string, std::uint64_t, std::less<>>;

/// The variables in .global and .const that a kernel and the functions it calls name, each once. The module is
/// complete. An error, a clause about the kernel, when it cannot do without the rest of the module: it calls through
/// pointers or takes a function's address (a pointer would lead into the other module), uses a texture or surface
/// reference, asks whether an address is in .const, or has addresses of 32 bits.
Result<std::vector<std::string>> VariablesOf(const ptx::Module& module, std::string_view kernel);

/// The kernel and the functions it calls, with the variables that VariablesOf names at `addresses`; an error as there,
/// or when one has no address.
Result<std::unique_ptr<ptx::Module>> ExtractKernel(const ptx::Module& module, std::string_view kernel,
                                                   const VariableAddresses& addresses);

}  // namespace gridloom::passes
