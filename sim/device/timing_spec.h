// The part of a device file that only the timing model reads: keys `timing.*` of configs/devices/*.yaml, documented in
// docs/devices.md. Cycles are those of the clock that the component runs on.
#pragma once

#include <array>
#include <cstdint>

#include "sim/trace/kernel_trace.h"

namespace gridloom::sim {

/// What an SM issues to. Instructions of one pipe wait for each other, those of different pipes do not.
enum class Pipe : std::uint8_t { kInt, kFp32, kFp64, kSfu, kTensor, kMemory, kControl };
inline constexpr std::array kPipeNames = {"int", "fp32", "fp64", "sfu", "tensor", "memory", "control"};
inline constexpr std::size_t kPipeCount = kPipeNames.size();

/// How a scheduler picks among warps that can issue.
enum class WarpOrder : std::uint8_t { kLooseRoundRobin, kGreedyThenOldest, kTwoLevel };
inline constexpr std::array kWarpOrderNames = {"lrr", "gto", "two_level"};

/// What a store of global memory does to a line that L1 holds.
enum class StorePolicy : std::uint8_t { kWriteThrough, kWriteEvict };
inline constexpr std::array kStorePolicyNames = {"write_through", "write_evict"};

/// What of a kernel is simulated: its PTX as the trace has it, or what a GPU executes in its place (sim/lowering).
enum class Lowering : std::uint8_t { kNone, kFull };
inline constexpr std::array kLoweringNames = {"none", "full"};

struct TimingSpec {
  static constexpr std::uint32_t kLineBytes = 128;            ///< of all caches of all CUDA devices
  static constexpr std::uint32_t kSectorBytes = 32;           ///< smallest part of a line that moves
  static constexpr std::uint32_t kTensorMultiplyAdds = 2048;  ///< of halves, what op.tensor is the cost of

  struct Clock {
    std::uint32_t sm_mhz = 0, crossbar_mhz = 0, l2_mhz = 0, dram_mhz = 0;
  } clock;

  struct Sm {
    std::uint32_t schedulers = 0;
    std::uint32_t issue_width = 0;  ///< instructions of one warp a cycle, 1 or 2
    bool same_pipe_pairs = false;   ///< whether both of a pair may go to the same pipe
    bool sub_cores = false;         ///< whether each scheduler has its own units
    WarpOrder warp_order = WarpOrder::kLooseRoundRobin;
    std::uint32_t active_warps = 0;  ///< two_level: warps a scheduler chooses from
    /// Issue of an arithmetic instruction that writes a predicate, to the issue of what it guards, or of a branch by
    /// it; where it is above the instruction's latency. Lowered code only: other code does not say what is a predicate.
    std::uint32_t guard_latency = 0;
  } sm;

  Lowering lowering = Lowering::kNone;

  std::array<std::uint32_t, kPipeCount> units{};  ///< of the whole SM, by Pipe

  /// One per trace::OpClass.
  /// kTensor: those of a product of 2048 multiply-adds of halves; others take as much more or less as they have to do.
  struct Op {
    Pipe pipe = Pipe::kControl;
    std::uint32_t latency = 0;   ///< issue to issue of a dependent instruction
    std::uint32_t interval = 0;  ///< cycles that the instruction occupies a unit
  };
  std::array<Op, trace::kOpClassCount> op{};

  struct Shared {
    std::uint32_t banks = 0, bank_bytes = 0;
    std::uint32_t latency = 0;  ///< without conflict
    /// Loads of 8 and 16 bytes take half as many passes where lanes have the addresses of their neighbours.
    bool twins = false;
    std::uint32_t way_cycles = 0;       ///< each pass after the first one brings its data so much later
    std::uint32_t atomic_interval = 0;  ///< cycles for each lane of an atomic on one address
  } shared;

  struct L1 {
    std::uint32_t size_bytes = 0, ways = 0;
    std::uint32_t latency = 0;  ///< hit
    std::uint32_t tags = 0;     ///< lines of one instruction that are looked up in a cycle
    std::uint32_t mshrs = 0;    ///< lines that may be outstanding
    std::uint32_t merges = 0;   ///< accesses that may wait for one line
    std::uint32_t queue = 0;    ///< memory instructions that wait for the load/store unit
    std::uint32_t stores = 0;   ///< store packets that may be outstanding
    bool sectored = false;      ///< misses fetch sectors of 32 bytes, else the whole line
    bool global = false;        ///< whether loads of global memory are cached
    bool local_write_back = false;
    StorePolicy stores_of_global = StorePolicy::kWriteThrough;
  } l1;

  /// Read-only caches with the line and sector size of L1. Size 0: L1 serves the space.
  struct ReadOnlyCache {
    std::uint32_t size_bytes = 0, ways = 0, latency = 0;
  } constant, texture;

  /// The TLB of an SM, for pages of memory.page_bytes; asked by what leaves the SM. Entries 0: translations take no
  /// time.
  struct Tlb {
    std::uint32_t entries = 0, ways = 0;
    std::uint32_t miss_cycles = 0;  ///< that a request arrives later, SM cycles
  } tlb;

