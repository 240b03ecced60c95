// The MasterKernel (passes/master_kernel.h). Its first warp is the scheduler of Algorithm 1, the others execute tasks.
#include "rewriter/kernels/device.h"
#include "rewriter/kernels/task_records.h"

namespace gridloom::passes::task {

using namespace kernels;

extern "C" {
__shared__ Shared gl_master_tables;
extern __shared__ __attribute__((aligned(1024))) unsigned char gl_master_pool[];
/// Runs a warp's part of a task of kernel `number`; `warp` is the address of the warp's record. The pass puts a chain
/// of calls, one for each task function, in the place of this call.
__device__ void gl_run_task(Word number, Word warp);
}

namespace {

/// The places at which the timing model looks on (sim/hardware/pagoda/master_sm.h) are labels in the PTX.
#define GL_PLACE(name) asm volatile(name ":")

/// Devices before Volta have no such instruction: the pass leaves it out, and a warp that waits polls all the time.
__device__ void Nap() { asm volatile("nanosleep.u32 100;"); }

struct Master {
  unsigned char* table;
  volatile Control* control;
  Word rows, entry_bytes, pool_bytes;
};

__device__ volatile Entry& EntryAt(unsigned char* first, Word number, Word entry_bytes) {
  return *reinterpret_cast<volatile Entry*>(first + std::uint64_t{number} * entry_bytes);
}
__device__ unsigned char* ColumnOf(const Master& master) {
  return master.table + std::uint64_t{BlockNumber() * master.rows} * master.entry_bytes;
}

/// Whether one node of the buddy tree is the other one, or lies under it or above it.
__device__ bool Overlap(Word node, Word other) {
  const Word a = HighestBit(node), b = HighestBit(other);
  return a < b ? other >> (b - a) == node : node >> (a - b) == other;
}

/// A block that waits for what it needs: a slot, a barrier's number, shared memory.
struct Block {
  Word slot = 0, barrier = 0, address = 0;
};

class Scheduler {
 public:
  __device__ explicit Scheduler(const Master& master) : master_(master), lane_(Lane()), leads_(lane_ == 0) {}

  /// Algorithm 1, lines 3 to 28: lane i looks at row i.
  __device__ void Run() {
    unsigned char* const column = ColumnOf(master_);
    for (;;) {
      GL_PLACE("gl_scan");
      Word todo = Look(column);
      if (todo == 0) {
        if (master_.control->end != 0) break;
        Nap();
      }
      for (; todo != 0; todo &= todo - 1) {
        const Word row = LowestBit(todo);
        Begin(EntryAt(column, row, master_.entry_bytes), row);
      }
    }
    tables_.warps[lane_].exec = Warp::kEnd;
  }

 private:
  /// The rows whose tasks are to be scheduled. A task whose predecessor's parameters are there lets that one begin.
  __device__ Word Look(unsigned char* column) {
    Word ready = 0, sched = 0;
    volatile Entry& entry = EntryAt(column, lane_, master_.entry_bytes);
    if (lane_ < master_.rows) {
      ready = entry.ready;
      sched = entry.sched;
    }
    if (static_cast<std::int32_t>(ready) >= static_cast<std::int32_t>(Entry::kFirstTask)) {
      volatile Entry& before = EntryAt(master_.table, ready - Entry::kFirstTask, master_.entry_bytes);
      if (before.ready == Entry::kThere) {
        DeviceFence();
        before.ready = Entry::kRuns;
        DeviceFence();
        before.sched = 1;
        entry.ready = Entry::kThere;
      }
    }
    WaitForWarp();
    return Vote(sched == 1);
  }

  __device__ void Begin(volatile Entry& entry, Word row) {
    DeviceFence();
    if (leads_) entry.sched = 0;
    const Word threads = entry.threads, blocks = entry.blocks, bytes = entry.shared_bytes, barrier = entry.barrier;
    const Word warps = (threads + kLanes - 1) / kLanes;
    if (leads_) tables_.done[row] = warps * blocks;
    if ((bytes | barrier) == 0) return Place(row, 0, warps * blocks, warps, Block{});
    for (Word block = 0; block < blocks; ++block) {
      Block needs;
      while (!Take(bytes, barrier == static_cast<Word>(Barrier::kNamed), threads, warps, needs)) {
      }
      Place(row, block * warps, warps, warps, needs);
    }
  }

