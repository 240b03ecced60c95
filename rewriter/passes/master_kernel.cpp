#include "rewriter/passes/master_kernel.h"

#include <map>

#include "rewriter/passes/edit.h"
#include "rewriter/passes/task_records.h"

namespace gridloom::passes::task {

namespace {

/// Names of the text that stand for offsets of task_records.h.
const std::map<std::string, std::uint32_t, std::greater<>>& Offsets() {
  static const std::map<std::string, std::uint32_t, std::greater<>> offsets = {
      {"E_READY", Entry::kReady},
      {"E_SCHED", Entry::kSched},
      {"E_KERNEL", Entry::kKernel},
      {"E_BLOCKS", Entry::kBlocks},
      {"E_THREADS", Entry::kThreads},
      {"E_SHARED", Entry::kSharedBytes},
      {"E_BARRIER", Entry::kBarrier},
      {"E_GRIDX", Entry::kGridX},
      {"E_GRIDY", Entry::kGridY},
      {"E_GRIDZ", Entry::kGridZ},
      {"E_BLOCKX", Entry::kBlockX},
      {"E_BLOCKY", Entry::kBlockY},
      {"E_BLOCKZ", Entry::kBlockZ},
      {"E_DYNAMIC", Entry::kDynamicBytes},
      {"E_PARAMS", Entry::kParams},
      {"E_FIRST", Entry::kFirstTask},
      {"C_END", Control::kEnd},
      {"C_WARPS", Control::kWarps},
      {"C_BYTES", Control::kWarpBytes},
      {"W_EXEC", Warp::kExec},
      {"W_ROW", Warp::kRow},
      {"W_FIRST", Warp::kFirstThread},
      {"W_SLOT", Warp::kSlot},
      {"W_BLOCK", Warp::kBlock},
      {"W_SHARED", Warp::kShared},
      {"W_BARRIERID", Warp::kBarrierId},
      {"W_NX", Warp::kBlockX},
      {"W_NY", Warp::kBlockY},
      {"W_NZ", Warp::kBlockZ},
      {"W_GX", Warp::kGridX},
      {"W_GY", Warp::kGridY},
      {"W_GZ", Warp::kGridZ},
      {"W_PARAMS", Warp::kParams},
      {"W_CX", Warp::kCtaX},
      {"W_CY", Warp::kCtaY},
      {"W_CZ", Warp::kCtaZ},
      {"W_THREADS", Warp::kThreads},
      {"W_DYNAMIC", Warp::kDynamicBytes},
      {"W_BYTES", Warp::kBytes},
      {"S_WORD", Slot::kWord},
      {"S_LEFT", Slot::kWarpsLeft},
      {"S_STATE", Slot::kState},
      {"S_NODE", Slot::kNode},
      {"S_BARRIERID", Slot::kBarrierId},
      {"S_BYTES", Slot::kBytes},
      {"SH_SLOTS", Shared::kSlots},
      {"SH_DONE", Shared::kDone},
      {"SH_TREE", Shared::kTree},
      {"SH_BYTES", Shared::kBytes},
      {"SH_SMALLEST", Shared::kSmallest},
  };
  return offsets;
}

/// Registers, and what every warp does first: tables in shared memory are empty.
constexpr const char* kBegin = R"({
  .reg .u64 %table, %control, %column, %entry, %other, %wide, %params;
  .reg .u32 %rows, %entry_bytes, %pool_bytes, %lane, %warp, %warps, %thread, %threads, %at, %n, %m, %mine, %below;
  .reg .u32 %tables, %pool, %barriers, %row, %todo, %found, %blocks, %block, %per_block, %left, %number, %free, %slot, %node, %first_node;
  .reg .u32 %bytes, %address, %barrier, %kind, %size, %level, %depth, %node_depth, %kernel, %own, %first, %gx, %gy, %ready, %sched, %ctas;
  .reg .s32 %state, %previous;
  .reg .pred %p, %q, %idle, %is_scheduler, %is_free, %leads;
  ld.param.u64 %table, [table];
  cvta.to.global.u64 %table, %table;
  ld.param.u64 %control, [control];
  cvta.to.global.u64 %control, %control;
  ld.param.u32 %rows, [rows];
  ld.param.u32 %entry_bytes, [entry_bytes];
  ld.param.u32 %pool_bytes, [pool_bytes];
  mov.u32 %lane, %laneid;
  mov.u32 %thread, %tid.x;
  shr.u32 %warp, %thread, 5;
  mov.u32 %threads, %ntid.x;
  shr.u32 %warps, %threads, 5;
  mov.u32 %below, %lanemask_lt;
  setp.eq.u32 %leads, %lane, 0;
  mov.u32 %tables, gl_master_tables;
  mov.u32 %pool, gl_master_pool;
  mov.u32 %ctas, %ctaid.x;
  mul.lo.u32 %n, %ctas, %rows;
  mul.wide.u32 %column, %n, %entry_bytes;
  add.u64 %column, %table, %column;
  shl.b32 %at, %thread, 2;
CLEAR:
  setp.ge.u32 %p, %at, SH_BYTES;
  @%p bra CLEARED;
  add.u32 %n, %tables, %at;
  mov.u32 %m, 0;
  st.shared.u32 [%n], %m;
  shl.b32 %n, %threads, 2;
  add.u32 %at, %at, %n;
  bra CLEAR;
CLEARED:
  bar.sync 0;
  mul.lo.u32 %own, %warp, W_BYTES;
  add.u32 %own, %tables, %own;
  setp.eq.u32 %is_scheduler, %warp, 0;
  @!%is_scheduler bra EXECUTE;
)";

/// Algorithm 1, lines 3 to 28: lane i looks at row i.
constexpr const char* kSchedule = R"(
  mov.u32 %barriers, 0xFFFE;
SCAN:
  mov.u32 %ready, 0;
  mov.u32 %sched, 0;
  setp.lt.u32 %p, %lane, %rows;
  mul.wide.u32 %entry, %lane, %entry_bytes;
  add.u64 %entry, %column, %entry;
  @%p ld.volatile.global.u32 %ready, [%entry+E_READY];
  @%p ld.volatile.global.u32 %sched, [%entry+E_SCHED];
  mov.b32 %state, %ready;
  setp.gt.s32 %q, %state, 1;
  @!%q bra NO_CHAIN;
  sub.u32 %n, %ready, E_FIRST;
  mul.wide.u32 %other, %n, %entry_bytes;
  add.u64 %other, %table, %other;
  ld.volatile.global.u32 %n, [%other+E_READY];
  setp.ne.u32 %q, %n, 0xFFFFFFFF;
  @%q bra NO_CHAIN;
  membar.gl;
  mov.u32 %n, 1;
  st.volatile.global.u32 [%other+E_READY], %n;
  membar.gl;
  st.volatile.global.u32 [%other+E_SCHED], %n;
  mov.u32 %n, 0xFFFFFFFF;
  st.volatile.global.u32 [%entry+E_READY], %n;
NO_CHAIN:
  bar.warp.sync 0xFFFFFFFF;
  setp.eq.u32 %q, %sched, 1;
  vote.sync.ballot.b32 %todo, %q, 0xFFFFFFFF;
  setp.ne.u32 %p, %todo, 0;
  @%p bra ROWS;
  ld.volatile.global.u32 %n, [%control+C_END];
  setp.eq.u32 %p, %n, 0;
  NAP
  @%p bra SCAN;
  bra STOP;
ROWS:
  setp.eq.u32 %p, %todo, 0;
  @%p bra SCAN;
  brev.b32 %row, %todo;
  clz.b32 %row, %row;
  sub.u32 %n, %todo, 1;
  and.b32 %todo, %todo, %n;
  mul.wide.u32 %entry, %row, %entry_bytes;
  add.u64 %entry, %column, %entry;
  membar.gl;
  mov.u32 %n, 0;
  @%leads st.volatile.global.u32 [%entry+E_SCHED], %n;
  ld.volatile.global.u32 %threads, [%entry+E_THREADS];
  ld.volatile.global.u32 %blocks, [%entry+E_BLOCKS];
  ld.volatile.global.u32 %bytes, [%entry+E_SHARED];
  ld.volatile.global.u32 %kind, [%entry+E_BARRIER];
  add.u32 %per_block, %threads, 31;
  shr.u32 %per_block, %per_block, 5;
  mul.lo.u32 %left, %per_block, %blocks;
  shl.b32 %n, %row, 2;
  add.u32 %n, %tables, %n;
  @%leads st.volatile.shared.u32 [%n+SH_DONE], %left;
  mov.u32 %slot, 0;
  mov.u32 %block, 0;
  mov.u32 %address, 0;
  mov.u32 %barrier, 0;
  mov.u32 %node, 0;
  or.b32 %n, %bytes, %kind;
  setp.ne.u32 %p, %n, 0;
  @%p bra NEXT_BLOCK;
  mov.u32 %number, 0;
  bra PLACE;
NEXT_BLOCK:
  setp.ge.u32 %p, %block, %blocks;
  @%p bra ROWS;
TRY_BLOCK:
)";

