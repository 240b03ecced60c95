// See xla.cpp.
#pragma once

namespace gridloom::hooks {

/// To be called when the library is loaded, before the program reads its environment.
void ShortenAutotuning();

}  // namespace gridloom::hooks
