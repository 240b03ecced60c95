// libgridloom-compiler.so: everything is in gl_exec_compiler; this file says which build the library is of.
#include "gl_compiler_interface.h"
#include "sim/exec/compiler/interface.h"

namespace gridloom::exec {

extern "C" const char* gridloom_compiler_interface() { return kCompilerInterface; }

}  // namespace gridloom::exec