  struct Crossbar {
    std::uint32_t latency = 0;  ///< SM to L2, without queueing
    std::uint32_t header_bytes = 0;
    std::uint32_t sm_out_bytes = 0, sm_in_bytes = 0;        ///< per crossbar cycle and SM
    std::uint32_t slice_in_bytes = 0, slice_out_bytes = 0;  ///< per crossbar cycle and L2 slice
  } crossbar;

  struct L2 {
    std::uint32_t slices = 0, ways = 0;
    std::uint32_t latency = 0;  ///< hit, from the SM's issue to the use, SM cycles
    std::uint32_t mshrs = 0;    ///< lines of a slice that may be outstanding
    std::uint32_t bytes_per_cycle = 0;
    std::uint32_t atomic_interval = 0;        ///< L2 cycles for each lane of an atomic on one address
    std::uint32_t float_atomic_interval = 0;  ///< the same, of floating point
    std::uint32_t interleave_bytes = 0;       ///< consecutive bytes on one DRAM channel
    std::uint32_t halves = 0;                 ///< how often a line is in L2 that all SMs read
    std::uint32_t far_cycles = 0;  ///< what a hit in the half of other SMs takes more than latency, SM cycles
    bool holds_copies = false;     ///< what copies and fills write is in L2 afterwards
  } l2;

  struct Dram {
    static constexpr std::uint32_t kMaxCommandCycles = 2048;  ///< of tCCD and those after it; some 50 are usual
    std::uint32_t channels = 0, banks = 0, bank_groups = 0;
    std::uint32_t row_bytes = 0;
    std::uint32_t access_bytes = 0;     ///< of one burst
    std::uint32_t bytes_per_cycle = 0;  ///< data bus of a channel, per command cycle
    std::uint32_t queue = 0;            ///< requests a channel chooses from
    std::uint32_t latency = 0;          ///< read of a closed bank, from the SM's issue to the use, SM cycles
    std::uint32_t tCCD = 0, tCCDL = 0;  ///< column to column; in the same bank group
    std::uint32_t tRRD = 0;             ///< activate to activate of another bank
    std::uint32_t tRCD = 0, tRAS = 0, tRP = 0, tRC = 0;
    std::uint32_t tCL = 0, tWL = 0, tWR = 0;
    std::uint32_t tCDLR = 0;  ///< last write data to read
    std::uint32_t tRTP = 0;   ///< read to precharge
  } dram;

  struct Launch {
    std::uint32_t queues = 0;            ///< hardware work queues that streams are spread over
    std::uint32_t kernel_cycles = 0;     ///< from the host's launch to the first CTA, SM cycles
    std::uint32_t dependent_cycles = 0;  ///< from the end of a kernel to the first CTA of the next in its stream
    std::uint32_t cta_cycles = 0;        ///< from the decision to start a CTA to its first instruction
    std::uint32_t cta_interval = 0;      ///< between two starts of CTAs on the device
    /// What profilers count of a kernel before its first CTA and behind its last one. It is a part of the times above.
    std::uint32_t profiled_cycles = 0;
  } launch;

  /// Launches by kernels. Calls hold up the warp that makes them, in SM cycles: so many, and so many for each of its
  /// threads that call.
  struct DeviceLaunch {
    std::uint32_t stream_cycles = 0;         ///< a stream is made
    std::uint32_t buffer_cycles = 0;         ///< a parameter buffer, for the warp
    std::uint32_t buffer_thread_cycles = 0;  ///< and for each of its threads
    std::uint32_t call_cycles = 0;           ///< the launch itself, for the warp
    std::uint32_t call_thread_cycles = 0;    ///< and for each of its threads
    std::uint32_t dispatch_cycles = 0;       ///< from the kernel management unit to the kernel distributor
    /// Cycles between two launches that go this way, on the device; 0: any number at a time.
    std::uint32_t dispatch_interval = 0;
    std::uint32_t record_bytes = 0;  ///< of device memory for a launch that is pending, besides its parameters
    std::uint32_t percent = 100;     ///< of all of these cycles
  } device_launch;

  struct Pcie {
    std::uint32_t to_device_mb_s = 0, to_host_mb_s = 0;  ///< 10^6 bytes a second
    std::uint32_t latency_ns = 0;
    std::uint32_t engine_ns = 0;          ///< of that, how long the engine takes no other copy; 0: all of it
    std::uint32_t to_host_engine_ns = 0;  ///< the same of a copy to the host; 0: as engine_ns
    /// What a copy takes besides, and its engine with it, when it was given while a kernel or a copy of another engine
    /// that it waits for had not ended.
    std::uint32_t handover_ns = 0;
  } pcie;

  struct Host {
    std::uint32_t call_ns = 0;  ///< what a call that gives the device work, or asks for it, takes of the program's time
    std::uint32_t copy_call_ns = 0;  ///< the same of a call that copies or fills; 0: as other calls
    std::uint32_t sync_ns = 0;       ///< from the end of a work to the program that waits for it
    /// Rate at which a program reads its inputs from storage before it copies them to the device, and writes what it
    /// has copied back: 10^6 bytes a second. 0: neither takes time.
    std::uint32_t storage_mb_s = 0;
  } host;

  const Op& of(trace::OpClass op_class) const { return op[static_cast<std::size_t>(op_class)]; }
  std::uint32_t units_of(Pipe pipe) const { return units[static_cast<std::size_t>(pipe)]; }
};

}  // namespace gridloom::sim
