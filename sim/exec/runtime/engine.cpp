#include "sim/exec/engine.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "sim/exec/contract/code_lines.h"
#include "sim/exec/contract/grid_workspace.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/elapsed.h"
#include "sim/exec/runtime/engine_internal.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/fault_signal.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/interpreter/interpreter.h"
#include "sim/exec/runtime/kernel_builder.h"
#include "sim/exec/runtime/memcheck/checker.h"
#include "sim/exec/runtime/occupancy.h"
#include "sim/exec/runtime/parameter_buffers.h"
#include "sim/exec/runtime/printf_output.h"
#include "sim/exec/runtime/processor_choices.h"
#include "sim/exec/runtime/program_impl.h"
#include "sim/exec/runtime/source_line.h"
#include "sim/exec/runtime/worker_pool.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kMaxBlockThreads = 1024;
constexpr std::uint32_t kMaxClusterCtas = 16;
constexpr std::uint64_t kShareFromNs = 15'000;  // work worth waking another thread for
// Frames of a warp on the host for those of a thread on a GPU, with room to spare.
constexpr std::size_t kHostBytesPerStackByte = 128;
constexpr std::uint32_t kSharedAlign = 1024;  // of a CTA's window; more than any variable asks for

unsigned AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// Distance between the local memories of two lanes: dense when small, else an odd number of cache lines, so that the
/// same variable of 32 lanes does not fall into one cache set.
std::uint32_t LocalStride(std::uint32_t bytes) {
  if (bytes <= 64) return static_cast<std::uint32_t>(RoundUp(bytes, 16));
  return static_cast<std::uint32_t>(RoundUp(bytes, 64)) | 64;
}

/// Their code is made when they are launched, on a thread of ours.
bool LaunchesKernels(const ptx::Module& module) {
  return std::ranges::any_of(
      module.functions, [](const auto& function) { return function.name.find("LaunchDevice") != std::string::npos; });
}

LaunchFault Refuse(const KernelInfo& kernel, FaultKind kind, std::string text) {
  LaunchFault fault;
  fault.kind = kind;
  fault.kernel = kernel.name;
  fault.text = "kernel " + kernel.name + ": " + std::move(text);
  return fault;
}

LaunchFault Stopped(const KernelInfo& kernel) {
  return Refuse(kernel, FaultKind::kStopped, "the program's grids were ended");
}

class EngineImpl final : public Engine {
 public:
  EngineImpl(const Options& options, const sim::DeviceSpec& device, DeviceMemory& memory, EngineParts parts)
      : options_(options),
        device_(device),
        memory_(memory),
        builder_(options, parts.compile, parts.compiler_id, options.threads != 0 ? options.threads : AvailableCores()),
        heap_(memory, options.device_heap_bytes, options.memcheck),
        parameter_buffers_(memory),
        output_(
            options.printf_fifo_bytes,
            parts.printf_sink ? std::move(parts.printf_sink)
                              : [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }),
        threads_(options.threads != 0 ? options.threads : AvailableCores()),
        pool_(threads_ - 1, memory) {
    services_.memory = &memory_;
    services_.heap = &heap_;
    services_.output = &output_;
    services_.parameter_buffers = &parameter_buffers_;
    services_.engine = this;
    services_.helpers = HelperTable();
    services_.clock_ghz = std::max(device_.sm.clock_mhz, 1u) / 1000.0;
    services_.watchdog_seconds = options_.watchdog_seconds;
    services_.threads = threads_;
    if (options_.memcheck) {
      memcheck_ = std::make_unique<Memcheck>(options_, memory_, heap_);
      services_.memcheck = memcheck_.get();
    }
  }