  /// Blocks whose last warp has ended give back what they had.
  __device__ void Sweep() {
    for (Word ended = Vote(tables_.slots[lane_].state == Slot::kEnded); ended != 0; ended &= ended - 1) {
      volatile Slot& slot = tables_.slots[LowestBit(ended)];
      const Word barrier = slot.barrier_id;
      if (barrier != 0) barriers_ |= 1u << barrier;
      if (const Word node = slot.node; node != 0) Release(node);
      if (leads_) slot.state = Slot::kFree;
      WaitForWarp();
    }
  }

  __device__ Word nodes() const { return 2 * master_.pool_bytes / Shared::kSmallest; }

  /// What lies under a node is free, and so is each node above it whose two halves are (5.1, Figure 4).
  __device__ void Release(Word node) {
    const Word depth = HighestBit(node);
    for (Word one = lane_; one < nodes(); one += kLanes) {
      if (one != 0 && HighestBit(one) >= depth && Overlap(node, one)) tables_.tree[one] = 0;
    }
    WaitForWarp();
    while (node > 1 && tables_.tree[node ^ 1] == 0) {
      node >>= 1;
      WaitForWarp();
      if (leads_) tables_.tree[node] = 0;
      WaitForWarp();
    }
  }

  /// False if there is no slot, no barrier or no memory for the block now.
  __device__ bool Take(Word bytes, bool named, Word threads, Word warps, Block& needs) {
    Sweep();
    const Word free = Vote(tables_.slots[lane_].state == Slot::kFree);
    if (free == 0 || (named && barriers_ == 0)) return false;
    Word node = 0;
    if (bytes != 0) {
      Word level = 1, size = master_.pool_bytes;
      for (; size / 2 >= bytes && size / 2 >= Shared::kSmallest; size /= 2) level *= 2;
      node = FindNode(level);
      if (node == 0) return false;
      Mark(node);
      needs.address = SharedAddress(gl_master_pool) + (node - level) * size;
    }
    if (named) {
      needs.barrier = LowestBit(barriers_);
      barriers_ &= barriers_ - 1;
    }
    volatile Slot& slot = tables_.slots[LowestBit(free)];
    needs.slot = SharedAddress(&slot);
    WaitForWarp();
    if (leads_) {
      slot.word = threads;
      slot.warps_left = warps;
      slot.node = node;
      slot.barrier_id = needs.barrier;
      slot.state = Slot::kUsed;
    }
    return true;
  }

  /// A free node among those from `level` on, which all have one size; 0 if there is none.
  __device__ Word FindNode(Word level) const {
    for (Word first = level; first < 2 * level; first += kLanes) {
      const Word node = first + lane_;
      const Word free = Vote(node < 2 * level && tables_.tree[node] == 0);
      if (free != 0) return first + LowestBit(free);
    }
    return 0;
  }

  /// A node that is taken, with all under it and above it (5.1, Figure 3).
  __device__ void Mark(Word node) {
    for (Word one = lane_; one < nodes(); one += kLanes) {
      if (one != 0 && Overlap(node, one)) tables_.tree[one] = 1;
    }
    WaitForWarp();
  }

  /// Algorithm 2: lane i looks at warp i; the free ones get the numbers that come next.
  __device__ void Place(Word row, Word number, Word left, Word warps_of_block, const Block& needs) {
    while (left != 0) {
      WaitForWarp();
      volatile Warp& warp = tables_.warps[lane_];
      bool is_free = lane_ != 0 && lane_ < BlockThreads() / kLanes && warp.exec == Warp::kFree;
      const Word free = Vote(is_free), before = CountBits(free & LanesBelow());
      if (is_free && before < left) {
        const Word block = (number + before) / warps_of_block;
        warp.block = block;
        warp.first_thread = (number + before - block * warps_of_block) * kLanes;
        warp.row = row;
        warp.slot = needs.slot;
        warp.shared = needs.address;
        warp.barrier_id = needs.barrier;
        BlockFence();
        warp.exec = Warp::kTask;
      }
      WaitForWarp();
      const Word found = CountBits(free), placed = found < left ? found : left;
      left -= placed;
      number += placed;
    }
  }

