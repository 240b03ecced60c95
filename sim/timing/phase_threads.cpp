#include "sim/timing/phase_threads.h"

namespace gridloom::timing {
namespace {

constexpr int kSpins = 4096;

template <typename Condition>
void WaitUntil(const Condition& condition) {
  for (int spin = 0; !condition(); ++spin) {
    if (spin > kSpins) std::this_thread::yield();
    else __builtin_ia32_pause();
  }
}

}  // namespace

PhaseThreads::PhaseThreads(unsigned threads) {
  for (unsigned thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { Work(thread); });
}

PhaseThreads::~PhaseThreads() {
  phase_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  for (std::thread& worker : workers_) worker.join();
}

void PhaseThreads::Run(const std::function<void(unsigned)>& phase) {
  if (!workers_.empty()) {
    phase_ = &phase;
    running_.store(static_cast<unsigned>(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
  }
  phase(0);
  WaitUntil([&] { return running_.load(std::memory_order_acquire) == 0; });
}

void PhaseThreads::Work(unsigned thread) {
  for (unsigned seen = 0;;) {
    WaitUntil([&] { return round_.load(std::memory_order_acquire) != seen; });
    ++seen;
    if (phase_ == nullptr) return;
    (*phase_)(thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace gridloom::timing
