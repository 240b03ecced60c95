#include "interpose/base/thread_end.h"

#include <pthread.h>

#include <atomic>
#include <optional>

#include "interpose/base/large_stack.h"
#include "interpose/base/last_thread.h"
#include "interpose/base/thread_state.h"

namespace gridloom::session {
namespace {

std::atomic<void (*)()> g_end{nullptr};

// Destructors of other keys may call the driver after this one: then the thread is watched again, and this runs again.
void OnThreadEnd(void*) {
  t_state.end_watched = false;
  FreeLargeStack();
  if (auto* const end = g_end.load(std::memory_order_acquire)) end();
  ThreadEnds();
}

/// Nothing when the process has no key left: then what threads leave stays.
std::optional<pthread_key_t> TheKey() {
  static const std::optional<pthread_key_t> key = [] {
    pthread_key_t made{};
    return pthread_key_create(&made, OnThreadEnd) == 0 ? std::optional(made) : std::nullopt;
  }();
  return key;
}

}  // namespace

void SetThreadEnd(void (*function)()) { g_end.store(function, std::memory_order_release); }

void WatchThreadEnd() {
  if (t_state.end_watched) return;
  const auto key = TheKey();
  t_state.end_watched = key && pthread_setspecific(*key, &t_state) == 0;
  if (t_state.end_watched) NoteThread();
}

}  // namespace gridloom::session
