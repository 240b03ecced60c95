// Records that task functions, the MasterKernel (master.cu) and the host share (T. T. Yeh, A. Sabne, P. Sakdhnagool, R.
// Eigenmann and T. G. Rogers, Pagoda: Fine-Grained GPU Resource Virtualization for Narrow Tasks, PPoPP 2017): an entry
// of the TaskTable in global memory (4.2), and in shared memory an entry of the WarpTable (Table 2) and one for each
// thread block that needs shared memory or a barrier (5.1, 5.2). For C++ and CUDA; fields lie alike in both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridloom::passes::task {

/// How the threads of a task's block wait for each other.
enum class Barrier : std::uint32_t {
  kNone = 0,
  kNamed = 1,  ///< a barrier of the hardware's, whose number the block is given (5.2): all threads come to it, in whole
               ///< warps
  kCounting = 2,  ///< a word in shared memory, for blocks whose last warp is not full and kernels whose threads may end
                  ///< before others wait
};

/// The head of an entry of the TaskTable; the task's parameters follow it.
struct Entry {
  // 4.2.2: 0 free, -1 its parameters are there, 1 it is being scheduled or runs, else the number of the task before it,
  // whose parameters are there when this entry is.
  std::uint32_t ready, sched;
  std::uint32_t kernel, blocks, threads, shared_bytes, barrier;
  std::uint32_t grid[3], block[3], dynamic_bytes;
  std::uint32_t unused[2];
  /// States of `ready`. Task numbers begin behind them.
  static constexpr std::uint32_t kFree = 0, kRuns = 1, kFirstTask = 2, kThere = 0xFFFFFFFF;
};
static_assert(sizeof(Entry) == 64);

/// An entry of the WarpTable. What follows `barrier_id` the warp fills in itself.
struct alignas(32) Warp {
  std::uint32_t exec;
  static constexpr std::uint32_t kFree = 0, kTask = 1, kEnd = 2;  ///< values of `exec`
  std::uint32_t row, first_thread;
  std::uint32_t slot;  ///< address of the block's Slot, 0 when it has none
  std::uint32_t block;
  std::uint32_t shared;  ///< address of the block's memory
  std::uint32_t barrier_id;
  std::uint32_t block_size[3], grid[3];
  std::uint64_t params;  ///< address in global memory
  std::uint32_t cta[3], threads, dynamic_bytes;
  static constexpr std::uint32_t kMost = 32;
};
static_assert(sizeof(Warp) == 96);

/// A block that has shared memory or a barrier.
struct alignas(32) Slot {
  /// Threads that have not ended (bits 0 to 10), that wait (11 to 21), and how often they have waited (22 to 31).
  std::uint32_t word;
  std::uint32_t warps_left;
  std::uint32_t state;
  static constexpr std::uint32_t kFree = 0, kUsed = 1, kEnded = 2;  ///< values of `state`; kEnded: so has its last warp
  std::uint32_t node;                                               ///< of the buddy tree; 0 without shared memory
  std::uint32_t barrier_id;
  static constexpr std::uint32_t kMost = 32;
  static constexpr std::uint32_t kWaitsShift = 11, kRoundShift = 22, kCountMask = 0x7FF;
};
static_assert(sizeof(Slot) == 32);

/// The MasterKernel's static shared memory.
struct Shared {
  static constexpr std::uint32_t kMostRows = 32;     ///< of a column of the TaskTable
  static constexpr std::uint32_t kSmallest = 512;    ///< bytes of the smallest block of shared memory (5.1)
  static constexpr std::uint32_t kMostPool = 65536;  ///< bytes that tasks can have of a master block
  Warp warps[Warp::kMost];
  Slot slots[Slot::kMost];
  std::uint32_t done[kMostRows];                 ///< warps of each row's task that have not ended
  std::uint8_t tree[2 * kMostPool / kSmallest];  ///< a byte for each node, the root is number 1
};

/// What the MasterKernel's `control` points at in global memory.
struct Control {
  std::uint32_t end;  ///< not 0: end when no task is left
  std::uint32_t unused[3];
  /// For each warp of each block, what it runs or ran last.
  struct Warp {
    std::uint32_t row = 0;  ///< of its block's column, counted from 1; 0: it has run nothing
    std::uint32_t block = 0, first_thread = 0, unused = 0;
  };
  static constexpr std::uint32_t BytesFor(std::uint32_t blocks, std::uint32_t warps) {
    return static_cast<std::uint32_t>(sizeof(Control) + blocks * warps * sizeof(Warp));
  }
};

/// Of the hardware's 16; the MasterKernel keeps number 0 for itself.
inline constexpr std::uint32_t kMostBarriers = 15;

}  // namespace gridloom::passes::task
