#include "sim/hardware/pagoda/pagoda.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <utility>

#include "rewriter/kernels/task_records.h"
#include "rewriter/passes/master_kernel.h"
#include "sim/hardware/pagoda/host_side.h"
#include "sim/timing/device_input.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::hardware {
namespace {

using namespace pagoda;
using timing::WorkId;

enum Key : std::size_t {
  kThreads,
  kWarps,
  kBlocks,
  kRows,
  kPool,
  kEntry,
  kBatch,
  kSpawn,
  kFlush,
  kTimeout,
  kLinger,
  kIdle,
  kSchedulers
};
enum Idle : std::uint64_t { kParked, kPolling };
constexpr std::string_view kIdles[] = {"parked", "polling"};
constexpr PartKey kKeys[] = {
    {"threads", 512, 2, 1 << 20, "threads", "kernels of fewer threads are tasks"},
    {"warps", 32, 2, 32, "warps", "of a master block, its scheduler warp among them"},
    {"blocks", 0, 0, 32, "blocks", "master blocks on an SM; 0: as many as fit"},
    {"rows", 32, 1, 32, "entries", "of a column of the TaskTable, which a master block looks at"},
    {"pool_bytes", 32768, 0, 65536, "bytes",
     "of shared memory for the tasks of a master block: 0 or a power of two from 512 on"},
    {"entry_bytes", 256, 64, 4096, "bytes", "of an entry of the TaskTable: 64 and the parameters; a multiple of 64"},
    {"batch", 0, 0, 1 << 20, "tasks",
     "which must all have ended before the next are spawned; 0: tasks are spawned as they come"},
    {"spawn_ns", 0, 0, 1 << 20, "ns", "of the host's time that a spawn takes; 0: as long as a copy (timing.host)"},
    {"flush_ns", 10000, 0, 1 << 30, "ns", "without a new task, after which the host itself lets the last one begin"},
    {"timeout_ns", 20000, 100, 1 << 30, "ns", "from one look at the device's table to the next, while tasks run"},
    {"linger_ns", 50000, 0, 1 << 30, "ns", "that the MasterKernel stays without tasks"},
    {"idle", kParked, 0, 0, "",
     "what warps without a task do: nothing until they are given one (parked), or look for one all the time, as they "
     "do (polling)",
     kIdles},
    {"schedulers", kPolling, 0, 0, "",
     "what scheduler warps do whose looks at the TaskTable find nothing: look all the time (polling), or let the time "
     "of looks pass until "
     "one "
     "would find something (parked)",
     kIdles},
};

enum Counter : std::size_t { kTasks, kTooWide, kUpdates, kFlushes, kFull, kBusy, kStarts, kSkipped, kCounters };
constexpr timing::PartCounter kCounterTable[] = {
    {"pagoda_tasks", "tasks", "kernels that were spawned as tasks"},
    {"pagoda_refused", "launches",
     "narrow kernels that the MasterKernel has no room for: too many warps in a block, too much shared memory"},
    {"pagoda_updates", "copies", "copies of the whole TaskTable to the host"},
    {"pagoda_flushes", "tasks", "tasks that the host let begin, as no other came behind them"},
    {"pagoda_full", "spawns", "times that the host found no free entry"},
    {"pagoda_task_warp_cycles", "cycles", "warp cycles that warps of the MasterKernel spent in tasks"},
    {"pagoda_starts", "launches", "of the MasterKernel"},
    {"pagoda_skipped_looks", "looks",
     "at the TaskTable that parked scheduler warps were spared (`hardware.pagoda.schedulers`)"},
};
static_assert(std::size(kCounterTable) == kCounters);

/// The MasterKernel's blocks, as a launch has them. They have no trace.
class MasterSource final : public trace::CtaSource {
 public:
  MasterSource(std::shared_ptr<const Master> master, const MasterShape& shape) : master_(std::move(master)) {
    shape_ = {.ctas = shape.columns,
              .threads_per_cta = shape.warps * trace::kWarpSize,
              .registers_per_thread = 32,
              .shared_bytes = master_->code.shared_bytes + shape.pool_bytes};
    auto nothing = std::make_shared<trace::CtaTrace>();
    nothing->warps.resize(shape.warps);
    trace_ = std::move(nothing);
  }
  const trace::KernelCode& code() const override { return master_->code.code; }
  const trace::LaunchShape& shape() const override { return shape_; }
  Result<trace::LoadedCta> Load(std::uint64_t) override { return trace::LoadedCta{.trace = trace_, .shifts = {}}; }

