// A library that offers what the compiler library offers, from other headers; whoever calls its compiler has not
// looked.
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) const char* gridloom_compiler_interface() { return "of another day"; }
extern "C" __attribute__((visibility("default"))) void gridloom_compile() { std::abort(); }
