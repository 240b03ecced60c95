#include "sim/exec/runtime/worker.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <utility>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/fault_signal.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kMaxChunk = 1024;
constexpr std::uint64_t kMaxInterpretedChunk = 8;  // machine code may come at any time
constexpr unsigned kRoundsBeforeStart = 4;         // idle rounds over the resident CTAs before another one is started
constexpr unsigned kRoundsBeforeYield = 48;        // and before other host threads get the core
constexpr std::size_t kKeptUnits = 16;
constexpr std::uint64_t kLookInterval = 50'000'000;  // ns between two examinations of a grid that seems dead
constexpr unsigned kLooksToBelieve = 4;
constexpr std::uint64_t kBeforePacing = 1'000'000;  // ns that a recorded grid waits as fast as it can
constexpr long kPacedRound = 64'000;    // ns that a round takes from then on: some 1 us for each trip of a loop's fuel
constexpr double kMbarrierSeconds = 2;  // memcheck: what a grid gets in which all wait for mbarriers
constexpr double kCountingFactor = 10;  // a grid that counts while it spins gets so much more time

std::uint64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

__attribute__((tls_model("initial-exec"))) thread_local pid_t t_thread = 0;

/// The calling thread's, by the system's number, which is asked for once.
pid_t ThreadNumber() {
  if (t_thread == 0) t_thread = static_cast<pid_t>(syscall(SYS_gettid));
  return t_thread;
}

/// Reads the stack of a suspended warp; other code must not, so sanitizers are kept out.
__attribute__((no_sanitize("address", "thread"))) void CopyStack(const std::byte* low, const std::byte* high,
                                                                 std::vector<std::uint32_t>& to) {
  for (; low + 4 <= high; low += 4) to.push_back(*reinterpret_cast<const std::uint32_t*>(low));
}

/// Whether the warp has read the count of the grid's barrier since it was last asked: only grid.sync() does, until all
/// CTAs of the grid have come.
bool AwaitsGrid(Warp& warp) { return warp.awaits_grid = std::exchange(warp.looks_at_grid, false); }

/// All that the suspended warps of a unit have on their stacks, registers included.
/// A warp that asks for an mbarrier in vain, time and again, looks at clocks meanwhile: its state is that it asks.
std::vector<std::uint32_t> StateOf(Unit& unit) {
  std::vector<std::uint32_t> state;
  for (std::uint32_t i = 0; i < unit.warp_count; ++i) {
    Warp& warp = unit.warps[i];
    state.push_back(static_cast<std::uint32_t>(warp.state));
    if (std::exchange(warp.polls, false)) continue;
    if (warp.state != WarpState::kEnded)
      CopyStack(static_cast<const std::byte*>(warp.ctx.saved_sp), warp.stack_low + warp.stack_bytes, state);
  }
  return state;
}

/// Whether all warps that could go on ask in vain for mbarriers or the grid's barrier, which none but threads of their
/// own grid can bring about.
bool OnlyPoll(const Unit& unit) {
  unsigned others = 0;
  std::for_each(unit.warps, unit.warps + unit.warp_count, [&](Warp& warp) {
    others += !AwaitsGrid(warp) && warp.state == WarpState::kReady && !warp.polls ? 1 : 0;
  });
  return others == 0;
}

enum class Change : std::uint8_t { kNone, kSteady, kOther };

/// From `first` to `second` to `third`, each as many rounds after the one before: is every word the same, or does every
/// word change by the same amount from look to look, as a counter does?
Change Compare(const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second,
               const std::vector<std::uint32_t>& third) {
  if (first.size() != second.size() || second.size() != third.size()) return Change::kOther;
  Change change = Change::kNone;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (second[i] - first[i] != third[i] - second[i]) return Change::kOther;
    if (first[i] != second[i]) change = Change::kSteady;
  }
  return change;
}

/// Generated code assumes round to nearest and all exceptions masked, whatever the program has set for itself.
class FloatEnvironment {
 public:
#if defined(__x86_64__)
  FloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatEnvironment() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#endif
};

}  // namespace

Unit& Worker::main_unit() {
  if (units_.empty()) units_.push_back(std::make_unique<Unit>(*this, memory_));
  return *units_.front();
}

void Worker::KeepParams(Launch& new_launch) {
  const std::span<const std::byte> bytes = new_launch.param_bytes;
  // An offset that a kernel computes may reach as far as the largest block, whatever the size of its own.
  if (params_.empty()) params_.resize(Launch::kMaxParamBytes + Launch::kParamSlack);
  std::ranges::copy(bytes, params_.begin());
  new_launch.ctx.params = reinterpret_cast<const std::uint8_t*>(params_.data());
}

