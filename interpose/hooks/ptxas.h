// See ptxas.cpp.
#pragma once

namespace gridloom::hooks {

/// To be called when the library is loaded: in a process of the toolkit's assembler, its input will be kept in its
/// output.
void WatchAssembler();

}  // namespace gridloom::hooks
