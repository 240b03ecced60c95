// Any bytes as PTX: lexer, parser and verifier must survive them. What the parser understood, errors or not, must
// print, and the print must be a fixed point: it parses, prints the same again, and the verifier says the same about
// it. Read lazily it prints as it does when it is read at once.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/lexer.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/ptx/visit.h"

using namespace gridloom;
using namespace gridloom::ptx;

namespace {

[[noreturn]] void Complain(const char* what, const std::string& first, const std::string& second) {
  std::fprintf(stderr, "%s\n--- first\n%s\n--- second\n%s\n", what, first.c_str(), second.c_str());
  std::abort();
}

// Tokens lie in the text, in order, and the lexer comes to an end.
void CheckTokens(std::string_view text) {
  Lexer lexer(text);
  const char* at = text.data();
  for (;;) {
    const Token token = lexer.Next();
    if (token.begin < at || token.end < token.begin || token.end > text.data() + text.size()) std::abort();
    at = token.end;
    if (token.kind == TokenKind::kEnd) return;
  }
}

void VisitEverything(Module& module) {
  std::size_t registers = 0;
  for (Function& function : module.functions) {
    if (function.body == nullptr) continue;
    VisitStatements(*function.body, [&](Statement& statement) {
      auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction == nullptr) return;
      VisitDefs(*instruction, [&](Operand& operand) { registers += operand.variable->vector; });
      VisitUses(*instruction, [&](Operand& operand) { registers += operand.variable->vector; });
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckTokens(text);
  DiagnosticSink sink;
  const auto module = ParseModule(text, sink);
  FormatDiagnostics(sink, "fuzz.ptx", text);
  DiagnosticSink verify_sink;
  const bool verified = VerifyModule(*module, verify_sink);
  VisitEverything(*module);
  const std::string printed = PrintModule(*module);

  // Bodies that are read later are what they are when all is read at once.
  DiagnosticSink lazy_sink;
  const auto lazy = ParseModuleLazily(text, lazy_sink, PtxOrigin::kCompiled);
  if (!sink.has_errors() && PrintModule(*lazy) != printed)
    Complain("read later it is something else", printed, PrintModule(*lazy));
  ReadAllBodies(*lazy);

  DiagnosticSink second_sink;
  const auto second = ParseModule(printed, second_sink);
  if (second_sink.has_errors())
    Complain("the printed text does not parse", printed, FormatDiagnostics(second_sink, "printed", printed));
  const std::string reprinted = PrintModule(*second);
  if (reprinted != printed) Complain("no fixed point", printed, reprinted);
  if (VerifyModule(*second, second_sink) != verified)
    Complain("the verifier changed its mind", printed, FormatDiagnostics(second_sink, "printed", printed));
  return 0;
}
