#include "interpose/base/thread_state.h"

#include <atomic>

namespace gridloom::session {

thread_local constinit ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

std::uint64_t ThreadNumber() {
  static std::atomic<std::uint64_t> next{1};
  if (t_state.thread_id == 0) t_state.thread_id = next.fetch_add(1, std::memory_order_relaxed);
  return t_state.thread_id;
}

}  // namespace gridloom::session
