// Records that task functions, the MasterKernel and the host share (T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann
// and T. G. Rogers, Pagoda: Fine-Grained GPU Resource Virtualization for Narrow Tasks, PPoPP 2017): an entry of the
// TaskTable in global memory (4.2), and in shared memory an entry of the WarpTable (Table 2) and one for each thread
// block that needs shared memory or a barrier (5.1, 5.2). Offsets in bytes.
#pragma once

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

/// An entry of the TaskTable; its parameters follow.
struct Entry {
  // States of `ready` (4.2.2): 0 free, -1 its parameters are there, 1 it is being scheduled or runs, else the number of
  // the task before it, whose parameters are there when this entry is.
  static constexpr std::uint32_t kReady = 0, kSched = 4;
  static constexpr std::uint32_t kKernel = 8, kBlocks = 12, kThreads = 16, kSharedBytes = 20, kBarrier = 24;
  static constexpr std::uint32_t kGridX = 28, kGridY = 32, kGridZ = 36, kBlockX = 40, kBlockY = 44, kBlockZ = 48,
                                 kDynamicBytes = 52;
  static constexpr std::uint32_t kParams = 64;
  /// Task numbers begin here: 0, 1 and -1 are states.
  static constexpr std::uint32_t kFirstTask = 2;
};

/// An entry of the WarpTable. What follows kBarrierId the warp fills in itself.
struct Warp {
  static constexpr std::uint32_t kExec = 0;  ///< 0 free, 1 a task's, 2 it is to end
  static constexpr std::uint32_t kRow = 4, kFirstThread = 8, kSlot = 12, kBlock = 16, kShared = 20, kBarrierId = 24;
  static constexpr std::uint32_t kBlockX = 28, kBlockY = 32, kBlockZ = 36, kGridX = 40, kGridY = 44, kGridZ = 48;
  static constexpr std::uint32_t kParams = 56;  ///< 8 bytes: where they are in global memory
  static constexpr std::uint32_t kCtaX = 64, kCtaY = 68, kCtaZ = 72, kThreads = 76, kDynamicBytes = 80;
  static constexpr std::uint32_t kBytes = 96, kMost = 32;
};

/// A block that has shared memory or a barrier.
struct Slot {
  /// Threads that have not ended (bits 0 to 10), that wait (11 to 21), and how often they have waited (22 to 31).
  static constexpr std::uint32_t kWord = 0;
  static constexpr std::uint32_t kWarpsLeft = 4;
  static constexpr std::uint32_t kState = 8;  ///< 0 free, 1 in use, 2 its last warp has ended
  static constexpr std::uint32_t kNode = 12;  ///< of the buddy tree; 0 without shared memory
  static constexpr std::uint32_t kBarrierId = 16;
  static constexpr std::uint32_t kBytes = 32, kMost = 32;
  static constexpr std::uint32_t kWaitsShift = 11, kRoundShift = 22, kCountMask = 0x7FF;
};

/// The MasterKernel's static shared memory.
struct Shared {
  static constexpr std::uint32_t kMostRows = 32;     ///< of a column of the TaskTable
  static constexpr std::uint32_t kSmallest = 512;    ///< bytes of the smallest block of shared memory (5.1)
  static constexpr std::uint32_t kMostPool = 65536;  ///< bytes that tasks can have of a master block
  static constexpr std::uint32_t kWarps = 0;
  static constexpr std::uint32_t kSlots = kWarps + Warp::kBytes * Warp::kMost;
  static constexpr std::uint32_t kDone =
      kSlots + Slot::kBytes * Slot::kMost;                       ///< warps of each row's task that have not ended
  static constexpr std::uint32_t kTree = kDone + 4 * kMostRows;  ///< a byte for each node, the root is number 1
  static constexpr std::uint32_t kBytes = kTree + 2 * kMostPool / kSmallest;
};

/// What the MasterKernel's `control` points at in global memory.
struct Control {
  static constexpr std::uint32_t kEnd = 0;     ///< 32 bits, not 0: end when no task is left
  static constexpr std::uint32_t kWarps = 16;  ///< for each warp of each block, what it runs or ran last
  static constexpr std::uint32_t kWarpBytes = 16;
  struct Warp {
    std::uint32_t row = 0;  ///< of its block's column, counted from 1; 0: it has run nothing
    std::uint32_t block = 0, first_thread = 0, unused = 0;
  };
  static constexpr std::uint32_t BytesFor(std::uint32_t blocks, std::uint32_t warps) {
    return kWarps + blocks * warps * kWarpBytes;
  }
};

inline constexpr std::uint32_t kMostBarriers =
    15;  ///< of the hardware's 16; the MasterKernel keeps number 0 for itself

}  // namespace gridloom::passes::task
