#include "rewriter/passes/range_runtime.h"

namespace gridloom::passes {

std::string_view RangeRuntime() {
  return R"(.version 6.0
.target sm_60
.address_size 64

.global .align 8 .u64 gridloom_ranges_allocations;
.global .align 4 .u32 gridloom_ranges_count;
.global .align 4 .u32 gridloom_ranges_shift;

.visible .entry gridloom_ranges_init(.param .u64 allocations, .param .u32 count, .param .u32 page_shift)
{
	.reg .b64 %rd<2>;
	.reg .b32 %r<3>;
	ld.param.u64 %rd0, [allocations];
	ld.param.u32 %r0, [count];
	ld.param.u32 %r1, [page_shift];
	st.global.u64 [gridloom_ranges_allocations], %rd0;
	st.global.u32 [gridloom_ranges_count], %r0;
	st.global.u32 [gridloom_ranges_shift], %r1;
	ret;
}

// Adds `delta` to the counts of all pages with a byte in one of the pieces base + i * stride .. + width - 1, i < count, as far
// as they lie in the allocation of `array`.
.func gridloom_ranges_add(.param .u64 array, .param .u64 base, .param .u64 stride, .param .u64 count, .param .u64 width, .param .u32 flags, .param .u32 delta)
{
	.reg .b64 %array, %base, %stride, %count, %width, %low, %high, %begin, %end, %from, %to, %records, %record, %counts, %i, %page, %last, %done, %first, %at, %t;
	.reg .b32 %flags, %delta, %shift, %lo, %hi, %mid, %n;
	.reg .pred %p, %q, %reads, %writes;
	ld.param.u64 %array, [array];
	ld.param.u64 %base, [base];
	ld.param.u64 %stride, [stride];
	ld.param.u64 %count, [count];
	ld.param.u64 %width, [width];
	ld.param.u32 %flags, [flags];
	ld.param.u32 %delta, [delta];
	ld.global.u64 %records, [gridloom_ranges_allocations];
	ld.global.u32 %n, [gridloom_ranges_count];
	ld.global.u32 %shift, [gridloom_ranges_shift];
	setp.eq.u64 %p, %width, 0;
	setp.eq.or.u64 %p, %count, 0, %p;
	@%p bra DONE;
	// The last allocation that begins at or before `array`.
	mov.u32 %lo, 0;
	mov.u32 %hi, %n;
SEARCH:
	setp.ge.u32 %p, %lo, %hi;
	@%p bra FOUND;
	add.u32 %mid, %lo, %hi;
	shr.u32 %mid, %mid, 1;
	mad.wide.u32 %record, %mid, 24, %records;
	ld.global.u64 %t, [%record];
	setp.le.u64 %p, %t, %array;
	@%p add.u32 %lo, %mid, 1;
	@!%p mov.u32 %hi, %mid;
	bra SEARCH;
FOUND:
	setp.eq.u32 %p, %lo, 0;
	@%p bra DONE;
	sub.u32 %lo, %lo, 1;
	mad.wide.u32 %record, %lo, 24, %records;
	ld.global.u64 %low, [%record];
	ld.global.u64 %high, [%record+8];
	ld.global.u64 %counts, [%record+16];
	add.u64 %high, %high, %low;
	setp.ge.u64 %p, %array, %high;
	@%p bra DONE;
	shr.u64 %first, %low, %shift;
	and.b32 %mid, %flags, 1;
	setp.ne.u32 %reads, %mid, 0;
	and.b32 %mid, %flags, 2;
	setp.ne.u32 %writes, %mid, 0;
	// Pieces before the allocation are left out.
	mov.u64 %i, 0;
	setp.ge.u64 %p, %base, %low;
	setp.eq.or.u64 %p, %stride, 0, %p;
	@%p bra START;
	sub.u64 %t, %low, %base;
	div.u64 %i, %t, %stride;
START:
	mov.u64 %done, %first; // pages before this one have been counted
PIECE:
	setp.ge.u64 %p, %i, %count;
	@%p bra DONE;
	mul.hi.u64 %t, %i, %stride;
	setp.ne.u64 %p, %t, 0;
	@%p bra DONE;
	mul.lo.u64 %begin, %i, %stride;
	add.u64 %begin, %begin, %base;
	setp.lt.u64 %p, %begin, %base;
	setp.ge.or.u64 %p, %begin, %high, %p;
	@%p bra DONE;
	add.u64 %end, %begin, %width;
	setp.lt.u64 %p, %end, %begin;
	@%p mov.u64 %end, -1;
	max.u64 %from, %begin, %low;
	min.u64 %to, %end, %high;
	add.u64 %i, %i, 1;
	setp.ge.u64 %p, %from, %to;
	@%p bra PIECE;
	shr.u64 %page, %from, %shift;
	max.u64 %page, %page, %done;
	sub.u64 %last, %to, 1;
	shr.u64 %last, %last, %shift;
PAGE:
	setp.gt.u64 %p, %page, %last;
	@%p bra PIECE_DONE;
	sub.u64 %at, %page, %first;
	shl.b64 %at, %at, 3;
	add.u64 %at, %at, %counts;
	@%reads red.global.add.u32 [%at], %delta;
	@%writes red.global.add.u32 [%at+4], %delta;
	add.u64 %page, %page, 1;
	bra PAGE;
PIECE_DONE:
	max.u64 %done, %done, %page;
	setp.eq.u64 %p, %stride, 0; // all pieces are the first one
	@%p bra DONE;
	bra PIECE;
DONE:
	ret;
}

.visible .func gridloom_set_strided(.param .u64 array, .param .u64 base, .param .u64 stride, .param .u64 count, .param .u64 width, .param .u32 flags)
{
	.reg .b64 %rd<5>;
	.reg .b32 %r0;
	.param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; .param .b64 p4; .param .b32 p5; .param .b32 p6;
	ld.param.u64 %rd0, [array];
	ld.param.u64 %rd1, [base];
	ld.param.u64 %rd2, [stride];
	ld.param.u64 %rd3, [count];
	ld.param.u64 %rd4, [width];
	ld.param.u32 %r0, [flags];
	st.param.b64 [p0], %rd0;
	st.param.b64 [p1], %rd1;
	st.param.b64 [p2], %rd2;
	st.param.b64 [p3], %rd3;
	st.param.b64 [p4], %rd4;
	st.param.b32 [p5], %r0;
	st.param.b32 [p6], 1;
	call gridloom_ranges_add, (p0, p1, p2, p3, p4, p5, p6);
	ret;
}

.visible .func gridloom_release_strided(.param .u64 array, .param .u64 base, .param .u64 stride, .param .u64 count, .param .u64 width, .param .u32 flags)
{
	.reg .b64 %rd<5>;
	.reg .b32 %r0;
	.param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; .param .b64 p4; .param .b32 p5; .param .b32 p6;
	ld.param.u64 %rd0, [array];
	ld.param.u64 %rd1, [base];
	ld.param.u64 %rd2, [stride];
	ld.param.u64 %rd3, [count];
	ld.param.u64 %rd4, [width];
	ld.param.u32 %r0, [flags];
	st.param.b64 [p0], %rd0;
	st.param.b64 [p1], %rd1;
	st.param.b64 [p2], %rd2;
	st.param.b64 [p3], %rd3;
	st.param.b64 [p4], %rd4;
	st.param.b32 [p5], %r0;
	st.param.b32 [p6], -1;
	call gridloom_ranges_add, (p0, p1, p2, p3, p4, p5, p6);
	ret;
}

.visible .func gridloom_set_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags)
{
	.reg .b64 %rd<3>;
	.reg .b32 %r0;
	.reg .pred %p0;
	.param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; .param .b64 p4; .param .b32 p5; .param .b32 p6;
	ld.param.u64 %rd0, [array];
	ld.param.u64 %rd1, [low];
	ld.param.u64 %rd2, [high];
	ld.param.u32 %r0, [flags];
	setp.le.u64 %p0, %rd2, %rd1;
	@%p0 ret;
	sub.u64 %rd2, %rd2, %rd1;
	st.param.b64 [p0], %rd0;
	st.param.b64 [p1], %rd1;
	st.param.b64 [p2], 0;
	st.param.b64 [p3], 1;
	st.param.b64 [p4], %rd2;
	st.param.b32 [p5], %r0;
	st.param.b32 [p6], 1;
	call gridloom_ranges_add, (p0, p1, p2, p3, p4, p5, p6);
	ret;
}

.visible .func gridloom_release_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags)
{
	.reg .b64 %rd<3>;
	.reg .b32 %r0;
	.reg .pred %p0;
	.param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; .param .b64 p4; .param .b32 p5; .param .b32 p6;
	ld.param.u64 %rd0, [array];
	ld.param.u64 %rd1, [low];
	ld.param.u64 %rd2, [high];
	ld.param.u32 %r0, [flags];
	setp.le.u64 %p0, %rd2, %rd1;
	@%p0 ret;
	sub.u64 %rd2, %rd2, %rd1;
	st.param.b64 [p0], %rd0;
	st.param.b64 [p1], %rd1;
	st.param.b64 [p2], 0;
	st.param.b64 [p3], 1;
	st.param.b64 [p4], %rd2;
	st.param.b32 [p5], %r0;
	st.param.b32 [p6], -1;
	call gridloom_ranges_add, (p0, p1, p2, p3, p4, p5, p6);
	ret;
}
)";
}

}  // namespace gridloom::passes
