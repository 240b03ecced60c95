#include "rewriter/support/own_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <initializer_list>

namespace gridloom {

thread_local constinit bool t_own_thread __attribute__((tls_model("initial-exec"))) = false;
thread_local constinit bool t_receives_faults __attribute__((tls_model("initial-exec"))) = false;

namespace {

/// Numbers of own threads; 0: free. No lock, which a fork could leave locked.
constinit std::array<std::atomic<pid_t>, 1024> g_own_threads{};

void LeaveOwnThreads(void* place) { static_cast<std::atomic<pid_t>*>(place)->store(0); }

}  // namespace

void BecomeOwnThread() {
  t_own_thread = true;
  static const ThreadEnd end(LeaveOwnThreads);
  if (!end.valid()) return;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  for (std::atomic<pid_t>& place : g_own_threads) {
    pid_t free = 0;
    if (!place.compare_exchange_strong(free, self)) continue;
    end.Watch(&place);
    return;
  }
}

bool IsOwnThread(pid_t thread) {
  for (const std::atomic<pid_t>& place : g_own_threads) {
    if (place.load() == thread) return true;
  }
  return false;
}

void ForgetOwnThreads() {
  for (std::atomic<pid_t>& place : g_own_threads) place.store(0);
}

OwnThreadSignals::OwnThreadSignals() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before_);
}

OwnThreadSignals::~OwnThreadSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

ThreadEnd::ThreadEnd(void (*function)(void*)) : valid_(pthread_key_create(&key_, function) == 0) {}

void ThreadEnd::Watch(void* value) const {
  if (valid_) pthread_setspecific(key_, value);
}

}  // namespace gridloom