/// Blocks whose last warp has ended give back what they had; then a slot, a barrier and memory for the next.
constexpr const char* kResources = R"(
  mul.lo.u32 %n, %lane, S_BYTES;
  add.u32 %mine, %tables, %n;
  ld.volatile.shared.u32 %state, [%mine+SH_SLOTS+S_STATE];
  setp.eq.s32 %q, %state, 2;
  vote.sync.ballot.b32 %found, %q, 0xFFFFFFFF;
SWEEP:
  setp.eq.u32 %p, %found, 0;
  @%p bra SWEPT;
  brev.b32 %n, %found;
  clz.b32 %n, %n;
  sub.u32 %m, %found, 1;
  and.b32 %found, %found, %m;
  mul.lo.u32 %n, %n, S_BYTES;
  add.u32 %at, %tables, %n;
  ld.volatile.shared.u32 %n, [%at+SH_SLOTS+S_BARRIERID];
  mov.u32 %m, 1;
  shl.b32 %m, %m, %n;
  setp.ne.u32 %p, %n, 0;
  @%p or.b32 %barriers, %barriers, %m;
  ld.volatile.shared.u32 %node, [%at+SH_SLOTS+S_NODE];
  setp.eq.u32 %p, %node, 0;
  @%p bra NO_MEMORY;
  bfind.u32 %depth, %node;
  div.u32 %n, %pool_bytes, SH_SMALLEST;
  shl.b32 %size, %n, 1;
  mov.u32 %first_node, %lane;
