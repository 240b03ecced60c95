#include "rewriter/passes/serial_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rewriter/passes/cta_end.h"
#include "rewriter/passes/module_text.h"
#include "rewriter/passes/param_reads.h"
#include "rewriter/passes/special_reads.h"
#include "rewriter/passes/stream_handles.h"
#include "rewriter/ptx/clone.h"
#include "rewriter/ptx/special.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::NodeId;
using ptx::Function;
using ptx::Instruction;
using ptx::Operand;
using ptx::ScalarType;
using ptx::Special;
using ptx::Statement;

/// Whether one thread cannot know it, or not in a function.
bool OnlyInGrid(const Operand& operand, bool of_kernel) {
  const auto ref = operand.kind == ptx::OperandKind::kSpecial ? ptx::SpecialFromText(operand.text) : std::nullopt;
  if (!ref) return false;
  switch (ref->special) {
    case Special::kTid:
    case Special::kNtid:
    case Special::kCtaid:
    case Special::kNctaid: return !of_kernel || ref->component == 0 || ref->component == 'w';
    case Special::kClock:
    case Special::kClockHi:
    case Special::kClock64:
    case Special::kGlobaltimer:
    case Special::kGlobaltimerLo:
    case Special::kGlobaltimerHi:
    case Special::kSmid:
    case Special::kNsmid:
    case Special::kWarpSz: return false;
    default: return true;
  }
}

std::string WhyNotSerial(const Instruction& instruction, bool of_kernel) {
  switch (instruction.info().cls) {
    case ptx::OpClass::kBarrier:
    case ptx::OpClass::kMbarrier: return "waits for other threads";
    case ptx::OpClass::kWarp:
    case ptx::OpClass::kTensor:
    case ptx::OpClass::kUnknown: return "works with other threads of its warp";
    default: break;
  }
  if (instruction.Has(ptx::Mod::kSync)) return "works with other threads of its warp";
  if (instruction.opcode == ptx::Opcode::kCp || instruction.opcode == ptx::Opcode::kAlloca)
    return "copies or allocates";
  if (!of_kernel && instruction.Has(ptx::Trait::kExits)) return "ends threads in a function";
  const ptx::StateSpace space = instruction.space();
  std::string why = space == ptx::StateSpace::kShared ? "uses shared memory" : "";
  for (const Operand& operand : instruction.operands) {
    ptx::VisitOperand(operand, [&](const Operand& one) {
      if (one.kind == ptx::OperandKind::kSymbol && one.variable != nullptr &&
          one.variable->space == ptx::StateSpace::kShared)
        why = "uses shared memory";
      if (OnlyInGrid(one, of_kernel)) why = "reads " + std::string(one.text);
    });
  }
  return why;
}

/// The loops: %gl_tid_x and so on count up.
constexpr std::string_view kBegin = R"(
	ld.param.b64 <buffer>, [<param>];
	{
	.reg .b32 %gl_none;
	cvta.to.local.u64 <buffer>, <buffer>;
	ld.local.v4.u32 {<%nctaid.x>, <%nctaid.y>, <%nctaid.z>, %gl_none}, [<buffer>+-32];
	ld.local.v2.u32 {<%ntid.x>, <%ntid.y>}, [<buffer>+-16];
	ld.local.u32 <%ntid.z>, [<buffer>+-8];
	}
<loads>	mov.u32 <%ctaid.x>, 0;
	mov.u32 <%ctaid.y>, 0;
	mov.u32 <%ctaid.z>, 0;
	mov.u32 <%tid.x>, 0;
	mov.u32 <%tid.y>, 0;
	mov.u32 <%tid.z>, 0;
)";

constexpr std::string_view kCount = R"(
	{
	.reg .pred %gl_more;
	add.u32 <count>, <count>, 1;
	setp.lt.u32 %gl_more, <count>, <end>;
	@%gl_more bra <begin>;
	mov.u32 <count>, 0;
	}
)";

std::string FillIn(std::string text, const SpecialRegisters& registers) {
  for (const auto& [special, reg] : registers) text = With(std::move(text), "<" + special + ">", reg);
  return text;
}

