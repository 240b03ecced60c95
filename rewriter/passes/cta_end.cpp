#include "rewriter/passes/cta_end.h"

#include <algorithm>
#include <array>
#include <set>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/uniformity.h"
#include "rewriter/passes/edit.h"
#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::CallGraph;
using analysis::Cfg;
using analysis::NodeId;
using ptx::Instruction;
using ptx::Statement;

constexpr std::uint32_t kBarriers = 16, kMaxStaticShared = 48 * 1024;

/// Whether an instruction makes a thread wait for others of its CTA or warp.
bool WaitsForThreads(const Instruction& instruction) {
  switch (instruction.info().cls) {
    case ptx::OpClass::kBarrier:
    case ptx::OpClass::kMbarrier:
    case ptx::OpClass::kTensor:
    case ptx::OpClass::kUnknown: return true;
    default: return instruction.Has(ptx::Mod::kSync);
  }
}

/// Marks the barriers an instruction uses; false when that cannot be told.
bool MarkBarriers(const Instruction& instruction, std::array<bool, kBarriers>& used) {
  if (instruction.info().cls != ptx::OpClass::kBarrier || instruction.Has(ptx::Mod::kWarp)) return true;
  const auto it = std::ranges::find_if(
      instruction.operands, [](const ptx::Operand& operand) { return operand.kind == ptx::OperandKind::kInt; });
  // bar.red p, a, q has its destination first; a barrier in a register may be any.
  const bool register_first = !instruction.operands.empty() &&
                              instruction.operands[0].kind == ptx::OperandKind::kRegister &&
                              !instruction.Has(ptx::Mod::kRed);
  if (it == instruction.operands.end() || register_first || it->int_literal.value >= kBarriers)
    return instruction.Has(ptx::Mod::kCluster);
  used[it->int_literal.value] = true;
  return true;
}

/// Every thread of the CTA comes to each instruction that waits for others, or none does.
bool WaitsTogether(const Cfg& cfg, const CallGraph& calls, const std::set<NodeId>& waiting) {
  const analysis::Uniformity uniformity(cfg);
  return std::ranges::all_of(cfg.instructions(), [&](const analysis::CfgInstruction& at) {
    const ptx::Function* callee = analysis::CalleeOf(*at.instruction);
    const bool waits =
        WaitsForThreads(*at.instruction) || (callee != nullptr && waiting.contains(calls.NodeOf(*callee)));
    return !waits || (uniformity.IsUniform(at.block) && !at.instruction->guard);
  });
}

}  // namespace

EndPlan PlanEnd(const CallGraph& calls, NodeId kernel, bool ends_in_functions) {
  std::array<bool, kBarriers> used{};
  bool known = true;
  const std::vector<NodeId> functions = calls.Reachable(kernel);
  std::vector<bool> waits(calls.size());
  for (const NodeId node : functions) {
    for (const analysis::CallSite& call : calls.calls(node)) known = known && !call.indirect;
    if (!calls.function(node).body) continue;
    const Cfg cfg(calls.function(node));
    waits[node] =
        std::ranges::any_of(cfg.instructions(), [](const auto& at) { return WaitsForThreads(*at.instruction); });
    for (const analysis::CfgInstruction& at : cfg.instructions()) known = MarkBarriers(*at.instruction, used) && known;
  }
  const std::vector<bool> reaching = calls.Reaching(waits);
  std::set<NodeId> waiting;  // functions in which, or in what they call, threads wait
  for (const NodeId node : functions) {
    if (reaching[node]) waiting.insert(node);
  }
  if (!known || (ends_in_functions && !waiting.empty())) return {};
  for (const NodeId node : waiting) {
    if (calls.function(node).body && !WaitsTogether(Cfg(calls.function(node)), calls, waiting)) return {};
  }
  for (std::uint32_t barrier = waiting.empty() ? 1 : kBarriers; barrier-- > 0;) {
    if (!used[barrier]) return {barrier};
  }
  return {};
}

bool HasRoomForCount(const ptx::Function& kernel) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : kernel.body->variables) {
    if (variable.space == ptx::StateSpace::kShared) bytes += variable.bytes();
  }
  return bytes + 8 <= kMaxStaticShared;
}

namespace {

/// The name of a register that holds %tid.x throughout the kernel: it is written once, before anything branches. Empty
/// when there is none; nearly every kernel has one, and one instruction less per thread to find the first of them.
std::string ThreadIndex(const ptx::Function& kernel, const FunctionEditor& editor) {
  const ptx::Operand* found = nullptr;
  for (const Statement& statement : kernel.body->statements) {
    if (std::holds_alternative<ptx::Variable*>(statement)) continue;
    const auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr || instruction->guard || instruction->info().cls == ptx::OpClass::kBranch ||
        instruction->info().cls == ptx::OpClass::kCall)
      break;
    const auto& operands = instruction->operands;
    const bool reads_x =
        instruction->info().cls == ptx::OpClass::kMove && operands.size() == 2 && operands[1].text == "%tid.x";
    if (!reads_x || operands[0].kind != ptx::OperandKind::kRegister || operands[0].variable == nullptr) continue;
    const ptx::Symbol symbol = editor.Find(operands[0].text);
    if (symbol.variable != operands[0].variable || symbol.index != operands[0].index ||
        ptx::BytesOf(symbol.variable->type) != 4)
      continue;
    found = &operands[0];
    break;
  }
  if (found == nullptr) return "";
  unsigned writes = 0;
  ptx::VisitStatements(*kernel.body, [&](const Statement& statement) {
    const auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr) return;
    VisitDefs(*instruction, [&](const ptx::Operand& operand) {
      writes += operand.variable == found->variable && operand.index == found->index;
    });
  });
  return writes == 1 ? std::string(found->text) : "";
}

}  // namespace

