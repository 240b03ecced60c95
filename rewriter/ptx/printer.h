// Writes a module back as PTX text. Printing what was parsed and parsing it again gives the same module; two prints in
// a row give the same text. Comments, the radix of integers and line breaks are not kept.
#pragma once

#include <string>
#include <unordered_map>

#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {

std::string PrintModule(const Module& module);
/// The same with bodies that nobody has read yet empty; none may be read meanwhile (LazyBodies::WhileNothingIsRead).
std::string PrintModuleAsRead(const Module& module);

/// One instruction without indentation or line end: "@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd3+8];"
std::string PrintInstruction(const Instruction& instruction);
std::string PrintOperand(const Operand& operand);
/// A declaration without its semicolon: ".shared .align 16 .b8 buf[1024]".
std::string PrintVariable(const Variable& variable);
/// The header of a function, parameters and directives included, without its body or semicolon.
std::string PrintFunctionHeader(const Function& function);
/// What symbols are called in place of their names, by Function or Variable.
using SymbolNames = std::unordered_map<const void*, std::string>;
/// Header and body, or semicolon, without what only tells where in a source they came from: .loc, .file. Symbols of
/// module scope are called as `names` says, where it does, parameters that are no registers by their places.
std::string PrintFunctionCode(const Function& function, const SymbolNames& names);

}  // namespace gridloom::ptx
