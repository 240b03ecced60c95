// Threads that Gridloom starts, and what ends with a thread. None of it takes the loader's lock: a thread of the
// program's may hold it, in a constructor or destructor of a library that is being loaded or unloaded, while it waits
// for one of ours.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

namespace gridloom {

/// True in threads that Gridloom has started.
extern thread_local constinit bool t_own_thread __attribute__((tls_model("initial-exec")));

/// Whether a thread of Gridloom's is known to receive faults (sim/exec/runtime/fault_signal.h). Code of the program's
/// that has run on it, a host function, may have changed that.
extern thread_local constinit bool t_receives_faults __attribute__((tls_model("initial-exec")));

/// While one lives, threads that the calling one starts receive no signals: these belong to the program's own threads.
/// Only faults arrive, since the kernel ends a process for one that is blocked.
class OwnThreadSignals {
 public:
  OwnThreadSignals();
  ~OwnThreadSignals();
  OwnThreadSignals(const OwnThreadSignals&) = delete;
  OwnThreadSignals& operator=(const OwnThreadSignals&) = delete;

 private:
  sigset_t before_;
};

/// To be called first by each of them.
void BecomeOwnThread();
/// Whether it is the number of a thread that Gridloom has started and that has not ended. False, too, where the process
/// has no thread-specific key left or Gridloom a thousand threads.
bool IsOwnThread(pid_t thread);
/// In a child of fork, where none of them is.
void ForgetOwnThreads();

/// Calls a function at the end of threads, after the destructors of their thread_local objects. In place of such
/// objects: the C++ library registers their destructors under the loader's lock.
class ThreadEnd {
 public:
  /// `function` may be called again in the same thread when Watch was called since.
  explicit ThreadEnd(void (*function)(void*));
  /// Has the calling thread call `function(value)` when it ends, once; `value` is not null. Nothing is called where the
  /// process has no thread-specific key left.
  void Watch(void* value) const;
  bool valid() const { return valid_; }

 private:
  pthread_key_t key_ = 0;
  bool valid_ = false;
};

}  // namespace gridloom
