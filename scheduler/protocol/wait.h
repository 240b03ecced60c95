// Spin, then sleep: how both sides wait for a word in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace gridloom::protocol {

/// Tells the processor that this is a spin loop.
inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Steady-clock nanoseconds.
std::uint64_t NowNs();

inline constexpr std::uint64_t kNsPerMs = 1'000'000, kNsPerS = 1'000'000'000;

/// How long to spin before sleeping. Spinning pays while the other side answers from another core; where both share one
/// core, or the answer takes long, it only keeps the other side (or a kernel) from running. So waits that ended in
/// sleep make the next spin shorter, down to what an answer from a free core takes, and each one that did not makes it
/// longer. Any thread; threads that learn at the same time may overwrite each other's lesson.
class AdaptiveSpin {
 public:
  explicit AdaptiveSpin(std::uint64_t most_ns) : most_(most_ns), budget_(most_ns) {}
  std::uint64_t budget_ns() const { return budget_.load(std::memory_order_relaxed); }
  /// What was waited for came while spinning.
  void Came();
  /// What was waited for did not come in budget_ns().
  void Slept();

 private:
  const std::uint64_t most_;
  std::atomic<std::uint64_t> budget_;
  std::atomic<std::uint32_t> slept_{0};
};

/// Sleeps until another process wakes the word or it is not `seen`; may return early. `timeout_ns` 0: no limit.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t timeout_ns = 0);
void FutexWakeAll(std::atomic<std::uint32_t>& word);

}  // namespace gridloom::protocol
