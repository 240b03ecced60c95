#include "sim/timing/phase_threads.h"

#include <algorithm>
#include <ctime>

#include "rewriter/support/own_thread.h"

namespace gridloom::timing {
namespace {

/// Some 20 to 50 microseconds.
constexpr int kSpins = 512;

/// The processor time of this thread.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Until the value is no longer `unwanted`.
unsigned WaitWhile(const std::atomic<unsigned>& value, unsigned unwanted) {
  for (int spin = 0; spin < kSpins; ++spin) {
    const unsigned now = value.load(std::memory_order_acquire);
    if (now != unwanted) return now;
    __builtin_ia32_pause();
  }
  value.wait(unwanted, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

PhaseThreads::PhaseThreads(unsigned threads, ThreadTimes* times) : times_(times), seconds_(threads), parts_(threads) {
  for (unsigned thread = 1; thread < threads; ++thread)
    workers_.emplace_back([this, thread] {
      BecomeOwnThread();
      Work(thread);
    });
}

PhaseThreads::~PhaseThreads() {
  ending_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void PhaseThreads::Run(const Phase& phase) {
  if (workers_.empty()) {
    RunTimed(0, phase);
  } else {
    phase_.store(&phase, std::memory_order_relaxed);
    open_.store(static_cast<unsigned>(parts_.size()), std::memory_order_relaxed);
    const unsigned round = round_.fetch_add(1, std::memory_order_release) + 1;
    round_.notify_all();
    TakeParts(0, round);
    for (unsigned open = open_.load(std::memory_order_acquire); open != 0;) open = WaitWhile(open_, open);
  }
  if (times_ != nullptr) AddTimes();
}

/// Each part is taken once a round, so that nobody who comes late can take one: it has been taken in his round, or the
/// next has begun.
void PhaseThreads::TakeParts(unsigned first, unsigned round) {
  const auto count = static_cast<unsigned>(parts_.size());
  for (unsigned i = 0; i < count; ++i) {
    const unsigned part = (first + i) % count;
    unsigned before = round - 1;
    if (!parts_[part].round.compare_exchange_strong(before, round, std::memory_order_relaxed)) continue;
    RunTimed(part, *phase_.load(std::memory_order_relaxed));
    if (open_.fetch_sub(1, std::memory_order_acq_rel) == 1) open_.notify_one();
  }
}

void PhaseThreads::RunTimed(unsigned part, const Phase& phase) {
  if (times_ == nullptr) return phase(part);
  const double start = CpuSeconds();
  phase(part);
  seconds_[part] = CpuSeconds() - start;
}

void PhaseThreads::AddTimes() {
  for (const double seconds : seconds_) times_->all += seconds;
  times_->longest += *std::ranges::max_element(seconds_);
}

void PhaseThreads::Work(unsigned thread) {
  for (unsigned round = 0;;) {
    round = WaitWhile(round_, round);
    if (ending_.load(std::memory_order_relaxed)) return;
    TakeParts(thread, round);
  }
}

}  // namespace gridloom::timing
