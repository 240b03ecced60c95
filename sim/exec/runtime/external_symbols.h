// The functions outside generated code that an object may call: what LLVM's x86-64 code generator emits calls to.
#pragma once

#include <string_view>

namespace gridloom::exec {

/// Address of an allowed external function, null when the name is not on the list.
const void* FindExternalSymbol(std::string_view name);

}  // namespace gridloom::exec
