// The PTX of what `consolidate` adds, with <placeholders>: consolidate_functions.cpp and deferred_launches.cpp fill
// them in.
#pragma once

#include <string_view>

namespace gridloom::passes {

inline constexpr std::string_view kRuntime =
    ".extern .func (.param .b64 result) <prefix>GetParameterBufferV2(.param .b64 kernel, .param .align 4 .b8 grid[12],"
    " .param .align 4 .b8 block[12], .param .b32 shared);\n"
    ".extern .func (.param .b32 result) <prefix>LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);\n"
    ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n"
    ".extern .func free(.param .b64 pointer);\n";

inline constexpr std::string_view kOwn =
    ".func (.param .b64 result) gridloom_consolidated_buffer(.param .b64 kernel, .param .align 4 .b8 grid[12], .param "
    ".align 4 .b8 "
    "block[12],"
    " .param .b32 shared, .param .b64 slot);\n"
    ".func (.param .b32 result) <plain>(.param .b64 buffer, .param .b64 stream);\n"
    ".func (.param .b32 result) <launch>(.param .b64 buffer, .param .b64 stream);\n";

/// %made becomes a parameter buffer of the runtime, 0 when there is none.
inline constexpr std::string_view kGetBuffer = R"(
	{
	.param .b64 a_kernel;
	st.param.b64 [a_kernel], %kernel;
	.param .align 4 .b8 a_grid[12];
	st.param.b32 [a_grid], %grid_x;
	st.param.b32 [a_grid+4], %grid_y;
	st.param.b32 [a_grid+8], %grid_z;
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

inline constexpr std::string_view kLaunchBuffer = R"(
	{
	.param .b64 a_buffer;
	st.param.b64 [a_buffer], %made;
	.param .b64 a_stream;
	st.param.b64 [a_stream], %stream;
	.param .b32 a_result;
	call (a_result), <prefix>LaunchDeviceV2, (a_buffer, a_stream);
	ld.param.b32 %result, [a_result];
	}
)";

inline constexpr std::string_view kLoadSlot = R"(
	ld.param.b64 %buffer, [buffer];
	ld.param.b64 %stream, [stream];
	cvta.to.local.u64 %buffer, %buffer;
	ld.local.v4.u32 {%grid_x, %grid_y, %grid_z, %shared}, [%buffer+-32];
	ld.local.v2.u32 {%block_x, %block_y}, [%buffer+-16];
	ld.local.u32 %block_z, [%buffer+-8];
)";
inline constexpr std::string_view kSlotRegisters =
    "\t.reg .b64 %buffer, %stream, %made, %kernel;\n\t.reg .b32 %grid_x, %grid_y, %grid_z, %shared, %block_x, "
    "%block_y, %block_z, "
    "%result;\n";

inline constexpr std::string_view kNoMemory = "2";  // cudaErrorMemoryAllocation

// A launch as it was, from a slot.
inline constexpr std::string_view kPlain = R"(
.func (.param .b32 result) <plain>(.param .b64 buffer, .param .b64 stream)
{
<registers>	.reg .pred %none;
<load>	mov.u64 %kernel, <kernel>;
	mov.b32 %result, <no_memory>;
<get>	setp.eq.u64 %none, %made, 0;
	@%none bra DONE;
<copy><call>
DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

// Launches in a default stream, and those whose grid or block is out of the ordinary, are made as they were.
inline constexpr std::string_view kSortOut = R"(
	setp.ne.u64 %odd, %stream, <no_stream>U;
	setp.ne.and.u64 %odd, %stream, <forgotten>, %odd;
	@%odd bra PLAIN;
	mov.b64 %stream, <forgotten>;
	mul.wide.u32 %wide, %grid_x, %grid_y;
	min.u64 %wide, %wide, 65536;
	cvt.u32.u64 %ctas, %wide;
	min.u32 %other, %grid_z, 65536;
	mul.wide.u32 %wide, %ctas, %other;
	min.u64 %wide, %wide, 65536;
	cvt.u32.u64 %ctas, %wide;
	sub.u32 %other, %ctas, 1;
	setp.ge.u32 %odd, %other, 65535;
	sub.u32 %other, %block_x, 1;
	setp.ge.or.u32 %odd, %other, 1024, %odd;
	sub.u32 %other, %block_y, 1;
	setp.ge.or.u32 %odd, %other, 1024, %odd;
	sub.u32 %other, %block_z, 1;
	setp.ge.or.u32 %odd, %other, 64, %odd;
	setp.gt.or.u32 %odd, %shared, 49152, %odd;
	@%odd bra PLAIN;
	shl.b32 %shape, %block_z, 11;
	or.b32 %shape, %shape, %block_y;
	shl.b32 %shape, %shape, 11;
	or.b32 %shape, %shape, %block_x;
	mul.lo.u32 %threads, %block_x, %block_y;
	mul.lo.u32 %threads, %threads, %block_z;
	setp.gt.u32 %odd, %threads, <most_threads>;
	@%odd bra PLAIN;
)";

