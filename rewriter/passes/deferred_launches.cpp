#include "rewriter/passes/deferred_launches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rewriter/passes/consolidate_text.h"
#include "rewriter/passes/cta_end.h"
#include "rewriter/passes/lower_exits.h"
#include "rewriter/passes/module_text.h"

namespace gridloom::passes {
namespace {

using analysis::CallGraph;
using analysis::NodeId;
using ptx::Function;

constexpr std::string_view kBlockLists = ".shared .align 8 .b64 gridloom_list_<kernel>;\n";
constexpr std::string_view kGridLists =
    ".shared .align 4 .b32 gridloom_grid_place;\n.global .align 8 .b64 gridloom_grid_list_<kernel>[<places>];\n";
constexpr std::string_view kPlaces = "1024";  // of grids that run at a time: GPUs have room for 128

/// Tables of one shape are launched together, as many as make a grid. One alone is launched without a list of tables,
/// as it is when there is no memory for that. There is nobody to be told of a launch that fails.
constexpr std::string_view kLaunchList = R"(
.func gridloom_launch_list_<kernel>(.param .b64 list)
{
	.reg .b64 %list, %at, %next, %rest, %shape, %its_shape, %tables, %entry, %wide, %made, %kernel, %stream;
	.reg .b32 %count, %ctas, %start, %sum, %zero, %threads, %grid_x, %grid_y, %grid_z, %shared, %block_x, %block_y, %block_z, %result;
	.reg .pred %is, %fits;
	ld.param.b64 %list, [list];
	mov.b32 %grid_y, 1;
	mov.b32 %grid_z, 1;
	mov.b32 %zero, 0;
	mov.b64 %stream, <forgotten>;
SHAPE:
	setp.eq.u64 %is, %list, 0;
	@%is bra DONE;
	ld.global.u64 %shape, [%list+24];
	mov.u64 %at, %list;
	mov.b32 %count, 0;
	mov.b32 %start, 0;
COUNT:
	ld.global.u64 %its_shape, [%at+24];
	ld.global.u32 %ctas, [%at];
	add.u32 %sum, %start, %ctas;
	setp.eq.u64 %fits, %its_shape, %shape;
	setp.le.and.u32 %fits, %sum, 1073741824, %fits;
	@%fits mov.b32 %start, %sum;
	@%fits add.u32 %count, %count, 1;
	ld.global.u64 %at, [%at+8];
	setp.ne.u64 %is, %at, 0;
	@%is bra COUNT;
	setp.eq.u32 %is, %count, 1;
	@%is bra ONE;
	mad.wide.u32 %wide, %count, 16, 32;
	{
	.param .b64 a_bytes;
	st.param.b64 [a_bytes], %wide;
	.param .b64 a_result;
	call (a_result), malloc, (a_bytes);
	ld.param.b64 %tables, [a_result];
	}
	setp.eq.u64 %is, %tables, 0;
	@%is bra ONE;
	mov.u64 %at, %list;
	mov.u64 %entry, %tables;
	mov.b64 %rest, 0;
	mov.b32 %start, 0;
MOVE:
	ld.global.u64 %next, [%at+8];
	ld.global.u64 %its_shape, [%at+24];
	ld.global.u32 %ctas, [%at];
	add.u32 %sum, %start, %ctas;
	setp.eq.u64 %fits, %its_shape, %shape;
	setp.le.and.u32 %fits, %sum, 1073741824, %fits;
	@!%fits bra LEAVE;
	st.global.v2.u32 [%entry+32], {%start, %zero};
	st.global.u64 [%entry+40], %at;
	add.u64 %entry, %entry, 16;
	mov.b32 %start, %sum;
	bra MOVED;
LEAVE:
	st.global.u64 [%at+8], %rest;
	mov.u64 %rest, %at;
MOVED:
	mov.u64 %at, %next;
	setp.ne.u64 %is, %at, 0;
	@%is bra MOVE;
	bra MAKE;
ONE:
	mov.u64 %tables, %list;
	ld.global.u64 %rest, [%list+8];
	ld.global.u32 %start, [%list];
	mov.b32 %count, 0;
MAKE:
	mov.b64 {%sum, %shared}, %shape;
	and.b32 %block_x, %sum, 2047;
	shr.u32 %sum, %sum, 11;
	and.b32 %block_y, %sum, 2047;
	shr.u32 %block_z, %sum, 11;
	mul.lo.u32 %threads, %block_x, %block_y;
	mul.lo.u32 %threads, %threads, %block_z;
	mul.wide.u32 %wide, %start, %threads;
	st.global.u64 [%tables+16], %wide;
	membar.gl;
	mov.b32 %grid_x, %start;
	mov.u64 %kernel, <merged>;
<get>	setp.eq.u64 %is, %made, 0;
	@%is trap;
	st.global.b64 [%made], %tables;
	st.global.b32 [%made+8], %count;
<call>	setp.ne.u32 %is, %result, 0;
	@%is trap;
	mov.u64 %list, %rest;
	bra SHAPE;
DONE:
	ret;
}
)";

/// Grids that run have places, by number; ids are %gridid + 1, and 0 where no grid is. A lock is held while one is
/// looked for.
constexpr std::string_view kGridFunctions = R"(
.global .align 8 .b64 gridloom_grid_ids[<places>];
.global .align 8 .b64 gridloom_grid_ended[<places>];
.global .align 4 .b32 gridloom_grid_lock;
.global .align 4 .b32 gridloom_grid_used;
.func (.param .b32 place) gridloom_enter_grid();
.func (.param .b32 last) gridloom_leave_grid(.param .b32 place);
.func gridloom_forget_grid(.param .b32 place);
.func (.param .b32 place) gridloom_enter_grid()
{
	.reg .b64 %id, %at, %ids, %its_id;
	.reg .b32 %place, %free, %used, %held;
	.reg .pred %is;
	mov.u64 %id, %gridid;
	add.u64 %id, %id, 1;
	mov.u64 %ids, gridloom_grid_ids;
LOCK:
	atom.global.cas.b32 %held, [gridloom_grid_lock], 0, 1;
	setp.ne.u32 %is, %held, 0;
	@%is bra LOCK;
	membar.gl;
	ld.volatile.global.u32 %used, [gridloom_grid_used];
	mov.b32 %free, %used;
	mov.b32 %place, 0;
LOOK:
	setp.ge.u32 %is, %place, %used;
	@%is bra ENTER;
	mad.wide.u32 %at, %place, 8, %ids;
	ld.volatile.global.u64 %its_id, [%at];
	setp.eq.u64 %is, %its_id, %id;
	@%is bra FOUND;
	setp.eq.u64 %is, %its_id, 0;
	selp.b32 %free, %place, %free, %is;
	add.u32 %place, %place, 1;
	bra LOOK;
ENTER:
	mov.b32 %place, %free;
	setp.ge.u32 %is, %place, <places>;
	@%is trap;
	add.u32 %free, %place, 1;
	max.u32 %used, %used, %free;
	st.volatile.global.u32 [gridloom_grid_used], %used;
	mad.wide.u32 %at, %place, 8, %ids;
	st.volatile.global.u64 [%at], %id;
	mov.u64 %at, gridloom_grid_ended;
	mad.wide.u32 %at, %place, 8, %at;
	mov.b64 %id, 0;
	st.volatile.global.u64 [%at], %id;
FOUND:
	membar.gl;
	atom.global.exch.b32 %held, [gridloom_grid_lock], 0;
	st.param.b32 [place], %place;
	ret;
}
.func (.param .b32 last) gridloom_leave_grid(.param .b32 place)
{
	.reg .b64 %at, %ended, %ctas, %wide;
	.reg .b32 %place, %x, %y, %last;
	.reg .pred %is;
	ld.param.b32 %place, [place];
	mov.u32 %x, %nctaid.x;
	mov.u32 %y, %nctaid.y;
	mul.wide.u32 %ctas, %x, %y;
	mov.u32 %x, %nctaid.z;
	cvt.u64.u32 %wide, %x;
	mul.lo.u64 %ctas, %ctas, %wide;
	mov.u64 %at, gridloom_grid_ended;
	mad.wide.u32 %at, %place, 8, %at;
	atom.global.add.u64 %ended, [%at], 1;
	add.u64 %ended, %ended, 1;
	setp.eq.u64 %is, %ended, %ctas;
	selp.b32 %last, 1, 0, %is;
	membar.gl;
	st.param.b32 [last], %last;
	ret;
}
.func gridloom_forget_grid(.param .b32 place)
{
	.reg .b64 %at, %none;
	.reg .b32 %place;
	ld.param.b32 %place, [place];
	mov.u64 %at, gridloom_grid_ids;
	mad.wide.u32 %at, %place, 8, %at;
	membar.gl;
	mov.b64 %none, 0;
	st.volatile.global.u64 [%at], %none;
	ret;
}
)";