UNMARK:
  setp.ge.u32 %p, %first_node, %size;
  @%p bra UNMARKED;
  bfind.u32 %node_depth, %first_node;
  setp.eq.u32 %p, %first_node, 0;
  @%p bra KEEP;
  setp.lt.u32 %p, %node_depth, %depth;
  @%p bra KEEP;
  sub.u32 %n, %node_depth, %depth;
  shr.u32 %n, %first_node, %n;
  setp.ne.u32 %p, %n, %node;
  @%p bra KEEP;
  add.u32 %n, %tables, %first_node;
  mov.u32 %m, 0;
  st.volatile.shared.u8 [%n+SH_TREE], %m;
KEEP:
  add.u32 %first_node, %first_node, 32;
  bra UNMARK;
UNMARKED:
  bar.warp.sync 0xFFFFFFFF;
CLIMB:
  setp.le.u32 %p, %node, 1;
  @%p bra CLIMBED;
  xor.b32 %n, %node, 1;
  add.u32 %n, %tables, %n;
  ld.volatile.shared.u8 %m, [%n+SH_TREE];
  setp.ne.u32 %p, %m, 0;
  @%p bra CLIMBED;
  shr.u32 %node, %node, 1;
  add.u32 %n, %tables, %node;
  mov.u32 %m, 0;
  bar.warp.sync 0xFFFFFFFF;
  @%leads st.volatile.shared.u8 [%n+SH_TREE], %m;
  bar.warp.sync 0xFFFFFFFF;
  bra CLIMB;
