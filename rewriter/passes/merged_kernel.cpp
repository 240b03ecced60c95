#include "rewriter/passes/merged_kernel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rewriter/kernels/launch_records.h"
#include "rewriter/passes/cta_index.h"
#include "rewriter/passes/edit.h"
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
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;
using ptx::Statement;

std::string LineOf(const Instruction& instruction) { return ", line " + std::to_string(instruction.loc.line); }

/// What a kernel or its functions may not read, because it is of the whole grid or cannot be computed.
std::string WhyNotSpecial(const Operand& operand, bool of_kernel) {
  const auto ref = operand.kind == ptx::OperandKind::kSpecial ? ptx::SpecialFromText(operand.text) : std::nullopt;
  if (!ref) return "";
  switch (ref->special) {
    case ptx::Special::kCtaid:
    case ptx::Special::kNctaid:
      if (!of_kernel) return "reads its place in the grid in a function";
      return ref->component == 0 || ref->component == 'w' ? "reads its place in the grid as a vector" : "";
    case ptx::Special::kGridid: return "reads the number of its grid";
    case ptx::Special::kClusterid:
    case ptx::Special::kNclusterid: return "reads its cluster's place in the grid";
    case ptx::Special::kEnvreg: return ref->index == 1 || ref->index == 2 ? "synchronises its whole grid" : "";
    default: return "";
  }
}

std::string WhyNotMerged(const Instruction& instruction, bool of_kernel) {
  switch (instruction.opcode) {
    case Opcode::kUnknown: return "has an instruction that is not known";
    case Opcode::kGriddepcontrol: return "controls when another grid starts";
    case Opcode::kClusterlaunchcontrol: return "cancels CTAs of its grid";
    default: break;
  }
  std::string why;
  for (const Operand& operand : instruction.operands) {
    ptx::VisitOperand(operand, [&](const Operand& one) {
      if (why.empty()) why = WhyNotSpecial(one, of_kernel);
      if (why.empty() && one.kind == ptx::OperandKind::kSpecial) {
        const auto ref = ptx::SpecialFromText(one.text);
        const bool index = ref && (ref->special == ptx::Special::kCtaid || ref->special == ptx::Special::kNctaid);
        if (index && ptx::BitsOf(instruction.type()) == 16) why = "reads its place in the grid as 16 bits";
      }
    });
  }
  return why.empty() ? "" : why + " (" + instruction.FullName() + LineOf(instruction) + ")";
}

// Finds the launch of this CTA: first the table, of several, then the launch in it. Each search goes through numbers of
// CTAs that stand before, SIZE bytes apart from FIRST on; it leaves the place's number in %gl_low and what is left of
// the CTA's number in %gl_cta.
constexpr std::string_view kSearch = R"(
	mov.u32 %gl_low, 0;
$gl_search<n>:
	sub.u32 %gl_a, %gl_high, %gl_low;
	setp.le.u32 %gl_p, %gl_a, 1;
	@%gl_p bra $gl_found<n>;
	shr.u32 %gl_a, %gl_a, 1;
	add.u32 %gl_a, %gl_low, %gl_a;
	mad.wide.u32 %gl_at, %gl_a, <size>, <in>;
	ld.global.u32 %gl_b, [%gl_at+32];
	setp.le.u32 %gl_p, %gl_b, %gl_cta;
	selp.b32 %gl_low, %gl_a, %gl_low, %gl_p;
	selp.b32 %gl_high, %gl_high, %gl_a, %gl_p;
	bra $gl_search<n>;
$gl_found<n>:
	mad.wide.u32 %gl_at, %gl_low, <size>, <in>;
	ld.global.u32 %gl_b, [%gl_at+32];
	sub.u32 %gl_cta, %gl_cta, %gl_b;
)";

constexpr std::string_view kFind = R"(
	.reg .b32 %gl_high, %gl_low, %gl_a, %gl_b, %gl_cta;
	.reg .b64 %gl_table, %gl_at;
	.reg .pred %gl_p;
	ld.param.u64 <list>, [<param_list>];
	ld.param.u32 <tables>, [<param_tables>];
	mov.u32 %gl_cta, %ctaid.x;
	mov.u64 %gl_table, <list>;
	setp.eq.u32 %gl_p, <tables>, 0;
	@%gl_p bra $gl_one_table;
	mov.u32 %gl_high, <tables>;
<search_list>	ld.global.u64 %gl_table, [%gl_at+40];
$gl_one_table:
	ld.global.u32 %gl_high, [%gl_table+4];
	shl.b32 %gl_a, %gl_high, 2;
	add.u32 %gl_a, %gl_a, 47;
	and.b32 %gl_a, %gl_a, -16;
	cvt.u64.u32 <record>, %gl_a;
	add.u64 <record>, %gl_table, <record>;
<search_table>	mad.wide.u32 <record>, %gl_low, <record_bytes>, <record>;
	ld.global.v4.u32 {<%nctaid.x>, <%nctaid.y>, <%nctaid.z>, %gl_a}, [<record>];
	mov.u32 <%ctaid.x>, %gl_cta;
	mov.u32 <%ctaid.y>, 0;
	mov.u32 <%ctaid.z>, 0;
	setp.lt.u32 %gl_p, %gl_cta, <%nctaid.x>;
	@%gl_p bra $gl_placed;
	div.u32 %gl_a, %gl_cta, <%nctaid.x>;
	rem.u32 <%ctaid.x>, %gl_cta, <%nctaid.x>;
	rem.u32 <%ctaid.y>, %gl_a, <%nctaid.y>;
	div.u32 <%ctaid.z>, %gl_a, <%nctaid.y>;
