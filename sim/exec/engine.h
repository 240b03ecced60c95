// Runs grids on the host's cores. One engine per process; Run may be called from many threads at once and the grids
// share the worker pool (that is how concurrent streams overlap).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/exec/device_memory.h"
#include "sim/exec/dim3.h"
#include "sim/exec/global_shadow.h"
#include "sim/exec/grid_children.h"
#include "sim/exec/grid_feed.h"
#include "sim/exec/memcheck.h"
#include "sim/exec/program.h"
#include "sim/exec/ranges/access_observer.h"
#include "sim/exec/ranges/range_sink.h"
#include "sim/exec/record_sink.h"
#include "sim/exec/use_order.h"

namespace gridloom::exec {

/// What ended a launch. Values map one to one on driver errors (interpose/objects/errors.cpp).
enum class FaultKind : std::uint8_t {
  kNone,
  kIllegalAddress,      ///< 700
  kMisalignedAddress,   ///< 716
  kIllegalInstruction,  ///< 715: something the executor refuses at run time; `text` names it
  kTrap,                ///< 719: trap, brkpt
  kAssert,              ///< 710
  kStackOverflow,       ///< 719 after the message; device stack exhausted
  kInvalidPc,           ///< 718: call through a bad function pointer
  kDeadlock,            ///< 702: no warp can go on; `text` lists the waiting warps
  kCompile,             ///< 218 / 801 at launch: the kernel cannot be compiled; `text` says why
  kOutOfMemory,         ///< 2 / 701
  kStopped,             ///< 719: Engine::Stop ended it
};

struct LaunchFault {
  FaultKind kind = FaultKind::kNone;
  std::string kernel;
  Dim3 cta{0, 0, 0}, thread{0, 0, 0};
  std::uint64_t address = 0;
  std::uint32_t ptx_line = 0;
  std::string text;  ///< one sentence for the log
};

/// A launch that runs consecutive CTAs of a larger grid, with code that knows of it (rewriter/passes/slice.h): CTA i of
/// the launch, in linear order, is CTA first + i of `grid`. That is the one that faults, findings, records and output
/// name.
struct SliceOf {
  Dim3 grid;
  std::uint64_t first = 0;
};

struct LaunchParams {
  std::shared_ptr<Program> program;
  const KernelInfo* kernel = nullptr;
  Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  /// CU_LIMIT_STACK_SIZE: what a thread of a kernel with an open stack (KernelInfo) may take beyond its known frames.
  /// None: the engine's.
  std::optional<std::uint32_t> stack_bytes;
  std::span<const std::byte> params;  ///< the parameter block, laid out as kernel->params says
  bool cooperative = false;           ///< all CTAs are co-resident
  std::optional<SliceOf> slice;
  /// Linear numbers, x fastest: only these CTAs of the grid run. Empty: all. Neither of clusters, cooperative, nor
  /// slices.
  std::span<const std::uint64_t> ctas;
  /// Numbers of the SMs that the CTAs run on. Empty: all of the device's. Must stay until the grid has ended.
  std::span<const std::uint32_t> sms;
  bool in_turn = false;  ///< one host thread runs the CTAs, in the order of `ctas` or of the grid
  /// %gridid; 0: one that no launch had. The slices of one grid share theirs, as do parts of `ctas`.
  std::uint64_t grid_id = 0;
  AccessObserver* observer = nullptr;  ///< told of every access to global memory; the kernel is compiled for it
  RecordSink* records = nullptr;       ///< told of every access and every block; likewise
  RangeSink* ranges = nullptr;         ///< takes the kernel's range calls; null: they do nothing
  GridChildren* children = nullptr;    ///< takes what the grid launches itself; null: such launches fail
  /// File name of the program or shared object that the code is from, for findings; may be empty.
  std::string_view library;
  UseOrder* use_order = nullptr;  ///< memcheck: asked of memory that is there for part of the work; null: of none
  GridFeed* feed = nullptr;       ///< asked between rounds over the warps of a grid of one CTA
};

struct LaunchStats {
  std::uint64_t ctas = 0, warps = 0;
  std::uint64_t interpreted_ctas = 0;  ///< of those: machine code was not there yet
  std::uint64_t begun_again_ctas = 0;  ///< of those: they were being interpreted when it came, and began again
  double seconds = 0, compile_seconds = 0;
  bool cache_hit = false;  ///< code came from the disk cache
};

class Engine {
 public:
  struct Options {
    unsigned threads = 0;                   ///< 0: one per core available to the process
    std::string cache_dir;                  ///< empty: no disk cache
    bool memcheck = false;                  ///< check every access of every kernel (docs/memcheck.md)
    GlobalShadow* global_shadow = nullptr;  ///< memcheck: what has been written (initcheck); null: not looked at
    std::uint32_t memcheck_limit = 100;     ///< different findings that are kept
    /// Told each finding once, when the grid that had it first has ended.
    std::function<void(const MemcheckReport&)> on_memcheck;
    std::string cpu_features;  ///< "", "avx2", "baseline": force fewer features than the host has
    std::string code;  ///< GRIDLOOM_CODE: how code is made, in place of what was measured (runtime/processor_choices.h)
    std::string tiers;     ///< GRIDLOOM_TIERS: "on": what is large is interpreted until its machine code is there
                           ///< (runtime/kernel_builder.h);
                           ///< "" or "off": machine code only; "interpret": the interpreter alone, wherever it can
    bool records = false;  ///< launches may be traced: code for that is made when they run, after Prepare
    std::uint64_t device_heap_bytes = 8u << 20;
    std::uint32_t stack_bytes = 1024;  ///< of launches that say nothing else (LaunchParams::stack_bytes)
    std::uint64_t printf_fifo_bytes = 1u << 20;
    std::uint64_t cache_bytes = std::uint64_t{1} << 30;  ///< what the disk cache may hold (GRIDLOOM_CACHE_SIZE)
    /// A grid that is dead for so long ends with kDeadlock (GRIDLOOM_WATCHDOG); 0: never.
    double watchdog_seconds = 60;
    std::function<void(std::string_view)> log;  ///< for what goes wrong without failing a launch; may be empty
  };
  static Result<std::unique_ptr<Engine>> Create(const Options& options, const sim::DeviceSpec& device,
                                                DeviceMemory& memory);
  virtual ~Engine() = default;

