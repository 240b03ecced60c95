// What the address analysis says of the kernels of a module, as text for golden tests.
#pragma once

#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::analysis::testing {

std::string DescribeRanges(const ptx::Module& module);

}  // namespace gridloom::analysis::testing
