// What generated code and the runtime share: plain structs at fixed offsets, and the table of runtime helpers.
// Generated code reads these fields by offset and never calls a symbol: helpers are reached through LaunchCtx::helpers,
// so a compiled kernel is position independent and can be kept on disk (docs/design/executor.md).
// Change anything here -> bump kAbiVersion, which is part of the cache key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridloom::exec {

inline constexpr std::uint32_t kAbiVersion = 15;
inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kHalfWarp = kWarpSize / 2;

struct WarpCtx;
struct CtaCtx;
struct RecordSite;

/// A runtime helper works on all lanes of `mask` at once. `args` points to the outputs, then the inputs; each is an
/// array of 32 lane values of its type, except that an i1 is one 32-bit word with a bit per lane. Lanes that are off
/// hold unspecified inputs and their outputs must be left alone (i1: those bits are ignored). `imm` is the immediate
/// the lifter gave, `line` the PTX line for messages. A helper that finds an error calls RaiseFault and never returns.
using HelperFn = void (*)(WarpCtx* warp, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args);

/// Entry of a compiled kernel: runs one warp to its end. Entry of a compiled device function is private to the module.
using WarpEntry = void (*)(WarpCtx* warp);

/// Entry of a compiled kernel that runs all warps of a CTA to their ends, one after the other: what is the same for all
/// of them is computed once. The warps are `stride` bytes apart, from `first` up to `end`. While warp number i runs,
/// `trail` + i is in a general register or on the stack, where the fault handler finds it: storing the warp would cost
/// a kernel that streams a sixth of its speed. `trail` is a multiple of kMostWarps that no other call has had. Where
/// warps take turns at barriers (KernelFacts::turns) it is the address where the code stores which warp runs.
/// Where the code can (KernelFacts::by_row) the next CTAs of the row run in the same call, as many as CtaCtx::row_left
/// says: the code counts that down and ctaid[0] up, and the trail of each is kMostWarps larger.
using CtaEntry = void (*)(WarpCtx* first, WarpCtx* end, std::uint64_t stride, std::uint64_t trail);
inline constexpr std::uint64_t kMostWarps = 64;  ///< of a CTA, rounded up to a power of two
inline constexpr std::uint64_t kMostInRow = 64;  ///< CTAs of one call

//  X(Enumerator, convergent, reads memory, writes memory): see sim/exec/runtime/helpers_*.cpp for what each does.
enum class Helper : std::uint32_t {
#define GL_HELPER(name, convergent, reads, writes) name,
#include "sim/exec/contract/helpers.def"
#undef GL_HELPER
  kCount
};

/// Constant during a launch.
struct LaunchCtx {
  std::uint64_t window_base;   ///< device address range: global, generic and shared addresses are host addresses in it
  std::uint64_t window_bytes;  ///< up to the highest byte allocated at launch; beyond it the slow path decides
  /// Parameter block, laid out as LayoutParams says, readable up to 4 KiB + 64 past its end.
  const std::uint8_t* params;
  const std::uint64_t* symbols;  ///< device addresses of module variables, indexed as SymbolTable numbered them
  const HelperFn* helpers;       ///< indexed by Helper
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t cluster[3];  ///< CTAs per cluster, 1,1,1 without clusters
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t total_shared_bytes;  ///< static plus dynamic
  std::uint32_t warps_per_cta;
  std::uint64_t grid_id;
  std::uint32_t sm_count;
  std::uint32_t shared_stride;   ///< distance of the shared windows of two CTAs of a cluster
  void* owner;                   ///< the runtime's launch object
  std::uint64_t grid_workspace;  ///< zeroed device memory for grid-wide barriers (%envreg1:%envreg2), 0 when the kernel
                                 ///< does not ask
};