  LaunchFault Run(const LaunchParams& launch, LaunchStats* stats) override;
  void Stop() override;
  Status Prepare(const std::shared_ptr<Program>& program, const KernelInfo& kernel, Dim3 block) override;
  std::uint32_t Occupancy(const KernelInfo& kernel, std::uint32_t block_threads, std::uint32_t dynamic_shared_bytes,
                          std::uint32_t stack_bytes) const override {
    return CtasPerSm(device_, kernel, block_threads, dynamic_shared_bytes, stack_bytes);
  }
  Findings MemcheckFindings() const override { return memcheck_ ? memcheck_->findings() : Findings{}; }
  void EndMemcheck() override {
    if (memcheck_) memcheck_->End();
  }
  std::uint64_t NewGridId() override { return grid_id_.fetch_add(1, std::memory_order_relaxed) + 1; }
  unsigned threads() const override { return threads_; }
  std::uint64_t device_heap_bytes() const override { return heap_.bytes(); }
  void set_device_heap_bytes(std::uint64_t bytes) override { heap_.set_bytes(bytes); }

 private:
  Result<KernelTable::Found> Find(ProgramImpl& program, const KernelInfo& kernel, Dim3 grid, Dim3 block, bool clusters,
                                  Recording record, bool machine_code = false);
  std::string RunUnits(const LaunchParams& params, const LoadedKernel& kernel, std::uint64_t first,
                       std::uint64_t workspace, Launch& launch);
  std::string Describe(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch);
  void Name(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch);
  std::string FillContext(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch);
  void GiveStacks(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch);
  std::string LimitResidents(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch);
  void Execute(Launch& launch);
  void AddLine(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch);
  void ReportStray(const LaunchParams& params, const LoadedKernel& kernel, const Launch& launch) const;
  std::string CheckShape(const LaunchParams& params) const;
  std::uint32_t StackBytes(const LaunchParams& params) const {
    return params.stack_bytes.value_or(options_.stack_bytes);
  }
  /// Whether calls may nest deeper than where nobody has raised the limit. Interpreted frames would need many times the
  /// host's stack.
  bool DeepStack(const LaunchParams& params) const {
    return params.kernel->open_stack && StackBytes(params) > options_.stack_bytes;
  }

  const Options options_;
  const sim::DeviceSpec device_;
  DeviceMemory& memory_;
  KernelBuilder builder_;
  DeviceHeap heap_;
  ParameterBuffers parameter_buffers_;
  PrintfOutput output_;
  const unsigned threads_;
  std::unique_ptr<Memcheck> memcheck_;
  EngineServices services_;
  WorkerPool pool_;
  std::atomic<std::uint64_t> grid_id_{0};
};

