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

/// Sleeps until another process wakes the word or it is not `seen`; may return early. `timeout_ns` 0: no limit.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t timeout_ns = 0);
void FutexWakeAll(std::atomic<std::uint32_t>& word);

}  // namespace gridloom::protocol
