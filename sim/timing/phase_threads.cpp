#include "sim/timing/phase_threads.h"

#include <algorithm>
#include <ctime>

namespace gridloom::timing {
namespace {

/// Some 20 to 50 microseconds.
constexpr int kSpins = 512;

/// Of this thread.
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

PhaseThreads::PhaseThreads(unsigned threads, ThreadTimes* times) : times_(times), seconds_(threads) {
  for (unsigned thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { Work(thread); });
}

PhaseThreads::~PhaseThreads() {
  phase_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void PhaseThreads::Run(const std::function<void(unsigned)>& phase) {
  if (!workers_.empty()) {
    phase_ = &phase;
    running_.store(static_cast<unsigned>(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  RunTimed(0, phase);
  for (unsigned running = running_.load(std::memory_order_acquire); running != 0;) running = WaitWhile(running_, running);
  if (times_ != nullptr) AddTimes();
}

void PhaseThreads::RunTimed(unsigned thread, const std::function<void(unsigned)>& phase) {
  if (times_ == nullptr) return phase(thread);
  const double start = CpuSeconds();
  phase(thread);
  seconds_[thread] = CpuSeconds() - start;
}

void PhaseThreads::AddTimes() {
  for (const double seconds : seconds_) times_->all += seconds;
  times_->longest += *std::ranges::max_element(seconds_);
}

void PhaseThreads::Work(unsigned thread) {
  for (unsigned seen = 0;;) {
    WaitWhile(round_, seen);
    ++seen;
    if (phase_ == nullptr) return;
    RunTimed(thread, *phase_);
    running_.fetch_sub(1, std::memory_order_release);
    running_.notify_one();
  }
}

}  // namespace gridloom::timing