CLIMBED:
NO_MEMORY:
  mov.u32 %n, 0;
  @%leads st.volatile.shared.u32 [%at+SH_SLOTS+S_STATE], %n;
  bar.warp.sync 0xFFFFFFFF;
  bra SWEEP;
SWEPT:
  mov.u32 %node, 0;
  ld.volatile.shared.u32 %state, [%mine+SH_SLOTS+S_STATE];
  setp.eq.s32 %q, %state, 0;
  vote.sync.ballot.b32 %found, %q, 0xFFFFFFFF;
  setp.eq.u32 %p, %found, 0;
  @%p bra TRY_BLOCK;
  setp.ne.u32 %p, %kind, 1;
  @%p bra HAS_BARRIER;
  setp.eq.u32 %p, %barriers, 0;
  @%p bra TRY_BLOCK;
HAS_BARRIER:
  setp.eq.u32 %p, %bytes, 0;
  @%p bra HAS_MEMORY;
  mov.u32 %level, 1;
  mov.u32 %size, %pool_bytes;
SMALLER:
  shr.u32 %n, %size, 1;
  setp.lt.u32 %p, %n, %bytes;
  @%p bra SIZED;
  setp.lt.u32 %p, %n, SH_SMALLEST;
  @%p bra SIZED;
  mov.u32 %size, %n;
  shl.b32 %level, %level, 1;
  bra SMALLER;
SIZED:
  mov.u32 %first_node, %level;
SEARCH:
  shl.b32 %m, %level, 1;
  setp.ge.u32 %p, %first_node, %m;
  @%p bra TRY_BLOCK;
  add.u32 %node, %first_node, %lane;
  setp.lt.u32 %q, %node, %m;
  add.u32 %n, %tables, %node;
  mov.u32 %at, 1;
  @%q ld.volatile.shared.u8 %at, [%n+SH_TREE];
  setp.eq.u32 %q, %at, 0;
  vote.sync.ballot.b32 %n, %q, 0xFFFFFFFF;
  setp.ne.u32 %p, %n, 0;
  @%p bra CHOSEN;
  add.u32 %first_node, %first_node, 32;
  bra SEARCH;
CHOSEN:
  brev.b32 %n, %n;
  clz.b32 %n, %n;
  add.u32 %node, %first_node, %n;
  bfind.u32 %depth, %node;
  div.u32 %n, %pool_bytes, SH_SMALLEST;
  shl.b32 %at, %n, 1;
  mov.u32 %first_node, %lane;
MARK:
  setp.ge.u32 %p, %first_node, %at;
  @%p bra MARKED;
  setp.eq.u32 %p, %first_node, 0;
  @%p bra UNRELATED;
  bfind.u32 %node_depth, %first_node;
  setp.lt.u32 %p, %node_depth, %depth;
  @%p bra ABOVE;
  sub.u32 %n, %node_depth, %depth;
  shr.u32 %n, %first_node, %n;
  setp.ne.u32 %p, %n, %node;
  @%p bra UNRELATED;
  bra RELATED;
ABOVE:
  sub.u32 %n, %depth, %node_depth;
  shr.u32 %n, %node, %n;
  setp.ne.u32 %p, %n, %first_node;
  @%p bra UNRELATED;
RELATED:
  add.u32 %n, %tables, %first_node;
  mov.u32 %m, 1;
  st.volatile.shared.u8 [%n+SH_TREE], %m;
UNRELATED:
  add.u32 %first_node, %first_node, 32;
  bra MARK;
MARKED:
  bar.warp.sync 0xFFFFFFFF;
  sub.u32 %n, %node, %level;
  mad.lo.u32 %address, %n, %size, %pool;
HAS_MEMORY:
  mov.u32 %barrier, 0;
  setp.ne.u32 %p, %kind, 1;
  @%p bra NUMBERED;
  brev.b32 %barrier, %barriers;
  clz.b32 %barrier, %barrier;
  sub.u32 %n, %barriers, 1;
  and.b32 %barriers, %barriers, %n;
