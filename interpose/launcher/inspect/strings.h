// PTX that stands in a file as text, outside of all containers: what compilers link in as the initial value of a
// variable.
#pragma once

#include <string_view>
#include <vector>

namespace gridloom::launcher {

/// Each text between two NULs that has a line `.version` and, behind it, one `.target`, and a kernel; in the order of
/// the file.
std::vector<std::string_view> PtxInStrings(std::string_view bytes);

}  // namespace gridloom::launcher