$gl_placed:
)";

/// Threads that have read their parameters count themselves; the last ones free the tables.
constexpr std::string_view kRead = R"(
	{
	.reg .b32 %gl_mask, %gl_n, %gl_before;
	.reg .b64 %gl_wide, %gl_minus, %gl_old;
	.reg .pred %gl_p;
	membar.gl;
	activemask.b32 %gl_mask;
	mov.u32 %gl_before, %lanemask_lt;
	and.b32 %gl_before, %gl_before, %gl_mask;
	setp.ne.u32 %gl_p, %gl_before, 0;
	@%gl_p bra $gl_read;
	popc.b32 %gl_n, %gl_mask;
	cvt.u64.u32 %gl_wide, %gl_n;
	neg.s64 %gl_minus, %gl_wide;
	atom.global.add.u64 %gl_old, [<list>+16], %gl_minus;
	setp.ne.u64 %gl_p, %gl_old, %gl_wide;
	@%gl_p bra $gl_read;
	{
	.param .b64 gl_list;
	st.param.b64 [gl_list], <list>;
	.param .b32 gl_tables;
	st.param.b32 [gl_tables], <tables>;
	call gridloom_free_tables, (gl_list, gl_tables);
	}
$gl_read:
	}
)";

std::string Search(std::string_view number, std::string_view size, std::string_view in) {
  return With(With(With(std::string(kSearch), "<n>", number), "<size>", size), "<in>", in);
}

std::string ReplaceParams(ptx::Module& module, Function& kernel, std::string text) {
  kernel.params.clear();
  for (const auto& [suffix, type] : {std::pair("list", ScalarType::kU64), std::pair("tables", ScalarType::kU32)}) {
    ptx::Variable& param = kernel.params.emplace_back();
    param.loc = kernel.loc;
    param.name = module.strings.Intern(std::string(kernel.name) + "_" + suffix);
    param.space = ptx::StateSpace::kParam;
    param.type = type;
    text = With(std::move(text), "<param_" + std::string(suffix) + ">", param.name);
  }
  return text;
}

/// Makes the other form of a kernel out of a copy of it.
void Merge(ptx::Module& module, Function& kernel, std::uint32_t record) {
  std::string text = "{\n" + std::string(kFind) + "}\n<loads>" + std::string(kRead);
  text = With(With(std::move(text), "<search_list>", Search("0", "16", "<list>")), "<search_table>",
              Search("1", "4", "%gl_table"));
  text = With(std::move(text), "<record_bytes>", std::to_string(record));
  {
    FunctionEditor editor(module, kernel);
    for (const auto& [special, reg] : ReplaceSpecials(editor, {"%ctaid", "%nctaid"}))
      text = With(std::move(text), "<" + special + ">", reg);
    const std::string at = editor.NewRegister(ScalarType::kB64, "record"),
                      list = editor.NewRegister(ScalarType::kB64, "list"),
                      tables = editor.NewRegister(ScalarType::kB32, "tables");
    text = With(std::move(text), "<loads>", ReplaceParamReads(editor, at, 16));
    text = ReplaceParams(module, kernel, std::move(text));
    text = With(With(With(std::move(text), "<record>", at), "<list>", list), "<tables>", tables);
  }
  InsertAtEntry(*kernel.body, FunctionEditor(module, kernel).Text(text, kernel.loc));
}

}  // namespace

std::string WhyNotMerged(const analysis::CallGraph& calls, const Function& kernel) {
  const std::string name = "kernel " + std::string(kernel.name) + " ";
  if (kernel.body == nullptr) return name + "is not in the module";
  for (const std::string_view directive : {"reqnctapercluster", "explicitcluster"}) {
    if (kernel.FindDirective(directive) != nullptr)
      return name + "is launched in clusters (." + std::string(directive) + ")";
  }
  if (const Instruction* const other = OtherParamUse(kernel))
    return name + "does more with a parameter than to read it (" + other->FullName() + LineOf(*other) + ")";
  for (const NodeId node : calls.Reachable(calls.NodeOf(kernel))) {
    const Function& function = calls.function(node);
    if (std::ranges::any_of(calls.calls(node),
                            [](const analysis::CallSite& call) { return call.indirect || call.unknown_target; }))
      return name + "calls through a pointer";
    if (IsOfRuntime(function.name)) continue;
    static constexpr std::string_view kKnown[] = {"vprintf", "malloc", "free", "__assertfail", "__nanosleep"};
    if (function.body == nullptr) {
      if (std::ranges::find(kKnown, function.name) != std::end(kKnown)) continue;
      return name + "calls " + std::string(function.name) + ", which is not in the module";
    }
    std::string why;
    ptx::VisitStatements(*function.body, [&](const Statement& statement) {
      const auto* const instruction = std::get_if<Instruction>(&statement);
      if (instruction != nullptr && why.empty()) why = WhyNotMerged(*instruction, &function == &kernel);
    });
    if (!why.empty()) return name + why;
  }
  return "";
}

std::uint32_t RecordBytes(const Function& kernel) {
  return static_cast<std::uint32_t>(sizeof(LaunchRecord)) + (ptx::LayoutParams(kernel).bytes + 15) / 16 * 16;
}

Function& AddMergedKernel(ptx::Module& module, const Function& kernel) {
  std::string name = std::string(kernel.name) + "_gl_merged";
  while (module.FindFunction(name) != nullptr || module.FindVariable(name) != nullptr) name += "_";
  const std::uint32_t record = RecordBytes(kernel);
  Function& merged = ptx::CloneFunction(module, kernel, name);
  Merge(module, merged, record);
  return merged;
}

}  // namespace gridloom::passes