// A small launch is done here and now.
inline constexpr std::string_view kSmall = R"(
	mul.lo.u32 %other, %ctas, %threads;
	setp.ge.u32 %none, %other, <threshold>;
	@%none bra SHAPE;
	{
	.param .b64 a_buffer;
	ld.param.b64 %wide, [buffer];
	st.param.b64 [a_buffer], %wide;
	call <serial>, (a_buffer);
	}
	mov.b32 %result, 0;
	bra DONE;
)";

// The lanes that are here together and have blocks of one shape: %group, with %first and %count.
inline constexpr std::string_view kFindGroup = R"(
SHAPE:
	activemask.b32 %mask;
<match>	brev.b32 %first, %group;
	bfind.shiftamt.u32 %first, %first;
	popc.b32 %count, %group;
	mov.u32 %other, %laneid;
	setp.eq.u32 %is_first, %other, %first;
)";

// From sm_70 on.
inline constexpr std::string_view kMatch = R"(
	mov.b64 %wide, {%shape, %shared};
	match.any.sync.b64 %group, %wide, %mask;
)";

// One shape after the other, each that of the first lane that is left.
inline constexpr std::string_view kMatchInTurn = R"(
	brev.b32 %first, %mask;
	bfind.shiftamt.u32 %first, %first;
	shfl.sync.idx.b32 %other, %shape, %first, 31, %mask;
	setp.eq.u32 %same, %other, %shape;
	shfl.sync.idx.b32 %other, %shared, %first, 31, %mask;
	setp.eq.and.u32 %same, %other, %shared, %same;
	vote.sync.ballot.b32 %group, %same, %mask;
	@!%same bra SHAPE;
)";

// The first of them makes a table, and each puts its launch there.
inline constexpr std::string_view kFillTable = R"(
	shl.b32 %other, %count, 2;
	add.u32 %other, %other, 47;
	and.b32 %other, %other, -16;
	cvt.u64.u32 %head, %other;
	mov.b64 %table, 0;
	@!%is_first bra MADE;
	mad.wide.u32 %wide, %count, <record_bytes>, %head;
	{
	.param .b64 a_bytes;
	st.param.b64 [a_bytes], %wide;
	.param .b64 a_result;
	call (a_result), malloc, (a_bytes);
	ld.param.b64 %table, [a_result];
	}
	setp.eq.u64 %none, %table, 0;
	@%none bra MADE;
	mov.b64 %wide, 0;
	st.global.v2.b64 [%table], {%wide, %wide};
	st.global.v2.b32 [%table+24], {%shape, %shared};
MADE:
	mov.b64 {%low, %high}, %table;
	shfl.sync.idx.b32 %low, %low, %first, 31, %group;
	shfl.sync.idx.b32 %high, %high, %first, 31, %group;
	mov.b64 %table, {%low, %high};
	setp.eq.u64 %none, %table, 0;
	@%none bra PLAIN;
	bar.warp.sync %group;
	mov.b32 %low, 1;
	mov.b64 %wide, {%ctas, %low};
	atom.global.add.u64 %wide, [%table], %wide;
	mov.b64 {%low, %high}, %wide;
	mul.wide.u32 %place, %high, 4;
	add.u64 %place, %table, %place;
	st.global.u32 [%place+32], %low;
	mad.wide.u32 %place, %high, <record_bytes>, %head;
	add.u64 %place, %table, %place;
	mov.b32 %other, 0;
	st.global.v4.u32 [%place], {%grid_x, %grid_y, %grid_z, %other};
	add.u64 %place, %place, 16;