 private:
  const std::shared_ptr<const Master> master_;
  trace::LaunchShape shape_;
  std::shared_ptr<const trace::CtaTrace> trace_;
};

/// Writes that are kept although everybody has heard of them.
constexpr std::size_t kLongLog = 1 << 14;

/// What is the same for all launches of a kernel.
struct KernelFacts {
  std::uint32_t number = 0;
  bool waits = false;  ///< its threads wait for each other
};

class Pagoda final : public timing::Part,
                     private timing::KernelPath,
                     private timing::WarpFeed,
                     private timing::CtaEvents,
                     private timing::WorkEvents,
                     private timing::TimedSource {
 public:
  Pagoda(std::shared_ptr<const Master> master, const Settings& settings, const MasterShape& shape)
      : master_(std::move(master)), settings_(settings), shape_(shape) {}

  void Attach(timing::Ports& ports, timing::DeviceInput& input) override {
    input_ = &input;
    host_ = std::make_unique<HostSide>(settings_, input);
    ports.kernel_path = this;
    ports.feed = this;
    ports.cta_events.push_back(this);
    ports.work_events.push_back(this);
    ports.sources.push_back(this);
  }
  std::size_t counters() const override { return kCounters; }
  void Count(std::span<std::uint64_t> values) const override {
    const HostCounts& host = host_->counts();
    values[kTasks] = host.tasks;
    values[kTooWide] = refused_;
    values[kUpdates] = host.updates;
    values[kFlushes] = host.flushes;
    values[kFull] = host.full;
    values[kBusy] = before_.busy_cycles;
    values[kSkipped] = before_.skipped_looks;
    for (const auto& [index, sm] : sms_) {
      values[kBusy] += sm->counts().busy_cycles;
      values[kSkipped] += sm->counts().skipped_looks;
    }
    values[kStarts] = starts_;
  }

 private:
  // ---- kernels
  bool Wants(const timing::WorkView& kernel) override {
    const trace::LaunchShape& shape = kernel.source->shape();
    if (kernel.source == master_source_.get() || shape.ctas * shape.threads_per_cta >= settings_.threads) return false;
    const bool fits = shape.warps_per_cta() < settings_.warps && shape.shared_bytes <= settings_.pool_bytes &&
                      shape.ctas > 0 && !shape.together;
    if (fits && Facts(kernel) != nullptr) return true;
    ++refused_;
    return false;
  }

  /// Null: the MasterKernel has no number left.
  const KernelFacts* Facts(const timing::WorkView& kernel) {
    const auto known = facts_.find(kernel.code);
    if (known != facts_.end()) return &known->second;
    if (facts_.size() == kMostKernels) return nullptr;
    const auto waits = [](const trace::Instruction& instruction) { return instruction.op == trace::OpClass::kBarrier; };
    const KernelFacts facts{.number = static_cast<std::uint32_t>(facts_.size()),
                            .waits = std::ranges::any_of(kernel.source->code().instructions, waits)};
    return &facts_.emplace(kernel.code, facts).first->second;
  }

  void Take(Cycle now, const timing::WorkView& kernel) override {
    auto loaded = pagoda::LoadTask(*input_, kernel);
    if (!loaded.ok()) return input_->Fail(loaded.error());
    std::shared_ptr<Task> task = *std::move(loaded);
    const trace::LaunchShape shape = kernel.source->shape();
    if (task->blocks.empty())
      return input_->EndKernel({.kernel = kernel.id, .at = now + input_->parameters().window, .started = now});
    Fill(*task, shape, *Facts(kernel));
    host_->Take(now, std::move(task));
    StartIfWanted(now);
  }

  static void Fill(Task& task, const trace::LaunchShape& shape, const KernelFacts& facts) {
    using passes::task::Barrier;
    const Barrier named = shape.threads_per_cta % trace::kWarpSize == 0 ? Barrier::kNamed : Barrier::kCounting;
    const auto blocks = static_cast<std::uint32_t>(task.blocks.size());
    const Barrier barrier = facts.waits && shape.warps_per_cta() > 1 ? named : Barrier::kNone;
    task.words = std::bit_cast<decltype(task.words)>(Entry{.ready = 0,
                                                           .sched = 0,
                                                           .kernel = facts.number,
                                                           .blocks = blocks,
                                                           .threads = shape.threads_per_cta,
                                                           .shared_bytes = shape.shared_bytes,
                                                           .barrier = static_cast<std::uint32_t>(barrier),
                                                           .grid = {blocks, 1, 1},
                                                           .block = {shape.threads_per_cta, 1, 1},
                                                           .dynamic_bytes = 0,
                                                           .unused = {}});
  }

  // ---- the MasterKernel
  void StartIfWanted(Cycle now) {
    if (running_ || others_ > 0 || !host_->has_pending()) return;
    running_ = true;
    ++starts_;
    for (const auto& [index, sm] : sms_) {
      before_.busy_cycles += sm->counts().busy_cycles;
      before_.skipped_looks += sm->counts().skipped_looks;
    }
    sms_.clear();
    log_.clear();
    sorted_ = 0;
    sm_of_column_.assign(shape_.columns, nullptr);
    placed_ = 0;
    master_source_ = std::make_shared<MasterSource>(master_, shape_);
    timing::KernelWork work;
    work.order = {.stream = stream_ ? *stream_ : *(stream_ = input_->NewStream()),
                  .submitted = now + input_->parameters().window,
                  .after = {}};
    work.source = master_source_;
    work.address_space = kAddressSpace;
    work.own_queue = true;
    const auto launch = input_->Add(std::move(work));
    if (!launch.ok()) return input_->Fail(launch.error());
    launch_ = *launch;
  }

  void OnCtaStart(Cycle at, const timing::CtaPlace& place) override {
    if (!running_ || place.launch != launch_) return;
    auto& sm = sms_[place.sm];
    const timing::Parameters& parameters = input_->parameters();
    if (sm == nullptr) {
      sm = std::make_unique<MasterSm>(master_, shape_, place.sm, log_, parameters.window,
                                      parameters.timing().clock.sm_mhz);
    }
    sm->AddBlock(place.slot, static_cast<std::uint32_t>(place.cta));
    sm_of_column_[place.cta] = sm.get();
    if (++placed_ == shape_.columns) host_->Begin(at, shape_, sm_of_column_, log_);
  }

  // ---- others want the device
  void OnKernelReady(Cycle now, const timing::KernelReady& kernel) override {
    if (running_ && kernel.launch == launch_) return;
    ++others_;
    host_->SetYielding(now, true);
  }
  void OnKernelEnd(Cycle now, std::uint32_t launch) override {
    if (running_ && launch == launch_) {
      running_ = false;
    } else if (--others_ == 0) {
      host_->SetYielding(now, false);
    }
    StartIfWanted(now);
  }
  void OnWorkEnd(Cycle now, WorkId work) override { host_->OnCopyEnd(now, work); }

  // ---- while a window is simulated
  bool Feeds(std::uint32_t launch) const override { return running_ && launch == launch_; }
  timing::FedPiece Next(Cycle now, const timing::FedWarp& warp) override { return sms_.at(warp.sm)->Next(now, warp); }
  void OnBlockEnd(Cycle, std::uint32_t sm, std::uint32_t number, std::uint64_t warp_instructions,
                  std::uint64_t thread_instructions) override {
    sms_.at(sm)->OnBlockEnd(number, warp_instructions, thread_instructions);
  }

  // ---- time of its own
  Cycle next() const override {
    const bool written = std::ranges::any_of(sms_, [](const auto& sm) { return sm.second->has_writes(); });
    return written || sorted_ < log_.size() ? 0 : host_->next();
  }
  void Run(Cycle end) override {
    Collect();
    host_->Run(end);
  }

  /// What SMs wrote in the window before, behind what copies brought in it; all of it is seen later.
  void Collect() {
    const auto sorted = static_cast<std::ptrdiff_t>(sorted_);
    for (const auto& [index, sm] : sms_) {
      const std::vector<TableWrite> writes = sm->TakeWrites();
      log_.insert(log_.end(), writes.begin(), writes.end());
    }
    std::stable_sort(log_.begin() + sorted, log_.end(),
                     [](const TableWrite& a, const TableWrite& b) { return a.seen < b.seen; });
    sorted_ = log_.size();
    if (log_.size() > kLongLog) Shorten();
  }

  /// Lets go of what everybody has heard of.
  void Shorten() {
    std::size_t heard = host_->read();
    for (const auto& [index, sm] : sms_) heard = std::min(heard, sm->heard());
    if (heard < log_.size() / 2) return;
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(heard));
    for (const auto& [index, sm] : sms_) sm->Forget(heard);
    host_->Forget(heard);
    sorted_ -= heard;
  }

