#include "rewriter/support/own_thread.h"

#include <initializer_list>

namespace gridloom {

thread_local constinit bool t_own_thread __attribute__((tls_model("initial-exec"))) = false;
thread_local constinit bool t_receives_faults __attribute__((tls_model("initial-exec"))) = false;

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