<copy_record>	membar.gl;
	bar.warp.sync %group;
)";

// Makes the launch: of the kernel itself, or, with %table, of the one that does those in a table.
inline constexpr std::string_view kMake = R"(
PLAIN:
	mov.b64 %table, 0;
	mov.u64 %kernel, <kernel>;
MAKE:
	mov.b32 %result, <no_memory>;
<get>	setp.eq.u64 %none, %made, 0;
	@%none bra TOLD;
	setp.eq.u64 %none, %table, 0;
	@%none bra COPY;
	st.global.b64 [%made], %table;
	mov.b32 %other, 0;
	st.global.b32 [%made+8], %other;
	bra CALL;
COPY:
<copy>CALL:
<call>TOLD:
)";

inline constexpr std::string_view kHead = R"(
.func (.param .b32 result) <launch>(.param .b64 buffer, .param .b64 stream)
{
<registers>	.reg .b64 %wide, %table, %place, %head;
	.reg .b32 %ctas, %threads, %shape, %mask, %group, %first, %count, %other, %low, %high;
	.reg .pred %odd, %same, %is_first, %none;
<load>)";

// One launch for the lanes of a warp that come here together. One by itself is made as it was, and so is each where
// that one fails.
inline constexpr std::string_view kWarp = R"(
	setp.eq.u32 %none, %count, 1;
	@%none bra PLAIN;
<fill>	@!%is_first bra WAIT;
	ld.global.u32 %grid_x, [%table];
	mov.b32 %grid_y, 1;
	mov.b32 %grid_z, 1;
	mul.wide.u32 %wide, %grid_x, %threads;
	st.global.u64 [%table+16], %wide;
	membar.gl;
	mov.u64 %kernel, <merged>;
	bra MAKE;
<make>	setp.eq.u64 %none, %table, 0;
	@%none bra DONE;
	setp.eq.u32 %none, %result, 0;
	@%none bra WAIT;
	{
	.param .b64 a_pointer;
	st.param.b64 [a_pointer], %table;
	call free, (a_pointer);
	}
WAIT:
	bar.warp.sync %group;
	shfl.sync.idx.b32 %result, %result, %first, 31, %group;
	setp.ne.u32 %none, %result, 0;
	@%none bra PLAIN;
DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

// The table goes into a list, whose tables are launched together when the block, or the grid, ends
// (deferred_launches.h).
inline constexpr std::string_view kBlock = R"(
<fill>	@!%is_first bra LISTED;
	mov.u64 %head, gridloom_list_<kernel>;
	atom.shared.exch.b64 %wide, [%head], %table;
	st.global.u64 [%table+8], %wide;
LISTED:
	mov.b32 %result, 0;
	bra DONE;
<make>DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

inline constexpr std::string_view kGrid = R"(
<fill>	@!%is_first bra LISTED;
	ld.shared.u32 %other, [gridloom_grid_place];
	mov.u64 %head, gridloom_grid_list_<kernel>;
	mad.wide.u32 %head, %other, 8, %head;
	atom.global.exch.b64 %wide, [%head], %table;
	st.global.u64 [%table+8], %wide;
LISTED:
	mov.b32 %result, 0;
	bra DONE;
<make>DONE:
	st.param.b32 [result], %result;
	ret;
}
)";

inline constexpr std::string_view kSlot = R"(
.func (.param .b64 result) gridloom_consolidated_buffer(.param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 slot)
{
	.reg .b64 %slot, %local;
	.reg .b32 %x, %y, %z, %w;
	ld.param.b64 %slot, [slot];
	cvta.to.local.u64 %local, %slot;
	ld.param.b32 %x, [grid];
	ld.param.b32 %y, [grid+4];
	ld.param.b32 %z, [grid+8];
	ld.param.b32 %w, [shared];
	st.local.v4.b32 [%local], {%x, %y, %z, %w};
	ld.param.b32 %x, [block];
	ld.param.b32 %y, [block+4];
	ld.param.b32 %z, [block+8];
	mov.b32 %w, 0;
	st.local.v4.b32 [%local+16], {%x, %y, %z, %w};
	add.u64 %slot, %slot, <slot_head>;
	st.param.b64 [result], %slot;
	ret;
}
)";

}  // namespace gridloom::passes
