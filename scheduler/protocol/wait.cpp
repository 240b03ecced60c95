#include "scheduler/protocol/wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace gridloom::protocol {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

std::uint64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

namespace {

constexpr std::uint64_t kLeastSpinNs = 3000;  ///< an answer from a free core takes half of it
/// Sleeps after which the whole time is spun once: things may have changed.
constexpr std::uint32_t kTryAgainEvery = 16;

}  // namespace

void AdaptiveSpin::Came() {
  const std::uint64_t budget = budget_.load(std::memory_order_relaxed);
  if (budget < most_) budget_.store(std::min(most_, budget * 2), std::memory_order_relaxed);
}

void AdaptiveSpin::Slept() {
  const std::uint64_t least = std::min(most_, kLeastSpinNs);
  const bool again = slept_.fetch_add(1, std::memory_order_relaxed) % kTryAgainEvery == kTryAgainEvery - 1;
  budget_.store(again ? most_ : std::max(least, budget_.load(std::memory_order_relaxed) / 4),
                std::memory_order_relaxed);
}

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t timeout_ns) {
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
  timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, timeout_ns == 0 ? nullptr : &timeout,
          nullptr, 0);
}

void FutexWakeAll(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace gridloom::protocol
