// Names of kernels and variables as their programmers wrote them.
#pragma once

#include <string>
#include <string_view>

namespace gridloom {

/// `_Z3addPfi` -> "add(float*, int)"; what nvcc makes of a name local to a file -> "static add(float*, int)"; a kernel
/// that a pass has made of another one, `_Z3addPfi__profile` -> "add(float*, int) (profile)". All that
/// is no mangled name stays as it is, and so does a mangled one whose text would be long for it: with references to
/// what came before, 220 bytes can stand for 71 MB. So time and text are in proportion to the name, whoever made it.
/// What it returns is Printable().
std::string DemangledName(std::string_view name);

}  // namespace gridloom
