// Whether the words of an instruction go together, by the table forms.def.
#pragma once

#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {

/// What is wrong with an instruction's words in a module of a PTX version (major * 10 + minor): "does not take '.sat'",
/// or "needs one of .rn, .rz"; empty: nothing. Which words need others is not known of compilers before PTX 6.3.
std::string WrongWordsOf(const Instruction& instruction, unsigned ptx);

}  // namespace gridloom::ptx