  const Master master_;
  const Word lane_;
  const bool leads_;
  volatile Shared& tables_ = gl_master_tables;
  Word barriers_ = 0xFFFE;  ///< numbers that are free
};

/// What the task's code asks for is in the record of its warp.
__device__ void Fill(volatile Warp& warp, const volatile Entry& entry, Word block) {
  const Word x = entry.grid[0], y = entry.grid[1];
  warp.grid[0] = x;
  warp.grid[1] = y;
  warp.grid[2] = entry.grid[2];
  warp.threads = entry.threads;
  warp.block_size[0] = entry.block[0];
  warp.block_size[1] = entry.block[1];
  warp.block_size[2] = entry.block[2];
  warp.dynamic_bytes = entry.dynamic_bytes;
  warp.params = reinterpret_cast<std::uint64_t>(&entry + 1);
  warp.cta[0] = block % x;
  warp.cta[1] = block / x % y;
  warp.cta[2] = block / x / y;
}

/// Until there is something to do: Warp::kTask or kEnd.
__device__ Word WaitForTask(volatile Warp& warp) {
  Word exec = 0;
  do {
    GL_PLACE("gl_wait");
    exec = warp.exec;
    if (exec == Warp::kFree) Nap();
  } while (exec == Warp::kFree);
  return exec;
}

/// Algorithm 1, lines 30 to 43.
__device__ void Execute(const Master& master) {
  const Word lane = Lane(), number = ThreadNumber() / kLanes;
  const bool leads = lane == 0;
  unsigned char* const column = ColumnOf(master);
  volatile Warp& own = gl_master_tables.warps[number];
  for (;;) {
    WaitForWarp();
    if (WaitForTask(own) == Warp::kEnd) return;
    WaitForWarp();
    BlockFence();
    const Word row = own.row, block = own.block, first = own.first_thread, slot = own.slot;
    volatile Entry& entry = EntryAt(column, row, master.entry_bytes);
    const Word kernel = entry.kernel, threads = entry.threads;
    if (leads) {
      auto& runs = reinterpret_cast<volatile Control::Warp*>(master.control +
                                                             1)[BlockNumber() * (BlockThreads() / kLanes) + number];
      runs.row = row + 1;
      runs.block = block;
      runs.first_thread = first;
      Fill(own, entry, block);
    }
    WaitForWarp();
    if (first + lane < threads) gl_run_task(kernel, SharedAddress(&own));
    WaitForWarp();
    SystemFence();
    WaitForWarp();
    if (!leads) continue;
    if (slot != 0) {
      volatile Slot& of = *SharedAt<Slot>(slot);
      if (CountDown(of.warps_left) == 0) of.state = Slot::kEnded;
    }
    if (CountDown(gl_master_tables.done[row]) == 0) {
      SystemFence();
      entry.ready = Entry::kFree;
    }
    BlockFence();
    own.exec = Warp::kFree;
  }
}

}  // namespace

extern "C" __global__ void gl_master(unsigned char* table, volatile Control* control, Word rows, Word entry_bytes,
                                     Word pool_bytes) {
  auto* const words = reinterpret_cast<Word*>(&gl_master_tables);
  for (Word at = ThreadNumber(); at < sizeof(Shared) / sizeof(Word); at += BlockThreads()) words[at] = 0;
  WaitForBlock();
  const Master master{table, control, rows, entry_bytes, pool_bytes};
  if (ThreadNumber() < kLanes) Scheduler(master).Run();
  else Execute(master);
}

}  // namespace gridloom::passes::task