// ---------------------------------------------------------------------------------------------------------------------
// What kernels do at both ends
// ---------------------------------------------------------------------------------------------------------------------

std::string BlockEntry(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "st.shared.b64 [gridloom_list_" + name + "], 0;\n";
  return text;
}

std::string LaunchList(const std::string& name, const std::string& load) {
  return "{\n.reg .b64 %gl_list, %gl_none;\n.param .b64 gl_param;\n" + load +
         "st.param.b64 [gl_param], %gl_list;\ncall gridloom_launch_list_" + name + ", (gl_param);\n}\n";
}

std::string BlockEnd(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += LaunchList(name, "ld.shared.b64 %gl_list, [gridloom_list_" + name + "];\n");
  return text;
}

constexpr std::string_view kGridEntry =
    "{\n.param .b32 gl_place;\ncall (gl_place), gridloom_enter_grid;\nld.param.b32 %gl_t0, [gl_place];\n}\n"
    "st.shared.b32 [gridloom_grid_place], %gl_t0;\n";

std::string GridEnd(const std::vector<std::string>& names) {
  std::string text =
      "ld.shared.b32 %gl_t0, [gridloom_grid_place];\n"
      "{\n.param .b32 gl_place;\nst.param.b32 [gl_place], %gl_t0;\n.param .b32 gl_last;\ncall (gl_last), "
      "gridloom_leave_grid, (gl_place);\n"
      "ld.param.b32 %gl_t1, [gl_last];\n}\n"
      "setp.eq.u32 %gl_others, %gl_t1, 0;\n@%gl_others ret;\n";
  for (const std::string& name : names) {
    text += LaunchList(
        name, "mov.u64 %gl_none, gridloom_grid_list_" + name +
                  ";\nmad.wide.u32 %gl_none, %gl_t0, 8, %gl_none;\natom.global.exch.b64 %gl_list, [%gl_none], 0;\n");
  }
  return text +
         "{\n.param .b32 gl_place;\nst.param.b32 [gl_place], %gl_t0;\ncall gridloom_forget_grid, (gl_place);\n}\n";
}