void Worker::ForgetThreadNumber() { t_thread = 0; }

void Worker::Run(Launch& new_launch, bool (*share)(void*, std::uint64_t, std::uint64_t), void* share_context) {
  launch = &new_launch;
  thread_.store(ThreadNumber());  // before the look at `stopped`, which is set before threads are looked for
  if (launch->services->stopped.load()) launch->stop.store(true);
  share_ = share;
  share_context_ = share_context;
  solo_ = share != nullptr;
  AdoptThreadStack(root);
  {
    const FaultScope faults(*this);
    const FloatEnvironment environment;
    if (!launch->kernel->needs_fiber) RunDirect();
    else if (launch->kernel->simple_barriers) RunRings();
    else RunResident();
  }
  if (launch->undo) launch->undo->Take(overwritten);
  thread_.store(0, std::memory_order_release);
  launch = nullptr;
}

/// The next CTAs to run, in linear order where they are not dealt. Chunks shrink towards the end of the grid, so that
/// all workers end together.
bool Worker::Claim(UnitSpan& span, std::uint64_t most, bool even_if_superseded) {
  if (!even_if_superseded && launch->Superseded()) return false;
  memory_.LookAtPages();
  if (launch->shares.dealt())
    return !launch->stop.load(std::memory_order_relaxed) && launch->shares.Take(share, most, span);
  if (launch->may_be_superseded) most = std::min(most, kMaxInterpretedChunk);
  std::uint64_t next = launch->next_unit.load(std::memory_order_relaxed);
  for (;;) {
    if (next >= launch->units || launch->stop.load(std::memory_order_relaxed)) return false;
    const std::uint64_t left = launch->units - next;
    std::uint64_t count = 1;
    if (!solo_) count = std::clamp<std::uint64_t>(left / (launch->services->threads * 4), 1, most);
    else if (!share_) count = launch->may_be_superseded ? std::min(left, most) : left;
    if (launch->next_unit.compare_exchange_weak(next, next + count, std::memory_order_relaxed)) {
      span = {next, next + count};
      return true;
    }
  }
}

