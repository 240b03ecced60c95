// What the shim keeps per host thread. Trivially destructible: the CUDA runtime calls the driver from exit handlers
// that run after C++ thread-locals are gone.
#pragma once

#include <cstdint>
#include <vector>

#include "interpose/api/cuda_types.h"

namespace gridloom::session {

class Context;
class GreenContext;

/// A context that is current, or was before others.
struct CurrentPlace {
  Context* context;
  GreenContext* green;  ///< that was converted to it; null: it is the context itself
};

struct ThreadState {
  static constexpr unsigned kInlineDepth = 16;
  CurrentPlace stack[kInlineDepth];  ///< current context on top
  std::uint32_t depth;
  std::vector<CurrentPlace>* overflow;     ///< deeper contexts, owned; null when empty
  bool per_thread_default_stream;          ///< the running call came through a _ptds or _ptsz twin
  bool in_callback;                        ///< inside a host function of a stream: driver calls are not permitted
  cuda::CUstreamCaptureMode capture_mode;  ///< cuThreadExchangeStreamCaptureMode
  std::uint64_t thread_id;                 ///< unique number, 0 until asked for
  bool end_watched;                        ///< base/thread_end.h
  std::uintptr_t stack_low;  ///< lowest address of the thread's stack; 0 until looked for (base/large_stack.h)
  void* large_stack;         ///< for calls that need more; null until one has
};
extern thread_local constinit ThreadState t_state __attribute__((tls_model("initial-exec")));

/// The stream that a null handle means during one call.
class DefaultStreamScope {
 public:
  explicit DefaultStreamScope(bool per_thread) : saved_(t_state.per_thread_default_stream) {
    t_state.per_thread_default_stream = per_thread;
  }
  ~DefaultStreamScope() { t_state.per_thread_default_stream = saved_; }
  DefaultStreamScope(const DefaultStreamScope&) = delete;
  DefaultStreamScope& operator=(const DefaultStreamScope&) = delete;

 private:
  bool saved_;
};

/// Number of the calling thread, from 1.
std::uint64_t ThreadNumber();

}  // namespace gridloom::session
