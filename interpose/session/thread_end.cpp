#include "interpose/session/thread_end.h"

#include <pthread.h>

#include <optional>

#include "interpose/session/large_stack.h"
#include "interpose/session/process.h"
#include "interpose/session/thread_state.h"

namespace gridloom::session {
namespace {

// Destructors of other keys may call the driver after this one: then the thread is watched again, and this runs again.
void OnThreadEnd(void*) {
  t_state.end_watched = false;
  FreeLargeStack();
  if (Process::child_of_user()) return;  // others may hold the locks, who are not here
  while (PopContext() != nullptr) continue;
  if (t_state.thread_id != 0) Process::Get().ForgetThread(t_state.thread_id);
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

void WatchThreadEnd() {
  if (t_state.end_watched) return;
  const auto key = TheKey();
  t_state.end_watched = key && pthread_setspecific(*key, &t_state) == 0;
}

}  // namespace gridloom::session
