// What makes the shim a library that can run kernels: the executor is its default backend. Runs when the library is loaded
// and does nothing but store a function pointer.
#include "interpose/session/backend.h"
#include "interpose/session/exec_backend.h"

namespace {

__attribute__((constructor)) void UseExecutor() { gridloom::session::SetBackendFactory(gridloom::session::MakeExecBackend); }

}  // namespace