void RedirectEnds(ptx::Function& kernel, ptx::Label& end) {
  EditStatements(*kernel.body, [&](Statement& statement, Replacement&) {
    auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr || !instruction->Has(ptx::Trait::kExits | ptx::Trait::kReturns)) return;
    instruction->opcode = ptx::Opcode::kBra;
    instruction->name = "bra";
    instruction->modifiers.clear();
    ptx::Operand target;
    target.kind = ptx::OperandKind::kLabel;
    target.label = &end;
    target.text = end.name;
    target.loc = instruction->loc;
    instruction->operands.clear();
    instruction->operands.push_back(std::move(target));
  });
  auto& statements = kernel.body->statements;
  const auto* last = statements.empty() ? nullptr : std::get_if<Instruction>(&statements.back());
  if (last == nullptr || last->guard || last->opcode != ptx::Opcode::kBra) return;
  if (last->operands.size() == 1 && last->operands[0].label == &end) statements.pop_back();
}

namespace {

/// Lets only thread 0 of the CTA go on; the others `leave`. Most are sorted out by their x alone, which is in `x` when
/// that is not empty.
std::string OnlyFirstThread(const std::string& leave, const std::string& x) {
  return (x.empty() ? "mov.u32 %gl_t0, %tid.x;\n" : "") + ("setp.ne.u32 %gl_others, " + (x.empty() ? "%gl_t0" : x)) +
         ", 0;\n@%gl_others " + leave +
         ";\nmov.u32 %gl_t0, %tid.y;\nmov.u32 %gl_t1, %tid.z;\nor.b32 %gl_t0, %gl_t0, %gl_t1;\nsetp.ne.u32 %gl_others, "
         "%gl_t0, "
         "0;\n@%gl_others " +
         leave + ";\n";
}

/// Has one thread do something when all threads of the CTA have done their work.
class Ender {
 public:
  Ender(ptx::Module& module, ptx::Function& kernel) : module_(module), kernel_(kernel), editor_(module, kernel) {}

  void Run(const EndPlan& plan, const std::string& at_entry, const std::string& calls) {
    ptx::Label& end = kernel_.body->labels.emplace_back();
    end.name = module_.strings.Intern(editor_.NewLabel("end"));
    end.loc = kernel_.body->end_loc;
    RedirectEnds(kernel_, end);
    const std::string registers = "{\n.reg .b32 %gl_t<2>;\n.reg .pred %gl_others;\n",
                      last = "membar.gl;\n" + calls + "}\nret;\n";
    const std::string x = ThreadIndex(kernel_, editor_);
    std::string entry, text;
    if (plan.barrier) {
      if (!at_entry.empty())
        entry = registers + OnlyFirstThread("bra $gl_begin", "") + at_entry + "$gl_begin:\n}\nbar.sync 0;\n";
      text = "bar.sync " + std::to_string(*plan.barrier) + ";\n" + registers + OnlyFirstThread("ret", x) + last;
    } else {
      const std::string left = editor_.NewVariable(ptx::StateSpace::kShared, ptx::ScalarType::kU32, "threads_left");
      entry = registers + OnlyFirstThread("bra $gl_begin", "") +
              "mov.u32 %gl_t0, %ntid.x;\nmov.u32 %gl_t1, %ntid.y;\nmul.lo.u32 %gl_t0, %gl_t0, %gl_t1;\n"
              "mov.u32 %gl_t1, %ntid.z;\nmul.lo.u32 %gl_t0, %gl_t0, %gl_t1;\nst.shared.u32 [" +
              left + "], %gl_t0;\n" + at_entry + "$gl_begin:\n}\nbar.sync 0;\n";
      // What the thread wrote is ordered before its count, and all counts before the release.
      text = "membar.cta;\n" + registers + "atom.shared.add.u32 %gl_t0, [" + left +
             "], -1;\nsetp.ne.u32 %gl_others, %gl_t0, 1;\n@%gl_others ret;\n" + last;
    }
    InsertAtEntry(*kernel_.body, editor_.Text(entry, kernel_.loc));
    auto& statements = kernel_.body->statements;
    statements.emplace_back(&end);
    for (Statement& statement : editor_.Text(text, kernel_.body->end_loc)) statements.push_back(std::move(statement));
  }

 private:
  ptx::Module& module_;
  ptx::Function& kernel_;
  FunctionEditor editor_;
};

}  // namespace

void RunAtCtaEnd(ptx::Module& module, ptx::Function& kernel, const EndPlan& plan, const std::string& at_entry,
                 const std::string& at_end) {
  Ender(module, kernel).Run(plan, at_entry, at_end);
}

}  // namespace gridloom::passes
