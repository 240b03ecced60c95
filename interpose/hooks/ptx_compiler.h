// See ptx_compiler.cpp.
#pragma once

#include <string_view>

namespace gridloom::hooks {

/// The shim's function in the place of nvPTXCompiler's function `name`, which a library has at `real`; null: `real` is
/// right.
void* PtxCompilerAnswer(std::string_view name, const void* real);

}  // namespace gridloom::hooks
