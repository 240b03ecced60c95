// Which build libgridloom-compiler.so is of. Modules and options cross its boundary as C++ objects, so that it and the
// library that loads it must have been built from the same headers.
#pragma once

namespace gridloom::exec {

/// Names those headers as they were when the library was built. Compared before anything else of it is called
/// (OpenCompiler).
extern "C" __attribute__((visibility("default"))) const char* gridloom_compiler_interface();
using CompilerInterfaceFn = decltype(&gridloom_compiler_interface);

}  // namespace gridloom::exec