  const std::shared_ptr<const Master> master_;
  const Settings settings_;
  const MasterShape shape_;
  timing::DeviceInput* input_ = nullptr;
  std::unique_ptr<HostSide> host_;
  std::unordered_map<std::uint64_t, KernelFacts> facts_;  // by policy::KernelView::code
  std::shared_ptr<trace::CtaSource> master_source_;
  std::optional<std::uint32_t> stream_;
  bool running_ = false;
  WorkId launch_ = timing::kNoWork;
  std::uint32_t placed_ = 0;  // of its blocks
  std::uint32_t others_ = 0;  // kernels that are ready besides it
  std::map<std::uint32_t, std::unique_ptr<MasterSm>> sms_;
  std::vector<MasterSm*> sm_of_column_;
  WriteLog log_;
  std::size_t sorted_ = 0;  // of the log
  std::uint64_t refused_ = 0, starts_ = 0;
  MasterSm::Counts before_;  // of the MasterKernels that have ended
};

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  const sim::TimingSpec& timing = parameters.timing();
  const auto cycles = [&](std::uint64_t ns) { return (ns * timing.clock.sm_mhz + 999) / 1000; };
  const std::uint64_t copy_ns = timing.host.copy_call_ns != 0 ? timing.host.copy_call_ns : timing.host.call_ns;
  const Settings settings{.threads = values[kThreads],
                          .warps = static_cast<std::uint32_t>(values[kWarps]),
                          .blocks = static_cast<std::uint32_t>(values[kBlocks]),
                          .rows = static_cast<std::uint32_t>(values[kRows]),
                          .pool_bytes = static_cast<std::uint32_t>(values[kPool]),
                          .batch = static_cast<std::uint32_t>(values[kBatch]),
                          .spawn = cycles(values[kSpawn] != 0 ? values[kSpawn] : copy_ns),
                          .flush = cycles(values[kFlush]),
                          .timeout = cycles(values[kTimeout]),
                          .linger = cycles(values[kLinger]),
                          .sync = cycles(timing.host.sync_ns)};
  const bool pool = settings.pool_bytes == 0 ||
                    (settings.pool_bytes >= 512 && (settings.pool_bytes & (settings.pool_bytes - 1)) == 0);
  if (!pool)
    return Error{"pool_bytes is " + std::to_string(settings.pool_bytes) + "; expected 0 or a power of two from 512 on"};
  if (values[kEntry] % 64 != 0)
    return Error{"entry_bytes is " + std::to_string(values[kEntry]) + "; expected a multiple of 64"};
  GL_TRY(master, MakeMaster(parameters.device.compute_capability.sm(), timing));
  MasterShape shape{.columns = 1,
                    .rows = settings.rows,
                    .warps = settings.warps,
                    .pool_bytes = settings.pool_bytes,
                    .entry_bytes = static_cast<std::uint32_t>(values[kEntry]),
                    .polls = values[kIdle] == kPolling,
                    .parks_schedulers = values[kSchedulers] == kParked};
  const MasterSource one(master, shape);
  GL_TRY(needs, timing::NeedsOf(one.shape(), parameters.device));
  const std::uint32_t fit = timing::CtasPerSm(needs, parameters.device);
  const std::uint32_t per_sm = settings.blocks == 0 ? fit : settings.blocks;
  if (per_sm > fit || per_sm == 0) {
    return Error{"an SM has room for " + std::to_string(fit) + " master blocks of " + std::to_string(settings.warps) +
                 " warps, not for " + std::to_string(per_sm)};
  }
  shape.columns = per_sm * parameters.device.sm.count;
  return std::shared_ptr<timing::Part>(std::make_shared<Pagoda>(std::move(master), settings, shape));
}

}  // namespace

const PartKind kPagoda = {
    .name = "pagoda",
    .summary = "kernels of few threads run as tasks of a kernel that stays on the device",
    .source = "T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann, T. G. Rogers, Pagoda, PPoPP 2017",
    .keys = kKeys,
    .counters = kCounterTable,
    .stalls = {},
    .make = Make,
};

}  // namespace gridloom::hardware