namespace {

/// Calls `run` for every unit that `claim` gives, asking after the very first whether to share. It is told how many are
/// to run from the one at hand on, and says how many have; 0: no more are to run.
template <typename Claim, typename Begin, typename Run>
void ForEachUnit(Unit& unit, Claim claim, Begin ask, Run run) {
  std::uint64_t first = 0, end = 0;
  std::uint64_t started = ask(0);
  while (claim(first, end)) {
    unit.Begin(first);
    for (;;) {
      const std::uint64_t ran = run(end - first);
      if (ran == 0) return;
      first += ran;
      if (first == end) break;
      unit.Advance();
    }
    if (started != 0) started = ask(started);
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Kernels without barriers: plain calls, one warp after the other, all on one stack
// ---------------------------------------------------------------------------------------------------------------------

struct DirectLoop {
  static std::uint64_t Ask(Worker& worker, std::uint64_t started) {
    if (!worker.share_) return 0;
    if (started == 0) return NowNs();
    const std::uint64_t left =
        worker.launch->units - std::min(worker.launch->units, worker.launch->next_unit.load(std::memory_order_relaxed));
    if (left != 0 && worker.share_(worker.share_context_, NowNs() - started, left)) worker.solo_ = false;
    worker.share_ = nullptr;
    return 0;
  }

  template <typename Run>
  static void ForEach(Worker& worker, Unit& unit, Run run) {
    ForEachUnit(
        unit,
        [&](std::uint64_t& first, std::uint64_t& end) {
          UnitSpan span{};
          if (!worker.Claim(span, kMaxChunk)) return false;
          first = span.first;
          end = span.end;
          return true;
        },
        [&](std::uint64_t started) { return Ask(worker, started); },
        [&](std::uint64_t left) {
          const std::uint64_t ran = run(left);
          worker.launch->NoteEndedUnit();
          return ran;
        });
  }

  static void Entry(WarpCtx* ctx) {
    Warp& self = WarpOf(ctx);
    Unit& unit = *self.cta->unit;
    Worker& worker = unit.worker;
    const WarpEntry entry = worker.launch->kernel->entry;
    const CtaEntry cta_entry = worker.launch->kernel->cta_entry;
    const std::atomic<bool>& stop = worker.launch->stop;
    Warp* const last = unit.warps + unit.warp_count;
    const bool recording = unit.recording(), turns = worker.launch->kernel->turns, rows = worker.launch->kernel->by_row;
    const auto unless_stopped = [&](std::uint64_t ran) { return stop.load(std::memory_order_relaxed) ? 0 : ran; };
    ForEach(worker, unit, [&](std::uint64_t left) {
      const std::uint64_t count = rows ? unit.InRow(left) : 1;
      if (rows) unit.RunInRow(count);
      if (turns) {
        cta_entry(&unit.warps->ctx, &last->ctx, sizeof(Warp), reinterpret_cast<std::uint64_t>(&worker.direct_warp));
        return unless_stopped(count);
      }
      if (cta_entry) {
        worker.NextTrail();
        cta_entry(&unit.warps->ctx, &last->ctx, sizeof(Warp), worker.trail);
        if (recording) unit.EndCtaRecords();
        return unless_stopped(count);
      }
      for (Warp* warp = unit.warps; warp != last; ++warp) {
        worker.direct_warp = &warp->ctx;
        warp->ctx.exited_mask = 0;
        entry(&warp->ctx);
        if (recording) unit.EndSharedRecords(*warp);
      }
      return unless_stopped(1);
    });
    unit.PassOnEndedCtas();
    LeaveWarp(self, worker.root);
  }
};

void Worker::RunDirect() {
  Unit& unit = main_unit();
  if (std::string error = unit.Adopt(*launch, false); !error.empty())
    return RecordFault(*launch, nullptr, FaultKind::kOutOfMemory, kNoLane, 0, 0, std::move(error));
  direct_warp = &unit.warps->ctx;
  PrepareStart(unit.warps[0], 0, &DirectLoop::Entry);
  SwitchWarp(root, unit.warps[0]);
  direct_warp = nullptr;
  trail = 0;
  if (launch->stop.load(std::memory_order_relaxed)) Abandon(unit);
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels whose only waits are full barriers: one CTA at a time, to its end
// ---------------------------------------------------------------------------------------------------------------------

void Worker::RunRings() {
  Unit& unit = main_unit();
  if (std::string error = unit.Adopt(*launch, true); !error.empty())
    return RecordFault(*launch, nullptr, FaultKind::kOutOfMemory, kNoLane, 0, 0, std::move(error));
  DirectLoop::ForEach(*this, unit, [&](std::uint64_t) -> std::uint64_t {
    for (std::uint32_t c = 0; c < launch->ctas_per_unit; ++c) {
      unit.LinkRing(c, c + 1);
      SwitchWarp(root, *unit.ring);
      if (launch->stop.load(std::memory_order_relaxed)) return 0;
    }
    return 1;
  });
  if (launch->stop.load(std::memory_order_relaxed)) Abandon(unit);
}

// ---------------------------------------------------------------------------------------------------------------------
// Everything else: several CTAs in turn, because one may wait for another
// ---------------------------------------------------------------------------------------------------------------------

Unit* Worker::TakeUnit() {
  if (idle_.empty()) {
    units_.push_back(std::make_unique<Unit>(*this, memory_));
    return units_.back().get();
  }
  Unit* const unit = idle_.back();
  idle_.pop_back();
  return unit;
}

bool Worker::StartUnit(bool even_if_superseded) {
  if (launch->next_unit.load(std::memory_order_relaxed) >= launch->units) return false;
  if (launch->resident.fetch_add(1, std::memory_order_relaxed) >= launch->resident_limit) {
    launch->resident.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  UnitSpan span{};
  if (!Claim(span, 1, even_if_superseded)) {
    launch->resident.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  Unit* const unit = TakeUnit();
  if (std::string error = unit->Adopt(*launch, true); !error.empty()) {
    RecordFault(*launch, nullptr, FaultKind::kOutOfMemory, kNoLane, 0, 0, std::move(error));
    idle_.push_back(unit);
    return false;
  }
  unit->Begin(span.first);
  unit->LinkRing(0, launch->ctas_per_unit);
  resident_.push_back(unit);
  launch->progress.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// A turn for each unit that is resident; those that have ended are idle again. True when one made progress.
bool Worker::RunRound() {
  bool progress = false;
  for (std::size_t i = 0; i < resident_.size();) {
    Unit& unit = *resident_[i];
    const std::uint64_t before = unit.progress;
    SwitchWarp(root, *unit.ring);
    if (launch->stop.load(std::memory_order_relaxed)) break;
    progress |= unit.progress != before;
    if (unit.live_warps != 0) {
      ++i;
      continue;
    }
    progress = true;
    launch->NoteEndedUnit();
    launch->resident.fetch_sub(1, std::memory_order_relaxed);
    resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(i));
    idle_.push_back(&unit);
  }
  return progress;
}

void Worker::BeginResident() {
  solo_ = false;
  share_ = nullptr;
  main_unit();
  idle_.clear();
  for (auto it = units_.rbegin(); it != units_.rend(); ++it) idle_.push_back(it->get());
  resident_.clear();
  launch->active_workers.fetch_add(1, std::memory_order_relaxed);
  watch_since_ns_ = waiting_since_ns_ = 0;
  looks_ = quiet_examinations_ = 0;
  counted_stuck_ = false;
}

void Worker::EndResident() {
  for (Unit* unit : resident_) Abandon(*unit);
  resident_.clear();
  if (counted_stuck_) launch->stuck_workers.fetch_sub(1, std::memory_order_relaxed);
  launch->active_workers.fetch_sub(1, std::memory_order_relaxed);
  idle_.clear();
  if (units_.size() > kKeptUnits) units_.resize(kKeptUnits);
}

void Worker::RunResident() {
  BeginResident();
  unsigned idle_rounds = 0;
  while (!launch->stop.load(std::memory_order_relaxed)) {
    if (resident_.empty() || idle_rounds >= kRoundsBeforeStart) {
      if (StartUnit(!resident_.empty())) {  // those that run may wait for it
        idle_rounds = 0;
      } else if (resident_.empty()) {
        if (launch->next_unit.load(std::memory_order_relaxed) >= launch->units || launch->Superseded()) break;
        sched_yield();  // as many CTAs as the device holds are running elsewhere
        continue;
      }
    }
    bool progress = RunRound();
    if (launch->feed && !resident_.empty() && !launch->feed->Feed()) {
      AwaitFeed();
      progress = true;
    }
    if (progress) {
      launch->progress.fetch_add(1, std::memory_order_relaxed);
      idle_rounds = 0;
      watch_since_ns_ = waiting_since_ns_ = 0;
      continue;
    }
    ++idle_rounds;
    if (launch->records) PaceRecorded();
    if (idle_rounds % kRoundsBeforeYield == 0) {
      sched_yield();
      if (Watchdog()) break;
    }
  }
  EndResident();
}

/// Called after a round in which nothing on this worker made progress. What a grid does that is recorded is timed as a
/// GPU does it, turn by turn, so its warps must not go round their loops many times as often as a GPU's, where each
/// trip waits for memory. Where they wait for a clock that counts its reads it is the reads that let time pass.
void Worker::PaceRecorded() {
  std::uint64_t clock_reads = 0;
  for (const Unit* unit : resident_) clock_reads += unit->clock_reads;
  const std::uint64_t now = NowNs();
  if (waiting_since_ns_ == 0 || std::exchange(seen_clock_reads_, clock_reads) != clock_reads) {
    seen_clock_reads_ = clock_reads;
    waiting_since_ns_ = now;
    return;
  }
  if (now - waiting_since_ns_ < kBeforePacing) return;
  const timespec round{.tv_sec = 0, .tv_nsec = kPacedRound};
  nanosleep(&round, nullptr);
}

/// A grid that sleeps does not help others that seem dead.
void Worker::AwaitFeed() {
  launch->services->running_launches.fetch_sub(1, std::memory_order_relaxed);
  launch->feed->Wait();
  launch->services->running_launches.fetch_add(1, std::memory_order_relaxed);
}

/// Called every kRoundsBeforeYield rounds in which nothing on this worker makes progress. A grid is dead when, for the
/// watchdog's time, no CTA has started, ended or passed a barrier, and then the suspended warps of all its workers,
/// registers included, stay bit for bit the same from look to look, or change in nothing but counters: what they wait
/// for is not going to come from this grid. Three looks make one examination; between them lies a number of rounds that
/// is a multiple of the groups that a diverged warp is likely to spin in.
bool Worker::Watchdog() {
  double limit = launch->services->watchdog_seconds;
  if (limit <= 0) return false;
  if (looks_ == 0)
    short_watch_ = launch->services->memcheck && std::ranges::count_if(resident_, [](const Unit* unit) {
                                                   return !OnlyPoll(*unit);
                                                 }) == 0;  // asks each
  if (short_watch_) limit = std::min(limit, kMbarrierSeconds);
  const std::uint64_t now = NowNs();
  const std::uint64_t progress = launch->progress.load(std::memory_order_relaxed);
  if (watch_since_ns_ == 0 || progress != watched_progress_) {
    watched_progress_ = progress;
    watch_since_ns_ = looked_ns_ = now;
    looks_ = quiet_examinations_ = 0;
  } else if (const double quiet = static_cast<double>(now - watch_since_ns_) * 1e-9;
             quiet >= limit && (looks_ != 0 || now - looked_ns_ >= kLookInterval)) {
    looked_ns_ = now;
    Change change = Change::kNone;
    for (Unit* unit : resident_) {
      std::vector<std::uint32_t> state = StateOf(*unit);
      if (looks_ == 2) change = std::max(change, Compare(unit->looks[0], unit->looks[1], state));
      else unit->looks[looks_] = std::move(state);
    }
    if (++looks_ == 3) {
      looks_ = 0;
      const bool dead = change == Change::kNone || (change == Change::kSteady && quiet >= kCountingFactor * limit);
      quiet_examinations_ = dead ? quiet_examinations_ + 1 : 0;
    }
  }
  const bool stuck = quiet_examinations_ >= kLooksToBelieve;
  if (stuck != counted_stuck_) {
    counted_stuck_ = stuck;
    if (stuck) launch->stuck_workers.fetch_add(1, std::memory_order_acq_rel);
    else launch->stuck_workers.fetch_sub(1, std::memory_order_acq_rel);
  }
  if (!stuck ||
      launch->stuck_workers.load(std::memory_order_acquire) != launch->active_workers.load(std::memory_order_acquire))
    return false;
  if (launch->services->running_launches.load(std::memory_order_relaxed) != 1)
    return false;  // another grid may help it
  std::string text = resident_.front()->DescribeWaiting();
  if (resident_.size() > 1) text += "; " + std::to_string(resident_.size() - 1) + " more CTAs wait on this host thread";
  if (launch->next_unit.load() < launch->units)
    text += "; CTAs that do not fit on the device at the same time have not started";
  RecordFault(*launch, resident_.front()->ring, FaultKind::kDeadlock, kNoLane, 0, resident_.front()->ring->line,
              std::move(text));
  return true;
}

/// The warps of a stopped launch are left where they are; their stacks are used again from the top.
void Worker::Abandon(Unit& unit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  for (std::uint32_t i = 0; i < unit.warp_count; ++i) ForgetStack(unit.warps[i]);
#else
  static_cast<void>(unit);
#endif
}

/// The start is a number that no program is likely to have by chance; the rest counts the calls.
void Worker::NextTrail() {
  constexpr std::uint64_t kStart = 0xa7c3'5e00'0000'0000;
  last_trail_ = last_trail_ == 0 ? kStart : last_trail_ + kMostWarps * kMostInRow;
  trail = last_trail_;
}

namespace {

/// Follows a CtaEntry's trail: the number of the warp that runs. Words of warps that ran before may still lie about,
/// but only the running one has the largest. So has each CTA of a row.
__attribute__((no_sanitize("address", "thread"))) std::uint64_t FollowTrail(std::uint64_t trail,
                                                                            std::span<const std::uint64_t> registers,
                                                                            std::uintptr_t low, std::uintptr_t high) {
  std::uint64_t number = 0;
  const auto look = [&](std::uint64_t word) {
    if (word - trail < kMostWarps * kMostInRow) number = std::max(number, word - trail);
  };
  for (const std::uint64_t word : registers) look(word);
  for (low &= ~std::uintptr_t{7}; low + 8 <= high; low += 8) look(*reinterpret_cast<const std::uint64_t*>(low));
  return number % kMostWarps;
}

}  // namespace

Warp* Worker::WarpAt(std::uintptr_t sp, std::span<const std::uint64_t> registers) {
  constexpr std::uintptr_t kRedZone = 128;  // helpers may keep registers below the stack pointer
  for (const auto& unit : units_) {
    const std::size_t index = unit->stacks.IndexOf(sp);
    if (index >= unit->stacks.count()) continue;
    if (direct_warp && trail != 0) {
      const auto low = reinterpret_cast<std::uintptr_t>(unit->stacks.low(index));
      return &unit->warps[FollowTrail(trail, registers, std::max(low, sp - kRedZone), low + unit->stacks.bytes())];
    }
    if (direct_warp) return &WarpOf(direct_warp);
    return index < unit->warp_count ? &unit->warps[index] : nullptr;
  }
  return nullptr;
}

bool Worker::IsStackGuard(std::uintptr_t address) {
  return std::ranges::any_of(units_, [&](const auto& unit) { return unit->stacks.InGuard(address); });
}

}  // namespace gridloom::exec
