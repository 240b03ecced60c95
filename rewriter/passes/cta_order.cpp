#include "rewriter/passes/cta_order.h"

#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "rewriter/passes/slice.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::NodeId;
using ptx::Instruction;
using ptx::Mod;
using ptx::Trait;

/// Calls `visit` for each instruction of the kernel and of what it may come to call.
template <typename Visit>
void VisitReachable(const analysis::CallGraph& calls, const ptx::Function& kernel, const Visit& visit) {
  for (const NodeId node : calls.Reachable(calls.NodeOf(kernel))) {
    const ptx::Function& function = calls.function(node);
    if (function.body == nullptr) continue;
    ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
      if (const auto* instruction = std::get_if<Instruction>(&statement)) visit(*instruction);
    });
  }
}

/// System functions whose effects no range tells, by what they do.
std::string_view EffectOf(std::string_view function) {
  if (function == "vprintf") return "it prints";
  if (function == "malloc" || function == "free" || function == "cudaMalloc" || function == "cudaFree")
    return "it allocates memory";
  return {};
}

bool MayBeGlobal(const Instruction& instruction) {
  const ptx::StateSpace space = instruction.space();
  return space == ptx::StateSpace::kNone || space == ptx::StateSpace::kGlobal || space == ptx::StateSpace::kGeneric;
}

/// The operation of a `red` that gives the same in any order among its like; nothing for all others, and for `atom`,
/// which shows what was there before.
std::optional<Mod> CommutingOperation(const Instruction& instruction) {
  if (instruction.Has(Trait::kReads) || !ptx::IsInteger(instruction.type())) return std::nullopt;
  for (const Mod operation : {Mod::kAdd, Mod::kMin, Mod::kMax, Mod::kAnd, Mod::kOr, Mod::kXor}) {
    if (instruction.Has(operation)) return operation;
  }
  return std::nullopt;
}

bool OwnOrderMatters(const analysis::CallGraph& calls, const ptx::Function& kernel) {
  std::optional<Mod> common;
  bool matters = false;
  VisitReachable(calls, kernel, [&](const Instruction& instruction) {
    if (!instruction.Has(Trait::kAtomic) || !MayBeGlobal(instruction)) return;
    const auto operation = CommutingOperation(instruction);
    matters = matters || !operation || (common && *common != *operation);
    common = operation;
  });
  return matters;
}

}  // namespace

CtaOrder OrderOf(const analysis::CallGraph& calls, const CtaWaits& waits, const ptx::Function& kernel) {
  CtaOrder order;
  if (const auto refusal = WhyTogether(calls, waits, kernel)) {
    order.why_whole = refusal->reason;
    order.loc = refusal->loc;
    return order;
  }
  for (const NodeId node : calls.Reachable(calls.NodeOf(kernel))) {
    if (order.why_whole.empty()) order.why_whole = EffectOf(calls.function(node).name);
  }
  VisitReachable(calls, kernel, [&](const Instruction& instruction) {
    if (!order.why_whole.empty() || instruction.info().cls != ptx::OpClass::kTexture ||
        instruction.Has(Trait::kQueries))
      return;
    order.why_whole = "it reads or writes textures or surfaces (" + instruction.FullName() + ")";
    order.loc = instruction.loc;
  });
  order.own_order_matters = OwnOrderMatters(calls, kernel);
  return order;
}

bool ReadsGlobal(const analysis::CallGraph& calls, const ptx::Function& kernel) {
  bool reads = false;
  VisitReachable(calls, kernel, [&](const Instruction& instruction) {
    reads = reads || (instruction.Has(Trait::kReads | Trait::kAtomic | Trait::kCopies) && MayBeGlobal(instruction));
  });
  return reads;
}

bool NamesManaged(const analysis::CallGraph& calls, const ptx::Function& kernel) {
  std::set<const ptx::Variable*> named;
  std::vector<const ptx::Variable*> open;  // their initial values have not been looked at
  const auto note = [&](const ptx::Operand& operand) {
    if (operand.variable != nullptr && named.insert(operand.variable).second) open.push_back(operand.variable);
  };
  VisitReachable(calls, kernel, [&](const Instruction& instruction) {
    for (const ptx::Operand& operand : instruction.operands) ptx::VisitOperand(operand, note);
  });
  while (!open.empty()) {
    const ptx::Variable& variable = *open.back();
    open.pop_back();
    if (variable.HasAttribute("managed")) return true;
    for (const ptx::Initializer& element : variable.initializer) {
      if (const auto* operand = std::get_if<ptx::Operand>(&element.value)) ptx::VisitOperand(*operand, note);
    }
  }
  return false;
}

}  // namespace gridloom::passes
