// Threads of ours in a program's process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

#include "rewriter/support/own_thread.h"

namespace gridloom::api {

/// Signals are the program's: none is delivered to a thread of ours. It is never waited for.
template <typename Main>
void StartThread(Main main) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread([main = std::move(main)]() mutable {
    BecomeOwnThread();
    main();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace gridloom::api
