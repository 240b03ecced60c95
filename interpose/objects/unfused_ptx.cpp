#include "interpose/objects/unfused_ptx.h"

#include <variant>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::session {
namespace {

void ForbidFusing(ptx::Statement& statement) {
  auto* const instruction = std::get_if<ptx::Instruction>(&statement);
  if (instruction == nullptr || !ptx::IsFloat(instruction->type())) return;
  if (instruction->opcode != ptx::Opcode::kAdd && instruction->opcode != ptx::Opcode::kSub &&
      instruction->opcode != ptx::Opcode::kMul)
    return;
  for (const ptx::Mod rounding : {ptx::Mod::kRn, ptx::Mod::kRz, ptx::Mod::kRm, ptx::Mod::kRp})
    if (instruction->Has(rounding)) return;
  instruction->modifiers.insert(instruction->modifiers.begin(), {ptx::Mod::kRn, "rn"});
}

}  // namespace

std::string WithoutFusing(std::string ptx) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  if (sink.has_errors()) return ptx;
  for (ptx::Function& function : module->functions)
    if (function.body) ptx::VisitStatements(*function.body, ForbidFusing);
  return ptx::PrintModule(*module);
}

}  // namespace gridloom::session
