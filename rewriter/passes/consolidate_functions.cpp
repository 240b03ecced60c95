#include "rewriter/passes/consolidate_functions.h"

#include "rewriter/passes/aggregate_functions.h"
#include "rewriter/passes/merged_kernel.h"
#include "rewriter/passes/module_text.h"

namespace gridloom::passes {
namespace {

using ptx::Function;

constexpr std::string_view kRuntime =
    ".extern .func (.param .b64 result) <prefix>GetParameterBufferV2(.param .b64 kernel, .param .align 4 .b8 grid[12],"
    " .param .align 4 .b8 block[12], .param .b32 shared);\n"
    ".extern .func (.param .b32 result) <prefix>LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);\n"
    ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n"
    ".extern .func free(.param .b64 pointer);\n";

constexpr std::string_view kOwn =
    ".func (.param .b64 result) gridloom_consolidated_buffer(.param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12],"
    " .param .b32 shared, .param .b64 slot);\n"
    ".func (.param .b32 result) <plain>(.param .b64 buffer, .param .b64 stream);\n"
    ".func (.param .b32 result) <either>(.param .b64 buffer, .param .b64 stream);\n"
    ".func (.param .b32 result) <launch>(.param .b64 buffer);\n";

/// Copies parameters from FROM to TO, which are aligned to 16 bytes; not a byte more.
std::string CopyText(std::uint32_t bytes, const std::string& from, const std::string& to) {
  std::string text;
  std::uint32_t at = 0;
  const auto copy = [&](const std::string& type, const std::string& values) {
    text += "\tld." + type + " " + values + ", [" + from + "+" + std::to_string(at) + "];\n\tst." + type + " [" + to + "+" +
            std::to_string(at) + "], " + values + ";\n";
  };
  for (; at + 16 <= bytes; at += 16) copy("v2.b64", "{%copy0, %copy1}");
  for (; at + 8 <= bytes; at += 8) copy("b64", "%copy0");
  for (; at + 4 <= bytes; at += 4) copy("b32", "%copy2");
  for (; at < bytes; ++at) copy("b8", "%copy3");
  return text;
}
constexpr std::string_view kCopyRegisters = "\t.reg .b64 %copy0, %copy1;\n\t.reg .b32 %copy2;\n\t.reg .b16 %copy3;\n";

/// %made becomes a parameter buffer of the runtime, 0 when there is none.
constexpr std::string_view kGetBuffer = R"(
	{
	.param .b64 a_kernel;
	st.param.b64 [a_kernel], %kernel;
	.param .align 4 .b8 a_grid[12];
	st.param.b32 [a_grid], <x>;
	st.param.b32 [a_grid+4], <y>;
	st.param.b32 [a_grid+8], <z>;
	.param .align 4 .b8 a_block[12];
	st.param.b32 [a_block], %block_x;
	st.param.b32 [a_block+4], %block_y;
	st.param.b32 [a_block+8], %block_z;
	.param .b32 a_shared;
	st.param.b32 [a_shared], %shared;
	.param .b64 a_result;
	call (a_result), <prefix>GetParameterBufferV2, (a_kernel, a_grid, a_block, a_shared);
	ld.param.b64 %made, [a_result];
	}
)";

constexpr std::string_view kLaunchBuffer = R"(
	{
	.param .b64 a_buffer;
	st.param.b64 [a_buffer], %made;
	.param .b64 a_stream;
	st.param.b64 [a_stream], <stream>;
	.param .b32 a_result;
	call (a_result), <prefix>LaunchDeviceV2, (a_buffer, a_stream);
	ld.param.b32 %result, [a_result];
	}
)";

