// Checks what a parsed module means (PTX ISA chapters 5 to 11): symbols, declarations, and for every instruction its
// modifiers, operands, types, state spaces, PTX version and target.
#pragma once

#include <cstdint>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

/// Reports everything wrong with the module; returns whether nothing was. Accepts what compilers emit; it is no
/// complete model of ptxas, and lets pass what it does not understand. Opcodes and modifiers no table knows are errors
/// up to the newest PTX version the tables describe (kNewestPtx), and warnings in modules of a later one.
///
/// kCompiled is for what a compiler put into a binary, perhaps one that knows more than the tables: words that they do
/// not have, and versions and targets that they believe too old, are warnings. Whoever compiles the kernel that has
/// them refuses it by name.
enum class PtxOrigin : std::uint8_t { kWritten, kCompiled };
bool VerifyModule(const Module& module, DiagnosticSink& sink, PtxOrigin origin = PtxOrigin::kWritten);
/// The same for one function of it.
bool VerifyFunction(const Module& module, const Function& function, DiagnosticSink& sink,
                    PtxOrigin origin = PtxOrigin::kWritten);

/// Whether the tables know the instruction, whatever the module's version is: its words, types and operands. What keeps
/// a kernel from running is asked where it is compiled; a module that has such an instruction can be loaded.
bool VerifyInstruction(const Module& module, const Instruction& instruction, DiagnosticSink& sink);

/// The newest PTX version the tables describe as a whole, as major * 10 + minor. Of later ones they know some
/// instructions. In modules of such a version an instruction that does not fit its form is a warning, too: it may be
/// one that is not known yet.
inline constexpr unsigned kNewestPtx = 90;

/// The newest PTX version there is (CUDA 13.5). Drivers refuse modules of a version that they have not heard of.
inline constexpr unsigned kLastPtx = 95;

}  // namespace gridloom::ptx
