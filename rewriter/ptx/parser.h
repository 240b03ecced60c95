// Reads PTX text into a Module (PTX ISA 1.x to 9.x, as compilers emit it and people write it).
#pragma once

#include <memory>
#include <string_view>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

/// Parses a whole module, up to the first NUL byte. Syntax errors go to `sink`, each with its place; the parser
/// recovers at the next statement and stops once the sink is full. Always returns a module: with errors, what could be
/// understood.
///
/// Names are resolved to what declares them. A name nobody declares stays an operand of kind kName, and unknown
/// opcodes, modifiers and directives are kept as text: neither is a syntax error (the verifier reports the former).
/// Thread-safe.
std::unique_ptr<Module> ParseModule(std::string_view text, DiagnosticSink& sink);

}  // namespace gridloom::ptx