/// One CTA while it runs.
struct CtaCtx {
  const LaunchCtx* launch;
  std::uint64_t shared_base;    ///< host address of shared address 0; with clusters, of the cluster's first CTA
  std::uint32_t shared_bytes;   ///< shared addresses below this are valid (with clusters: of all its CTAs)
  std::uint32_t shared_offset;  ///< shared address of this CTA's own window: 0 without clusters
  std::uint32_t ctaid[3];
  std::uint32_t smid;
  std::uint32_t cluster_rank;
  std::uint32_t live_warps;
  // The full barrier of kernels with simple barriers whose warps give way (give_way.h).
  std::uint32_t arrived_warps;  ///< 0 when nobody waits
  std::uint32_t barrier_phase;  ///< counts the times it was full
  std::uint32_t row_left;       ///< how many CTAs run behind this one in the same call
  std::uint64_t own_memory;     ///< global memory of the CTA alone (%perctamemoryoffset), 0 where the kernel has none
  WarpCtx* ring;                ///< a warp that has not ended, or null
  void* owner;                  ///< the runtime's CTA object
};

/// One warp while it runs.
struct WarpCtx {
  CtaCtx* cta;
  const LaunchCtx* launch;
  std::uint32_t warp_id;
  std::uint32_t initial_mask;  ///< lanes that exist; all ones except in the last warp of a ragged block
  std::uint32_t exited_mask;   ///< lanes that have executed exit
  std::uint32_t tid0[3];       ///< thread index of lane 0
  std::uint64_t local_base;    ///< host address of lane 0's local memory
  std::uint32_t local_stride;  ///< bytes between two lanes' local memories
  std::uint32_t local_bytes;   ///< usable bytes per lane
  // Ring switch: saved stack pointer of a suspended warp and its neighbour (see warp_switch.h). Offsets are known to
  // the inline assembly.
  void* saved_sp;
  WarpCtx* next;
  WarpCtx* prev;
  /// Memcheck: base and size of the memory that each global access of the code may touch unasked.
  std::uint64_t* check_sites;
  std::uint64_t* record_cursor;  ///< recording: where the next record goes
  /// Recording: kRecordSites of them; an instruction's is its number modulo that (records.h).
  RecordSite* record_sites;
  /// A group of records (kMaxGroupWords) may begin up to here; beyond it, first kFlushRecords.
  std::uint64_t* record_limit;
  void* stack_limit;            ///< lowest usable stack address; device functions that recurse check it
  std::uint32_t access_line;    ///< PTX line of the access that an out-of-line function is making; else 0
  std::uint32_t invalid_reads;  ///< memcheck: not 0 once the warp has read shared memory that nobody has written
  /// Memcheck: how many barriers and .sync instructions lanes of the warp are at (kEnterSync).
  std::uint32_t sync_waits;
  std::uint32_t access_lane;  ///< one more than the lane that runs alone (compiler/warp_lane_loop.cpp); else 0
  alignas(64) std::uint32_t tid[3][kWarpSize];  ///< thread index of every lane
  void* owner;                                  ///< the runtime's warp object
};

/// Lanes of a diverged warp that wait at .sync instructions for other members of their masks (PTX ISA, 9.7.9.6), in the
/// frame of one function. Generated code sets the first four fields, calls kMeet and kMeetAgain, takes what is in
/// `released` as pending, and reads results. All others belong to those helpers.
struct WarpMeetings {
  std::uint32_t waiting;               ///< lanes that wait
  std::uint32_t met;                   ///< lanes that have results to take
  std::uint32_t blocks;                ///< of the function
  const std::uint32_t* pending_masks;  ///< lanes that will run each of them, one day
  std::uint32_t released_count;        ///< out: how many of `released` are set
  struct Released {
    std::uint32_t block, lanes;
  } released[kWarpSize];
  alignas(64) std::uint32_t results[2][kWarpSize];  ///< of lanes in `met`; an i1 in bit 0
  std::uint32_t members[kWarpSize];
  std::uint32_t block[kWarpSize];  ///< where they go on
  std::uint64_t imm[kWarpSize];    ///< SyncImm
  std::uint64_t value[kWarpSize];
  std::uint32_t source[kWarpSize];
  std::uint32_t valid;  ///< lanes whose source is valid
};

/// Flag in the immediate of Helper::kBarrier: register the arrival, do not wait (lanes of a diverged warp). The
/// generated code parks those lanes, lets the rest of the warp go on, and calls kBarrierWait when all its lanes are
/// parked or gone.
inline constexpr std::uint64_t kBarrierArriveOnly = 0x100;
/// Flag in the immediate of a barrier, for memcheck: all threads of a warp have to come to this one (bar,
/// barrier….aligned).
inline constexpr std::uint64_t kBarrierAligned = 0x200;

}  // namespace gridloom::exec
