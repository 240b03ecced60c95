// Checks what a parsed module means (PTX ISA chapters 5 to 11): symbols, declarations, and for every instruction its
// modifiers, operands, types, state spaces, PTX version and target.
#pragma once

#include <cstdint>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

/// Reports everything wrong with the module; returns whether nothing was. Accepts what compilers emit; it is no
/// complete model of ptxas, and lets pass what it does not understand. Opcodes and modifiers no table knows are errors
/// up to the newest PTX version the tables describe, and warnings in modules of a later one.
///
/// kCompiled is for what a compiler put into a binary, perhaps one that knows more than the tables: words that they do not have, and
/// versions and targets that they believe too old, are warnings. Whoever compiles the kernel that has them refuses it by name.
enum class PtxOrigin : std::uint8_t { kWritten, kCompiled };
bool VerifyModule(const Module& module, DiagnosticSink& sink, PtxOrigin origin = PtxOrigin::kWritten);
/// The same for one function of it.
bool VerifyFunction(const Module& module, const Function& function, DiagnosticSink& sink, PtxOrigin origin = PtxOrigin::kWritten);

/// The newest PTX version the tables describe, as major * 10 + minor.
inline constexpr unsigned kNewestPtx = 90;

}  // namespace gridloom::ptx