NUMBERED:
  brev.b32 %n, %found;
  clz.b32 %n, %n;
  mul.lo.u32 %n, %n, S_BYTES;
  add.u32 %slot, %tables, %n;
  add.u32 %slot, %slot, SH_SLOTS;
  bar.warp.sync 0xFFFFFFFF;
  mov.u32 %n, 1;
  @%leads st.volatile.shared.u32 [%slot+S_WORD], %threads;
  @%leads st.volatile.shared.u32 [%slot+S_LEFT], %per_block;
  @%leads st.volatile.shared.u32 [%slot+S_NODE], %node;
  @%leads st.volatile.shared.u32 [%slot+S_BARRIERID], %barrier;
  @%leads st.volatile.shared.u32 [%slot+S_STATE], %n;
  mov.u32 %left, %per_block;
  mul.lo.u32 %number, %block, %per_block;
  add.u32 %block, %block, 1;
)";

/// Algorithm 2: lane i looks at warp i; the free ones get the numbers that come next.
constexpr const char* kPlace = R"(
PLACE:
  bar.warp.sync 0xFFFFFFFF;
  mul.lo.u32 %n, %lane, W_BYTES;
  add.u32 %mine, %tables, %n;
  mov.u32 %n, 1;
  setp.lt.u32 %q, %lane, %warps;
  setp.ne.and.u32 %q, %lane, 0, %q;
  @%q ld.volatile.shared.u32 %n, [%mine+W_EXEC];
  setp.eq.u32 %is_free, %n, 0;
  vote.sync.ballot.b32 %free, %is_free, 0xFFFFFFFF;
  and.b32 %n, %free, %below;
  popc.b32 %n, %n;
  setp.lt.and.u32 %is_free, %n, %left, %is_free;
  @!%is_free bra PLACED;
  add.u32 %n, %number, %n;
  div.u32 %m, %n, %per_block;
  st.volatile.shared.u32 [%mine+W_BLOCK], %m;
  mul.lo.u32 %m, %m, %per_block;
  sub.u32 %m, %n, %m;
  shl.b32 %m, %m, 5;
  st.volatile.shared.u32 [%mine+W_FIRST], %m;
  st.volatile.shared.u32 [%mine+W_ROW], %row;
  st.volatile.shared.u32 [%mine+W_SLOT], %slot;
  st.volatile.shared.u32 [%mine+W_SHARED], %address;
  st.volatile.shared.u32 [%mine+W_BARRIERID], %barrier;
  membar.cta;
  mov.u32 %n, 1;
  st.volatile.shared.u32 [%mine+W_EXEC], %n;
PLACED:
  bar.warp.sync 0xFFFFFFFF;
  popc.b32 %n, %free;
  min.u32 %n, %n, %left;
  sub.u32 %left, %left, %n;
  add.u32 %number, %number, %n;
  setp.ne.u32 %p, %left, 0;
  @%p bra PLACE;
  setp.ne.u32 %p, %slot, 0;
  @%p bra NEXT_BLOCK;
  bra ROWS;
STOP:
  mul.lo.u32 %n, %lane, W_BYTES;
  add.u32 %mine, %tables, %n;
  mov.u32 %n, 2;
  st.volatile.shared.u32 [%mine+W_EXEC], %n;
  ret;
)";

/// Algorithm 1, lines 30 to 43.
constexpr const char* kExecute = R"(
EXECUTE:
  bar.warp.sync 0xFFFFFFFF;
