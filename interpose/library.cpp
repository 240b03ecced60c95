// What makes the shim a library that can run kernels: the executor is its default backend. What runs when the library
// is loaded does nothing but hide the driver's names, store a function pointer, one more in the toolkit's assembler,
// and a variable of Python's environment.
#include "interpose/base/at_end.h"
#include "interpose/hooks/driver_library.h"
#include "interpose/hooks/ptxas.h"
#include "interpose/hooks/xla.h"
#include "interpose/objects/backend.h"
#include "interpose/objects/process.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "interpose/session/exec_backend.h"

namespace {

__attribute__((constructor)) void UseExecutor() {
  gridloom::hooks::HideDriverNames();
  gridloom::session::SetBackendFactory(gridloom::session::MakeExecBackend);
  gridloom::hooks::WatchAssembler();
  gridloom::hooks::ShortenAutotuning();
}

// After the program's own exit handlers and the CUDA runtime's. Memcheck comes last: it may end the process with a code
// of its own.
__attribute__((destructor)) void Finish() {
  gridloom::session::RunAtEnd();
  gridloom::session::Process::Get().observers().memcheck().Finish();
}

}  // namespace