/// The functions, of those in which threads end, that a kernel may call.
std::set<std::string> ExitsOf(const CallGraph& calls, NodeId kernel, const std::set<std::string>& with_exits) {
  std::set<std::string> exits;
  for (const NodeId node : calls.Reachable(kernel)) {
    const std::string name(calls.function(node).name);
    if (with_exits.contains(name)) exits.insert(name);
  }
  return exits;
}

/// A kernel that launches at its end.
struct Ending {
  Function* kernel = nullptr;
  EndPlan plan{};
  std::vector<std::string> names{};  ///< of kernels that it launches
};

}  // namespace

std::string WhyNotDeferred(const CallGraph& calls, const std::set<std::string>& with_exits, const Function& kernel) {
  const std::string name = "kernel " + std::string(kernel.name) + " ";
  const std::string why = CannotLowerExits(calls, ExitsOf(calls, calls.NodeOf(kernel), with_exits));
  if (!why.empty()) return "it cannot be told when blocks of " + name + "end: " + why;
  return HasRoomForCount(kernel) ? "" : "the shared memory of " + name + "leaves no room for lists of launches";
}

std::string ListsText(const Function& kernel, ConsolidateScope scope) {
  if (scope == ConsolidateScope::kWarp) return "";
  std::string text(scope == ConsolidateScope::kBlock ? kBlockLists : kGridLists);
  text = With(With(std::move(text), "<kernel>", kernel.name), "<places>", kPlaces);
  return text + ".func gridloom_launch_list_" + std::string(kernel.name) + "(.param .b64 list);\n";
}

std::string LaunchListText(const LaunchText& of) {
  std::string text = With(With(std::string(kLaunchList), "<get>", kGetBuffer), "<call>", kLaunchBuffer);
  return With(With(std::move(text), "<merged>", of.merged->name), "<kernel>", of.kernel->name);
}

void LaunchAtEnds(ptx::Module& module, const std::vector<const Function*>& kernels, ConsolidateScope scope) {
  if (scope == ConsolidateScope::kGrid) AddModuleText(module, With(std::string(kGridFunctions), "<places>", kPlaces));
  std::vector<Ending> endings;
  std::set<std::string> lowered;
  {
    const CallGraph calls(module);
    const std::set<std::string> with_exits = FunctionsWithExits(calls);
    for (Function& function : module.functions) {
      if (!function.is_entry || function.body == nullptr) continue;
      const NodeId node = calls.NodeOf(function);
      const std::vector<NodeId> reachable = calls.Reachable(node);
      Ending ending{.kernel = &function};
      for (const Function* const kernel : kernels) {
        const NodeId launch = calls.NodeOf(*module.FindFunction(LaunchFunctionsOf(*kernel).launch));
        if (std::ranges::find(reachable, launch) != reachable.end()) ending.names.emplace_back(kernel->name);
      }
      if (ending.names.empty()) continue;
      const std::set<std::string> exits = ExitsOf(calls, node, with_exits);
      lowered.insert(exits.begin(), exits.end());
      ending.plan = PlanEnd(calls, node, !exits.empty());
      endings.push_back(std::move(ending));
    }
  }
  LowerExits(module, lowered);
  for (const Ending& ending : endings) {
    const bool grid = scope == ConsolidateScope::kGrid;
    RunAtCtaEnd(module, *ending.kernel, ending.plan, grid ? std::string(kGridEntry) : BlockEntry(ending.names),
                grid ? GridEnd(ending.names) : BlockEnd(ending.names));
  }
}

}  // namespace gridloom::passes