WAIT:
  ld.volatile.shared.u32 %n, [%own+W_EXEC];
  setp.eq.u32 %p, %n, 2;
  @%p ret;
  setp.eq.u32 %p, %n, 0;
  NAP
  @%p bra WAIT;
  bar.warp.sync 0xFFFFFFFF;
  membar.cta;
  ld.volatile.shared.u32 %row, [%own+W_ROW];
  ld.volatile.shared.u32 %block, [%own+W_BLOCK];
  ld.volatile.shared.u32 %first, [%own+W_FIRST];
  ld.volatile.shared.u32 %slot, [%own+W_SLOT];
  mul.wide.u32 %entry, %row, %entry_bytes;
  add.u64 %entry, %column, %entry;
  mad.lo.u32 %n, %ctas, %warps, %warp;
  mul.wide.u32 %wide, %n, C_BYTES;
  add.u64 %wide, %control, %wide;
  add.u32 %n, %row, 1;
  @%leads st.volatile.global.u32 [%wide+C_WARPS], %n;
  add.u64 %wide, %wide, C_WARPS;
  @%leads st.volatile.global.u32 [%wide+4], %block;
  @%leads st.volatile.global.u32 [%wide+8], %first;
  ld.volatile.global.u32 %kernel, [%entry+E_KERNEL];
  ld.volatile.global.u32 %threads, [%entry+E_THREADS];
  ld.volatile.global.u32 %gx, [%entry+E_GRIDX];
  ld.volatile.global.u32 %gy, [%entry+E_GRIDY];
  @!%leads bra FILLED;
  st.shared.u32 [%own+W_GX], %gx;
  st.shared.u32 [%own+W_GY], %gy;
  st.shared.u32 [%own+W_THREADS], %threads;
  ld.volatile.global.u32 %n, [%entry+E_GRIDZ];
  st.shared.u32 [%own+W_GZ], %n;
  ld.volatile.global.u32 %n, [%entry+E_BLOCKX];
  st.shared.u32 [%own+W_NX], %n;
  ld.volatile.global.u32 %n, [%entry+E_BLOCKY];
  st.shared.u32 [%own+W_NY], %n;
  ld.volatile.global.u32 %n, [%entry+E_BLOCKZ];
  st.shared.u32 [%own+W_NZ], %n;
  ld.volatile.global.u32 %n, [%entry+E_DYNAMIC];
  st.shared.u32 [%own+W_DYNAMIC], %n;
  add.u64 %params, %entry, E_PARAMS;
  st.shared.u64 [%own+W_PARAMS], %params;
  div.u32 %m, %block, %gx;
  mul.lo.u32 %n, %m, %gx;
  sub.u32 %n, %block, %n;
  st.shared.u32 [%own+W_CX], %n;
  div.u32 %n, %m, %gy;
  st.shared.u32 [%own+W_CZ], %n;
  mul.lo.u32 %n, %n, %gy;
  sub.u32 %n, %m, %n;
  st.shared.u32 [%own+W_CY], %n;
FILLED:
  bar.warp.sync 0xFFFFFFFF;
  add.u32 %n, %first, %lane;
  setp.ge.u32 %p, %n, %threads;
  @%p bra FINISHED;
CALLS
FINISHED:
  bar.warp.sync 0xFFFFFFFF;
  membar.sys;
  bar.warp.sync 0xFFFFFFFF;
  @!%leads bra EXECUTE;
  setp.eq.u32 %p, %slot, 0;
  @%p bra NO_SLOT;
  atom.shared.add.u32 %n, [%slot+S_LEFT], 0xFFFFFFFF;
  setp.ne.u32 %p, %n, 1;
  @%p bra NO_SLOT;
  mov.u32 %n, 2;
  st.volatile.shared.u32 [%slot+S_STATE], %n;
NO_SLOT:
  shl.b32 %n, %row, 2;
  add.u32 %n, %tables, %n;
  atom.shared.add.u32 %m, [%n+SH_DONE], 0xFFFFFFFF;
  setp.ne.u32 %p, %m, 1;
  @%p bra NOT_LAST;
  membar.sys;
  mov.u32 %n, 0;
  st.volatile.global.u32 [%entry+E_READY], %n;
NOT_LAST:
  membar.cta;
  mov.u32 %n, 0;
  st.volatile.shared.u32 [%own+W_EXEC], %n;
  bra EXECUTE;
}
)";