/// Serial numbers are never used twice in a process: equipment kept from an earlier launch recognises a new one by
/// them.
std::uint64_t NextSerial() {
  static std::atomic<std::uint64_t> serial{0};
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

Result<KernelTable::Found> EngineImpl::Find(ProgramImpl& program, const KernelInfo& kernel, Dim3 grid, Dim3 block,
                                            bool clusters, Recording record, bool machine_code) {
  CompileOptions options;
  options.block[0] = block.x;
  options.block[1] = block.y;
  options.block[2] = block.z;
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 31;
  options.small_grid = std::uint64_t{grid.x} * block.x < kSmall && std::uint64_t{grid.y} * block.y < kSmall &&
                       std::uint64_t{grid.z} * block.z < kSmall;
  options.clusters = clusters;
  options.memcheck = options_.memcheck;
  options.record = record;
  if (options_.cpu_features == "avx2") options.cpu = "x86-64-v3";
  else if (options_.cpu_features == "baseline") options.cpu = "x86-64";
  const ProcessorChoices& choices = builder_.Choices();
  options.fetch_ahead = choices.fetch_ahead;
  options.few_lanes = choices.few_lanes;
  options.guard_zones = memory_.has_guard_zones();
  GL_TRY(found, program.kernel_table().Get(kernel.function, options, [&](const CompileOptions& wanted) {
    return builder_.Build(program, kernel, wanted);
  }));
  // A grid that the host feeds while it runs is one for the length of the program; CTAs of a cooperative one are there
  // at the same time, so that machine code could not take over between two of them.
  if (found.kernel->tier && machine_code) {
    GL_TRY(better, builder_.MakeNow(program, kernel, *found.kernel));
    found.kernel = better;
  }
  return found;
}

Status EngineImpl::Prepare(const std::shared_ptr<Program>& program, const KernelInfo& kernel, Dim3 block) {
  GL_TRY(found, Find(static_cast<ProgramImpl&>(*program), kernel, {}, block, kernel.required_cluster[0] != 0,
                     Recording::kNone));
  static_cast<void>(found);
  if (options_.records || LaunchesKernels(program->module_as_read())) builder_.LoadCompiler();
  return {};
}

/// Empty when the launch can run at all. The driver API checks more, and reports it as a driver does.
std::string EngineImpl::CheckShape(const LaunchParams& params) const {
  const Dim3 &grid = params.grid, &block = params.block, &cluster = params.cluster;
  if (grid.count() == 0 || block.count() == 0 || cluster.count() == 0) return "a dimension of the launch is 0";
  if (block.x > kMaxBlockThreads || block.y > kMaxBlockThreads || block.count() > kMaxBlockThreads)
    return "a block of " + std::to_string(block.count()) + " threads; at most 1024 are possible";
  if (cluster.count() > kMaxClusterCtas)
    return "a cluster of " + std::to_string(cluster.count()) + " CTAs; at most 16 are possible";
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    return "the grid is no multiple of the cluster";
  if (!params.ctas.empty()) {
    if (cluster.count() != 1 || params.cooperative || params.slice)
      return "single CTAs of a grid that has to run as a whole";
    if (std::ranges::max(params.ctas) >= grid.count())
      return "CTA " + std::to_string(std::ranges::max(params.ctas)) + " is not in the grid";
  }
  if (!params.sms.empty() && std::ranges::max(params.sms) >= device_.sm.count)
    return "SM " + std::to_string(std::ranges::max(params.sms)) + " is none of the device's";
  if (params.params.size() > Launch::kMaxParamBytes)
    return std::to_string(params.params.size()) + " bytes of parameters";
  if (params.params.size() < params.kernel->params.bytes)
    return std::to_string(params.params.size()) + " bytes of parameters, " +
           std::to_string(params.kernel->params.bytes) + " expected";
  return {};
}

/// Who the grid is, who looks on, and in which units it runs.
void EngineImpl::Name(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch) {
  const Dim3 &grid = params.grid, &cluster = params.cluster;
  launch.serial = NextSerial();
  launch.kernel = &kernel;
  launch.kernel_name = params.kernel->name.c_str();
  launch.info = params.kernel;
  launch.services = &services_;
  launch.program = params.program;
  launch.observer = params.observer;
  launch.records = params.records;
  launch.ranges = params.ranges;
  launch.children = params.children;
  launch.use_order = params.use_order;
  launch.library = params.library;
  launch.feed = params.feed;
  launch.slice = params.slice;
  launch.sms = params.sms;
  launch.ctas_per_unit = static_cast<std::uint32_t>(cluster.count());
  launch.unit_grid[0] = grid.x / cluster.x;
  launch.unit_grid[1] = grid.y / cluster.y;
  launch.unit_grid[2] = grid.z / cluster.z;
  launch.ctas = params.ctas;
  launch.in_turn = params.in_turn;
  launch.units = params.ctas.empty() ? grid.count() / cluster.count() : params.ctas.size();
}

/// What the kernel's code reads of its launch. Empty, or what is missing.
std::string EngineImpl::FillContext(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch) {
  LaunchCtx& ctx = launch.ctx;
  ctx.window_base = memory_.range_base();
  ctx.window_bytes = memory_.high_water_bytes();
  ctx.symbols = static_cast<ProgramImpl&>(*params.program).symbol_addresses().data();
  ctx.helpers = services_.helpers;
  const Dim3* const dims[] = {&params.grid, &params.block, &params.cluster};
  std::uint32_t* const into[] = {ctx.grid, ctx.block, ctx.cluster};
  for (int i = 0; i < 3; ++i) {
    into[i][0] = dims[i]->x;
    into[i][1] = dims[i]->y;
    into[i][2] = dims[i]->z;
  }
  const std::uint64_t shared = params.dynamic_shared_bytes != 0
                                   ? std::uint64_t{kernel.dynamic_shared_offset} + params.dynamic_shared_bytes
                                   : kernel.static_shared_bytes;
  if (shared > (1u << 30)) return std::to_string(shared) + " bytes of shared memory";
  ctx.dynamic_shared_bytes = params.dynamic_shared_bytes;
  ctx.total_shared_bytes = static_cast<std::uint32_t>(shared);
  ctx.warps_per_cta = static_cast<std::uint32_t>((params.block.count() + kWarpSize - 1) / kWarpSize);
  ctx.grid_id = params.grid_id != 0 ? params.grid_id : NewGridId();
  ctx.sm_count = std::max(device_.sm.count, 1u);
  launch.sm_share = params.sms.empty() ? ctx.sm_count : static_cast<std::uint32_t>(params.sms.size());
  ctx.shared_stride = static_cast<std::uint32_t>(RoundUp(std::max<std::uint64_t>(shared, 1), kSharedAlign));
  // A GPU gives out shared memory in these units and finds accesses beyond them; compilers load past the end of an
  // array inside of them. Who has none gets none.
  launch.shared_limit = static_cast<std::uint32_t>(RoundUp(shared, std::max(device_.allocation.shared_bytes, 1u)));
  ctx.owner = &launch;
  return {};
}

/// Memory of a CTA, local memory of a thread, and how deep recursion may go.
void EngineImpl::GiveStacks(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch) {
  // Frames that are known need no room beyond them: what others say of the limit does not spread their memory.
  launch.own_memory_bytes = params.kernel->own_memory_bytes;
  const auto stack_bytes =
      static_cast<std::uint32_t>(RoundUp(params.kernel->open_stack ? StackBytes(params) : options_.stack_bytes, 16));
  if (kernel.local_bytes != 0 || kernel.recursive) {
    launch.local_bytes = kernel.local_bytes + stack_bytes;
    launch.local_stride = LocalStride(launch.local_bytes);
  }
  if (kernel.recursive)
    launch.recursion_bytes = std::max(Worker::kRecursiveStackBytes, std::size_t{stack_bytes} * kHostBytesPerStackByte);
}

/// CTAs that may wait for each other run at the same time as far as the device holds them. Empty, or what is missing.
std::string EngineImpl::LimitResidents(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch) {
  if (!kernel.needs_fiber || kernel.simple_barriers) return {};
  const std::uint32_t per_sm = CtasPerSm(device_, *params.kernel, static_cast<std::uint32_t>(params.block.count()),
                                         params.dynamic_shared_bytes, StackBytes(params));
  const std::uint64_t resident = std::uint64_t{std::max(per_sm, 1u)} * launch.sm_share;
  launch.resident_limit = std::max<std::uint64_t>(resident / params.cluster.count(), 1);
  if (!params.cooperative || params.grid.count() <= resident) return {};
  return "a cooperative grid of " + std::to_string(params.grid.count()) + " CTAs; the device holds " +
         std::to_string(resident) + " of them at the same time";
}

/// Fills what does not change while the grid runs. Empty, or what is missing.
std::string EngineImpl::Describe(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch) {
  Name(params, kernel, launch);
  if (std::string missing = FillContext(params, kernel, launch); !missing.empty()) return missing;
  GiveStacks(params, kernel, launch);
  return LimitResidents(params, kernel, launch);
}

/// A grid among the onlookers, for as long as it runs.
class Looking {
 public:
  explicit Looking(Onlookers& onlookers) : onlookers_(onlookers) { onlookers_.Enter(); }
  ~Looking() { onlookers_.Leave(); }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  Onlookers& onlookers_;
};

/// Whether the grid may wait for what other grids store. One that may begin again does not.
bool MayLook(const Launch& launch) {
  return !launch.undo && launch.kernel->needs_fiber && !launch.kernel->simple_barriers;
}

struct Sharing {
  WorkerPool* pool;
  Launch* launch;
  bool shared;
};

/// Deals what is left of a grid to all threads, a part each. Not where CTAs have to begin in order: where others may
/// wait for them, where machine code may take over from some unit on, and where somebody reads along.
void DealUnits(Launch& launch) {
  const bool waits = launch.kernel->needs_fiber && !launch.kernel->simple_barriers;
  const bool read = launch.observer || launch.records || launch.ranges;
  if (waits || read || launch.may_be_superseded || launch.units > UnitShares::kMostUnits) return;
  const std::uint64_t next = launch.next_unit.exchange(launch.units, std::memory_order_relaxed);
  launch.shares.Deal({next, launch.units}, launch.services->threads);
}

/// Whether a grid goes to all threads at once, as the first CTA of an earlier one took so long. One in some is timed
/// again: what a CTA takes depends on its data.
bool SharesAtOnce(const Launch& launch) {
  constexpr std::uint32_t kUntimed = 16;
  const std::uint64_t unit_ns = std::atomic_ref(launch.kernel->unit_ns).load(std::memory_order_relaxed);
  return unit_ns * launch.units >= kShareFromNs &&
         std::atomic_ref(launch.kernel->untimed_grids).fetch_add(1, std::memory_order_relaxed) < kUntimed;
}

/// Asked by the launching thread after the first CTA: is the rest worth waking other threads?
bool ShareRest(void* context, std::uint64_t first_unit_ns, std::uint64_t units_left) {
  auto& sharing = *static_cast<Sharing*>(context);
  const LoadedKernel& kernel = *sharing.launch->kernel;
  std::atomic_ref(kernel.unit_ns).store(first_unit_ns, std::memory_order_relaxed);
  std::atomic_ref(kernel.untimed_grids).store(0, std::memory_order_relaxed);
  if (first_unit_ns * units_left < kShareFromNs) return false;
  sharing.shared = true;
  DealUnits(*sharing.launch);
  sharing.pool->Publish(*sharing.launch);
  return true;
}

void EngineImpl::Execute(Launch& launch) {
  Sharing sharing{&pool_, &launch, false};
  const bool waits = launch.kernel->needs_fiber && !launch.kernel->simple_barriers;
  const bool can_share = pool_.has_helpers() && launch.units > 1 && !launch.in_turn;
  std::unique_ptr<Worker> worker = pool_.Borrow();
  worker->KeepParams(launch);
  // Where CTAs may wait for each other there is no point in timing the first one.
  const bool at_once = can_share && (waits || SharesAtOnce(launch));
  if (at_once) {
    sharing.shared = true;
    DealUnits(launch);
    pool_.Publish(launch);
  }
  worker->Run(launch, can_share && !at_once ? &ShareRest : nullptr, &sharing);
  if (sharing.shared) pool_.Finish(launch);
  pool_.Return(std::move(worker));
}

/// Completes the message of a fault by its PTX line, and the source line where the PTX has it.
void EngineImpl::AddLine(const LaunchParams& params, const LoadedKernel& kernel, Launch& launch) {
  LaunchFault& fault = launch.fault;
  const ptx::Module& module = params.program->module();
  if (fault.ptx_line == 0 && launch.fault_pc != 0) {
    const std::uint64_t offset = launch.fault_pc - kernel.code->text_begin();
    const FindLineFn find_line = builder_.LoadFindLine();
    if (find_line)
      fault.ptx_line =
          find_line(&module, params.kernel->name.c_str(), &kernel.options, offset, kernel.code->text_bytes());
  }
  fault.ptx_line = CodeLines(module, *params.kernel->function).PtxLine(fault.ptx_line);
  if (fault.ptx_line == 0) return;
  std::string line = ", PTX line " + std::to_string(fault.ptx_line);
  if (const auto source = FindSource(module, params.kernel->function, fault.ptx_line))
    line += " (" + source->text() + ")";
  fault.text.insert(launch.fault_place_bytes, line);
}

/// Says once per kernel that it touched what a GPU does not check.
void EngineImpl::ReportStray(const LaunchParams& params, const LoadedKernel& kernel, const Launch& launch) const {
  if (!launch.stray.noted || !options_.log || std::atomic_ref(kernel.stray_reported).exchange(true)) return;
  std::string place = "kernel " + params.kernel->name;
  const Dim3& cta = launch.stray.cta;
  place += ", CTA (" + std::to_string(cta.x) + "," + std::to_string(cta.y) + "," + std::to_string(cta.z) + ")";
  if (const std::uint32_t line = PtxLineOf(launch, launch.stray.line)) place += ", PTX line " + std::to_string(line);
  options_.log(place + ": it uses memory that was not allocated, near enough to an allocation that a GPU lets it: " +
               DescribeAddress(memory_, launch.stray.address) + "; run --memcheck names every such access");
}

/// Runs units `first` and on, up to where machine code takes over. Where it does is in launch.next_unit.
std::string EngineImpl::RunUnits(const LaunchParams& params, const LoadedKernel& kernel, std::uint64_t first,
                                 std::uint64_t workspace, Launch& launch) {
  const std::uint64_t grid_id = launch.ctx.grid_id;
  if (std::string error = Describe(params, kernel, launch); !error.empty()) return error;
  if (grid_id != 0) launch.ctx.grid_id = grid_id;
  launch.param_bytes = params.params;
  launch.ctx.grid_workspace = workspace;
  launch.next_unit.store(first, std::memory_order_relaxed);
  launch.may_be_superseded = kernel.tier != nullptr;
  if (kernel.tier && kernel.interpreted && kernel.interpreted->can_begin_again() && params.ctas.empty() &&
      !params.in_turn && launch.ctas_per_unit == 1) {
    launch.undo = std::make_unique<UndoLog>();
    launch.onlookers_before = services_.onlookers.entered();
  }
  services_.running_launches.fetch_add(1, std::memory_order_relaxed);
  {
    const KernelBuilder::Use use(builder_, params, kernel);
    std::optional<Looking> looking;
    if (MayLook(launch)) looking.emplace(services_.onlookers);
    Execute(launch);
  }
  services_.running_launches.fetch_sub(1, std::memory_order_relaxed);
  output_.Flush(launch.serial);
  parameter_buffers_.Drop(launch.serial);
  ReportStray(params, kernel, launch);
  if (launch.fault.kind != FaultKind::kNone) AddLine(params, kernel, launch);
  return {};
}

void EngineImpl::Stop() {
  services_.stopped.store(true);
  InstallFaultHandler();
  // Who is in a helper when it is told is told again.
  auto wait = std::chrono::milliseconds(1);
  while (pool_.TellAllToLeave() || services_.running_launches.load() != 0) {
    std::this_thread::sleep_for(wait);
    wait = std::min(2 * wait, std::chrono::milliseconds(20));
  }
}

LaunchFault EngineImpl::Run(const LaunchParams& params, LaunchStats* stats) {
  const auto start = std::chrono::steady_clock::now();
  if (services_.stopped.load(std::memory_order_relaxed)) return Stopped(*params.kernel);
  if (std::string error = CheckShape(params); !error.empty())
    return Refuse(*params.kernel, FaultKind::kCompile, std::move(error));
  const bool clusters = params.cluster.count() > 1;
  const auto find = [&] {
    return Find(static_cast<ProgramImpl&>(*params.program), *params.kernel, params.grid, params.block, clusters,
                params.records    ? Recording::kAll
                : params.observer ? Recording::kGlobal
                                  : Recording::kNone,
                params.feed != nullptr || params.cooperative || DeepStack(params));
  };
  auto found = find();
  if (!found) return Refuse(*params.kernel, FaultKind::kCompile, found.error().message);
  const LoadedKernel& kernel = *found->kernel;

  std::uint64_t workspace = 0;
  if (params.kernel->uses_grid_sync && params.cooperative) {
    workspace = memory_.Allocate(GridWorkspaceBytes(params.grid.count()), kPageBytes, MemoryKind::kInternal);
    if (workspace == 0) return Refuse(*params.kernel, FaultKind::kOutOfMemory, "no memory for the grid's barrier");
    constexpr std::uint32_t kOwnBytes = kGridArrivalsOffset;  // of the headers' part
    std::memcpy(reinterpret_cast<void*>(workspace), &kOwnBytes, sizeof kOwnBytes);
  }
  InstallFaultHandler();
  const FaultsArrive faults;
  auto launch = std::make_unique<Launch>();
  std::string error = RunUnits(params, kernel, 0, workspace, *launch);
  const std::uint64_t first_serial = launch->serial;
  const bool again = error.empty() && launch->undo && launch->undo->decided() && launch->fault.kind == FaultKind::kNone;
  if (again) launch->undo->Undo();
  if (launch->undo && launch->undo->decided()) services_.onlookers.Resume();
  const std::uint64_t begun_units = std::min(launch->next_unit.load(), launch->units),
                      interpreted_units = again ? 0 : begun_units;
  if (again ||
      (error.empty() && launch->may_be_superseded && !launch->stop.load() && interpreted_units < launch->units)) {
    auto rest = std::make_unique<Launch>();
    rest->ctx.grid_id = launch->ctx.grid_id;
    const LoadedKernel& better = *kernel.tier->better.load(std::memory_order_acquire);
    error = RunUnits(params, better, interpreted_units, workspace, *rest);
    launch = std::move(rest);
  }
  if (memcheck_) memcheck_->EndOfGrid(first_serial, launch->serial);
  if (workspace != 0) memory_.Free(workspace);
  if (!error.empty()) return Refuse(*params.kernel, FaultKind::kOutOfMemory, std::move(error));
  if (services_.stopped.load(std::memory_order_relaxed) && launch->fault.kind == FaultKind::kNone)
    return Stopped(*params.kernel);
  if (stats) {
    stats->ctas = params.ctas.empty() ? params.grid.count() : params.ctas.size();
    stats->warps = stats->ctas * launch->ctx.warps_per_cta;
    if (kernel.interpreted) stats->interpreted_ctas = interpreted_units * params.cluster.count();
    if (again) stats->begun_again_ctas = begun_units;
    stats->seconds = SecondsSince(start);
    // Most kernels are built before their launch is queued; the first launch that ends answers for it.
    stats->compile_seconds = std::atomic_ref(kernel.build_reported).exchange(true) ? 0 : kernel.build_seconds;
    stats->cache_hit = kernel.cache_hit;
  }
  return std::move(launch->fault);
}

}  // namespace

Result<std::unique_ptr<Engine>> CreateEngine(const Engine::Options& options, const sim::DeviceSpec& device,
                                             DeviceMemory& memory, EngineParts parts) {
  if (!options.cpu_features.empty() && options.cpu_features != "avx2" && options.cpu_features != "baseline")
    return Error{"cpu features '" + options.cpu_features + "' are not known; expected avx2 or baseline"};
  ProcessorChoices choices;
  GL_TRY_STATUS(ApplyChoices(options.code, choices));
  GL_TRY_STATUS(CheckTiers(options.tiers));
  return std::unique_ptr<Engine>(new EngineImpl(options, device, memory, std::move(parts)));
}

Result<std::unique_ptr<Engine>> Engine::Create(const Options& options, const sim::DeviceSpec& device,
                                               DeviceMemory& memory) {
  return CreateEngine(options, device, memory, {});
}

}  // namespace gridloom::exec