constexpr std::string_view kLoadSlot = R"(
	ld.param.b64 %buffer, [buffer];
	ld.v4.u32 {%grid_x, %grid_y, %grid_z, %shared}, [%buffer+-32];
	ld.v2.u32 {%block_x, %block_y}, [%buffer+-16];
	ld.u32 %block_z, [%buffer+-8];
)";
constexpr std::string_view kSlotRegisters =
    "\t.reg .b64 %buffer, %made, %kernel;\n\t.reg .b32 %grid_x, %grid_y, %grid_z, %shared, %block_x, %block_y, %block_z, %result;\n";

constexpr std::string_view kNoMemory = "2";  // cudaErrorMemoryAllocation

constexpr std::string_view kPlain = R"(
.func (.param .b32 result) <plain>(.param .b64 buffer, .param .b64 stream)
{
<registers>	.reg .b64 %stream;
	.reg .pred %none;
<load>	ld.param.b64 %stream, [stream];
	mov.b64 %kernel, <kernel>;
	mov.b32 %result, <no_memory>;
<get>	setp.eq.u64 %none, %made, 0;
	@%none bra DONE;
<copy>
<call>
DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

constexpr std::string_view kEitherText = R"(
.func (.param .b32 result) <either>(.param .b64 buffer, .param .b64 stream)
{
	.reg .b64 %buffer, %stream;
	.reg .b32 %result;
	.reg .pred %group;
	ld.param.b64 %buffer, [buffer];
	ld.param.b64 %stream, [stream];
	setp.eq.u64 %group, %stream, <forgotten>;
	setp.eq.or.u64 %group, %stream, <no_stream>U, %group;
	@%group bra GROUP;
	{
	.param .b64 a_buffer;
	st.param.b64 [a_buffer], %buffer;
	.param .b64 a_stream;
	st.param.b64 [a_stream], %stream;
	.param .b32 a_result;
	call (a_result), <plain>, (a_buffer, a_stream);
	ld.param.b32 %result, [a_result];
	}
	bra DONE;
GROUP:
	{
	.param .b64 a_buffer;
	st.param.b64 [a_buffer], %buffer;
	.param .b32 a_result;
	call (a_result), <launch>, (a_buffer);
	ld.param.b32 %result, [a_result];
	}
DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

// One launch for the lanes of a warp that come here together, with blocks of one shape: the first of them makes a table, each puts its launch
// there, the first one launches. A lane by itself, one whose grid or block is out of the ordinary, and all where there is no memory: as ever.
constexpr std::string_view kWarp = R"(
.func (.param .b32 result) <launch>(.param .b64 buffer)
{
<registers>	.reg .b64 %ctas_wide, %table, %place, %left, %bytes;
	.reg .b32 %ctas, %threads, %key, %lane, %mask, %group, %first, %count, %other, %low, %high, %index, %start;
	.reg .pred %odd, %same, %is_first, %none;
<load>	mul.wide.u32 %ctas_wide, %grid_x, %grid_y;
	min.u64 %ctas_wide, %ctas_wide, 65536;
	cvt.u32.u64 %ctas, %ctas_wide;
	min.u32 %other, %grid_z, 65536;
	mul.wide.u32 %ctas_wide, %ctas, %other;
	min.u64 %ctas_wide, %ctas_wide, 65536;
	cvt.u32.u64 %ctas, %ctas_wide;
	sub.u32 %other, %ctas, 1;
	setp.ge.u32 %odd, %other, 65535;
	sub.u32 %other, %block_x, 1;
	setp.ge.or.u32 %odd, %other, 1024, %odd;
	sub.u32 %other, %block_y, 1;
	setp.ge.or.u32 %odd, %other, 1024, %odd;
	sub.u32 %other, %block_z, 1;
	setp.ge.or.u32 %odd, %other, 64, %odd;
	@%odd bra PLAIN;
	shl.b32 %key, %block_z, 11;
	or.b32 %key, %key, %block_y;
	shl.b32 %key, %key, 11;
	or.b32 %key, %key, %block_x;
	mul.lo.u32 %threads, %block_x, %block_y;
	mul.lo.u32 %threads, %threads, %block_z;
	mov.u32 %lane, %laneid;
SHAPE:
	activemask.b32 %mask;
	brev.b32 %first, %mask;
	bfind.shiftamt.u32 %first, %first;
	shfl.sync.idx.b32 %other, %key, %first, 31, %mask;
	setp.eq.u32 %same, %other, %key;
	shfl.sync.idx.b32 %other, %shared, %first, 31, %mask;
	setp.eq.and.u32 %same, %other, %shared, %same;
	vote.sync.ballot.b32 %group, %same, %mask;
	@!%same bra SHAPE;
	popc.b32 %count, %group;
	setp.eq.u32 %none, %count, 1;
	@%none bra PLAIN;
	setp.eq.u32 %is_first, %lane, %first;
	shl.b32 %other, %count, 2;
	add.u32 %other, %other, 47;
	and.b32 %other, %other, -16;
	mov.b64 %table, 0;
	@!%is_first bra MADE;
	mad.wide.u32 %bytes, %count, <record_bytes>, 0;
	cvt.u64.u32 %place, %other;
	add.u64 %bytes, %bytes, %place;
	{
	.param .b64 a_bytes;
	st.param.b64 [a_bytes], %bytes;
	.param .b64 a_result;
	call (a_result), malloc, (a_bytes);
	ld.param.b64 %table, [a_result];
	}
	setp.eq.u64 %none, %table, 0;
	@%none bra MADE;
	mov.b64 %left, 0;
	st.v2.b64 [%table], {%left, %left};
MADE:
	mov.b64 {%low, %high}, %table;
	shfl.sync.idx.b32 %low, %low, %first, 31, %group;
	shfl.sync.idx.b32 %high, %high, %first, 31, %group;
	mov.b64 %table, {%low, %high};
	setp.eq.u64 %none, %table, 0;
	@%none bra PLAIN;
	bar.warp.sync %group;
	mov.b32 %low, 1;
	mov.b64 %left, {%ctas, %low};
	atom.add.u64 %left, [%table], %left;
	mov.b64 {%start, %index}, %left;
	mul.wide.u32 %place, %index, 4;
	add.u64 %place, %table, %place;
	st.u32 [%place+32], %start;
	cvt.u64.u32 %bytes, %other;
	mad.wide.u32 %place, %index, <record_bytes>, %bytes;
	add.u64 %place, %table, %place;
	mov.b32 %other, 0;
	st.v4.u32 [%place], {%grid_x, %grid_y, %grid_z, %other};
	add.u64 %place, %place, 16;
<copy>	membar.gl;
	bar.warp.sync %group;
	@!%is_first bra TOLD;
	ld.u32 %ctas, [%table];
	mul.wide.u32 %left, %ctas, %threads;
	st.u64 [%table+16], %left;
	membar.gl;
	mov.b64 %kernel, <merged>;
	mov.b32 %result, <no_memory>;
<get>	setp.eq.u64 %none, %made, 0;
	@%none bra FAILED;
	st.u64 [%made], %table;
	st.u32 [%made+8], %count;
<call>
	setp.eq.u32 %none, %result, 0;
	@%none bra TOLD;
FAILED:
	{
	.param .b64 a_pointer;
	st.param.b64 [a_pointer], %table;
	call free, (a_pointer);
	}
TOLD:
	bar.warp.sync %group;
	shfl.sync.idx.b32 %result, %result, %first, 31, %group;
	bra DONE;
PLAIN:
	mov.b64 %made, <forgotten>;
	{
	.param .b64 a_buffer;
	st.param.b64 [a_buffer], %buffer;
	.param .b64 a_stream;
	st.param.b64 [a_stream], %made;
	.param .b32 a_result;
	call (a_result), <plain>, (a_buffer, a_stream);
	ld.param.b32 %result, [a_result];
	}
DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

constexpr std::string_view kSlot = R"(
.func (.param .b64 result) gridloom_consolidated_buffer(.param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 slot)
{
	.reg .b64 %slot;
	.reg .b32 %x, %y, %z, %w;
	ld.param.b64 %slot, [slot];
	ld.param.b32 %x, [grid];
	ld.param.b32 %y, [grid+4];
	ld.param.b32 %z, [grid+8];
	ld.param.b32 %w, [shared];
	st.v4.b32 [%slot], {%x, %y, %z, %w};
	ld.param.b32 %x, [block];
	ld.param.b32 %y, [block+4];
	ld.param.b32 %z, [block+8];
	mov.b32 %w, 0;
	st.v4.b32 [%slot+16], {%x, %y, %z, %w};
	add.u64 %slot, %slot, <slot_head>;
	st.param.b64 [result], %slot;
	ret;
}
)";

std::string Get(std::string_view x, std::string_view y, std::string_view z) {
  return With(With(With(std::string(kGetBuffer), "<x>", x), "<y>", y), "<z>", z);
}

/// Puts in what all texts have.
std::string Fill(std::string text, const Function& kernel, std::string_view prefix) {
  const LaunchFunctions functions = LaunchFunctionsOf(kernel);
  const std::pair<std::string_view, std::string> kAll[] = {
      {"<registers>", std::string(kSlotRegisters) + std::string(kCopyRegisters)},
      {"<load>", std::string(kLoadSlot)},
      {"<no_memory>", std::string(kNoMemory)},
      {"<forgotten>", std::to_string(kForgotten)},
      {"<no_stream>", std::to_string(kNoStream)},
      {"<record_bytes>", std::to_string(RecordBytes(kernel))},
      {"<prefix>", std::string(prefix)},
      {"<plain>", functions.plain},
      {"<either>", functions.either},
      {"<launch>", functions.launch},
      {"<kernel>", std::string(kernel.name)},
  };
  for (const auto& [placeholder, by] : kAll) text = With(std::move(text), placeholder, by);
  return text;
}

}  // namespace

std::uint32_t SlotBytes(const Function& kernel) { return kSlotHead + (ptx::LayoutParams(kernel).bytes + 15) / 16 * 16; }

LaunchFunctions LaunchFunctionsOf(const Function& kernel) {
  const std::string name = "_" + std::string(kernel.name);
  return {"gridloom_plain" + name, "gridloom_either" + name, "gridloom_consolidated" + name};
}

std::string DeclarationsText(const Function& kernel, std::string_view prefix) {
  return Fill(std::string(kRuntime) + std::string(kOwn), kernel, prefix);
}

std::string SlotFunctionText() { return With(std::string(kSlot), "<slot_head>", std::to_string(kSlotHead)); }

std::string DefinitionsText(const LaunchText& of) {
  const std::uint32_t bytes = ptx::LayoutParams(*of.kernel).bytes;
  // What a kernel's name stands for is the module's.
  std::string text = ".extern .func <kernel>();\n.extern .func <merged>();\n" + std::string(kPlain);
  text = With(std::move(text), "<get>", Get("%grid_x", "%grid_y", "%grid_z"));
  text = With(std::move(text), "<call>", With(std::string(kLaunchBuffer), "<stream>", "%stream"));
  text = With(std::move(text), "<copy>", CopyText(bytes, "%buffer", "%made"));
  std::string warp = With(std::string(kWarp), "<get>", Get("%ctas", "1", "1"));
  warp = With(std::move(warp), "<call>", With(std::string(kLaunchBuffer), "<stream>", "<forgotten>"));
  warp = With(std::move(warp), "<copy>", CopyText(bytes, "%buffer", "%place"));
  text += std::string(kEitherText) + warp;
  return DeclarationsText(*of.kernel, of.prefix) + Fill(With(std::move(text), "<merged>", of.merged->name), *of.kernel, of.prefix);
}

}  // namespace gridloom::passes