void Replace(std::string& text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

std::string Calls(const std::vector<MasterTask>& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string next = "NOT_" + std::to_string(i);
    text += "  setp.ne.u32 %p, %kernel, " + std::to_string(i) + ";\n  @%p bra " + next +
            ";\n  {\n    .param .b32 warp;\n" + "    st.param.b32 [warp], %own;\n    call " + tasks[i].function +
            ", (warp);\n  }\n  bra FINISHED;\n" + next + ":\n";
  }
  return text;
}

ptx::Variable& AddParam(ptx::Module& module, ptx::Function& function, const char* name, ptx::ScalarType type) {
  ptx::Variable& param = function.params.emplace_back();
  param.name = module.strings.Intern(name);
  param.space = ptx::StateSpace::kParam;
  param.type = type;
  return param;
}

void AddShared(ptx::Module& module, const char* name, std::uint64_t bytes) {
  ptx::Variable& variable = module.variables.emplace_back();
  variable.name = module.strings.Intern(name);
  variable.space = ptx::StateSpace::kShared;
  variable.type = ptx::ScalarType::kB8;
  variable.align = bytes == 0 ? 1024 : 16;
  variable.dims = {bytes};
  if (bytes == 0) variable.linkage = ptx::Linkage::kExtern;
  module.items.emplace_back(&variable);
}

void AddFacts(ptx::Module& module, const std::vector<MasterTask>& tasks) {
  ptx::Variable& facts = module.variables.emplace_back();
  facts.name = module.strings.Intern(kFactsName);
  facts.space = ptx::StateSpace::kGlobal;
  facts.type = ptx::ScalarType::kU32;
  facts.linkage = ptx::Linkage::kVisible;
  facts.dims = {4 * tasks.size()};
  facts.has_initializer = true;
  for (const MasterTask& task : tasks) {
    const std::uint32_t whole = task.full_rows ? 2 : task.full_warps ? 1 : 0;
    for (const std::uint32_t value :
         {task.static_bytes, static_cast<std::uint32_t>(task.barrier), whole, task.param_bytes}) {
      ptx::Initializer& initializer = facts.initializer.emplace_back();
      initializer.value = ptx::IntLiteral{.value = value};
      initializer.element = facts.initializer.size() - 1;
    }
  }
  facts.initializer.front().group = 1;
  facts.initializer.back().close = 1;
  module.items.emplace_back(&facts);
}

}  // namespace

void AddMasterKernel(ptx::Module& module, const std::vector<MasterTask>& tasks) {
  AddFacts(module, tasks);
  AddShared(module, "gl_master_tables", Shared::kBytes);
  AddShared(module, "gl_master_pool", 0);
  ptx::Function& master = module.functions.emplace_back();
  master.name = module.strings.Intern(kMasterName);
  master.is_entry = true;
  master.linkage = ptx::Linkage::kVisible;
  master.body = std::make_unique<ptx::Block>();
  // Two blocks of 1,024 threads fill an SM's 2,048 threads and 65,536 registers (6.1).
  master.directives.push_back({.name = "maxnreg", .values = {32}, .text = {}});
  AddParam(module, master, "table", ptx::ScalarType::kU64);
  AddParam(module, master, "control", ptx::ScalarType::kU64);
  AddParam(module, master, "rows", ptx::ScalarType::kU32);
  AddParam(module, master, "entry_bytes", ptx::ScalarType::kU32);
  AddParam(module, master, "pool_bytes", ptx::ScalarType::kU32);
  module.items.emplace_back(&master);
  std::string text = std::string(kBegin) + kSchedule + kResources + kPlace + kExecute;
  Replace(text, "CALLS\n", Calls(tasks));
  // Without the instruction (before Volta) a warp that waits polls all the time.
  Replace(text, "  NAP\n", module.sm() >= 70 ? "  @%p nanosleep.u32 100;\n" : "");
  for (const auto& [name, offset] : Offsets()) Replace(text, name, std::to_string(offset));
  FunctionEditor editor(module, master);
  master.body->statements = editor.Text(text, {});
}

}  // namespace gridloom::passes::task