std::string CountText(std::string_view begin) {
  std::string text;
  for (const std::string_view what : {"tid", "ctaid"}) {
    for (const char axis : {'x', 'y', 'z'}) {
      const std::string name = std::string(what) + "." + axis;
      text += With(With(With(std::string(kCount), "<count>", "<%" + name + ">"), "<end>", "<%n" + name + ">"),
                   "<begin>", begin);
    }
  }
  return text + "\tret;\n";
}

ptx::Label& NewLabel(ptx::Module& module, FunctionEditor& editor, std::string_view hint) {
  ptx::Label& label = editor.function().body->labels.emplace_back();
  label.name = module.strings.Intern(editor.NewLabel(hint));
  label.loc = editor.function().loc;
  return label;
}

void Serialise(ptx::Module& module, Function& function) {
  std::string begin(kBegin), end;
  ptx::Label *body = nullptr, *next = nullptr;
  {
    FunctionEditor editor(module, function);
    body = &NewLabel(module, editor, "body");
    next = &NewLabel(module, editor, "next");
    const SpecialRegisters registers = ReplaceSpecials(editor, {"%tid", "%ntid", "%ctaid", "%nctaid"});
    const std::string buffer = editor.NewRegister(ScalarType::kB64, "buffer");
    begin = With(std::move(begin), "<loads>", ReplaceParamReads(editor, buffer, 0, "local"));
    begin = FillIn(With(std::move(begin), "<buffer>", buffer), registers);
    end = FillIn(CountText(body->name), registers);
  }
  function.params.clear();
  ptx::Variable& param = function.params.emplace_back();
  param.loc = function.loc;
  param.name = module.strings.Intern(std::string(function.name) + "_buffer");
  param.space = ptx::StateSpace::kParam;
  param.type = ScalarType::kB64;
  begin = With(std::move(begin), "<param>", param.name);
  RedirectEnds(function, *next);
  FunctionEditor editor(module, function);
  std::vector<Statement> entry = editor.Text(begin, function.loc);
  entry.emplace_back(body);
  InsertAtEntry(*function.body, std::move(entry));
  function.body->statements.emplace_back(next);
  for (Statement& statement : editor.Text(end, function.body->end_loc))
    function.body->statements.push_back(std::move(statement));
}

}  // namespace

std::string WhyNotSerial(const analysis::CallGraph& calls, const CtaWaits& waits, const Function& kernel) {
  const NodeId node = calls.NodeOf(kernel);
  for (const NodeId one : calls.Reachable(node)) {
    const Function& function = calls.function(one);
    const std::string in = one == node ? "" : " in " + std::string(function.name);
    const RuntimeCall call = RuntimeCallOf(function.name);
    if (call == RuntimeCall::kGetBuffer || call == RuntimeCall::kLaunch || call == RuntimeCall::kLaunchBuffer)
      return "it launches kernels itself";
    if (IsOfRuntime(function.name)) return "it calls " + PublicName(function.name);
    if (function.body == nullptr) continue;
    std::string why;
    ptx::VisitStatements(*function.body, [&](const Statement& statement) {
      const auto* const instruction = std::get_if<Instruction>(&statement);
      if (instruction == nullptr || !why.empty()) return;
      why = WhyNotSerial(*instruction, one == node);
      if (!why.empty())
        why =
            "it " + why + in + " (" + instruction->FullName() + ", line " + std::to_string(instruction->loc.line) + ")";
    });
    if (!why.empty()) return why;
  }
  const auto& wait = waits.of(node);
  return wait ? wait->reason : "";
}

std::string SerialFunctionName(const Function& kernel) { return "gridloom_serial_" + std::string(kernel.name); }

void AddSerialFunction(ptx::Module& module, const Function& kernel) {
  Function& function = ptx::CloneFunction(module, kernel, SerialFunctionName(kernel));
  function.is_entry = false;
  function.linkage = ptx::Linkage::kInternal;
  function.directives.clear();
  Serialise(module, function);
}

}  // namespace gridloom::passes