  /// Runs the grid to its end, without what it launched itself. Returns the fault that ended it, kind kNone if none.
  virtual LaunchFault Run(const LaunchParams& launch, LaunchStats* stats = nullptr) = 0;

  /// Ends all grids that run, wherever their warps are, and refuses all that come: their fault is kStopped. Returns
  /// when none runs any more. What they have written stays. For a process whose work nobody wants any more; there is no
  /// way back. Any thread but one that is inside Run.
  virtual void Stop() = 0;

  /// A %gridid that no launch had, for launches that share one.
  virtual std::uint64_t NewGridId() = 0;

  /// Compiles without running (module loading in eager mode, `inspect`, tests).
  virtual Status Prepare(const std::shared_ptr<Program>& program, const KernelInfo& kernel, Dim3 block) = 0;

  /// CTAs of this kernel that fit on one SM of the device (cuOccupancyMaxActiveBlocksPerMultiprocessor).
  /// `stack_bytes` is the limit of the stack.
  virtual std::uint32_t Occupancy(const KernelInfo& kernel, std::uint32_t block_threads,
                                  std::uint32_t dynamic_shared_bytes, std::uint32_t stack_bytes) const = 0;

  /// What memcheck has found so far.
  struct Findings {
    std::vector<MemcheckReport> reports;  ///< in the order they were found
    std::uint64_t not_kept = 0;           ///< accesses whose finding was beyond the limit
    /// Blocks of malloc() in kernels that nobody has freed, and their bytes.
    std::uint64_t heap_blocks = 0, heap_bytes = 0;
  };
  virtual Findings MemcheckFindings() const { return {}; }
  /// The program ends: tells what grids that still run have found (Options::on_memcheck). Nothing is found any more.
  virtual void EndMemcheck() {}

  /// Host threads that run grids, a launching one among them.
  virtual unsigned threads() const { return 1; }

  virtual std::uint64_t device_heap_bytes() const = 0;
  virtual void set_device_heap_bytes(std::uint64_t bytes) = 0;
};

}  // namespace gridloom::exec
