#include "sim/exec/runtime/builders.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace gridloom::exec {
namespace {

/// Those that live, for the end of the process: the compiler's static objects go then, and nobody may be compiling.
struct Living {
  std::mutex mutex;
  std::vector<Builders*> all;

  static Living& Get() {
    static Living* const living = new Living;
    return *living;
  }
};

void WaitForAll() {
  Living& living = Living::Get();
  const std::lock_guard lock(living.mutex);
  for (Builders* const builders : living.all) builders->Wait();
}

}  // namespace

Builders::Builders(unsigned most_threads) : most_(std::max(most_threads, 1u)) {
  RegisterForkAware(this);
  Living& living = Living::Get();
  const std::lock_guard lock(living.mutex);
  living.all.push_back(this);
}

Builders::~Builders() {
  {
    Living& living = Living::Get();
    const std::lock_guard lock(living.mutex);
    std::erase(living.all, this);
  }
  UnregisterForkAware(this);
  Wait();
}

void Builders::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && threads_ == 0; });
}

void Builders::Run(Job job) {
  // The compiler has been loaded, so that this is called before its own static objects go.
  static const int at_exit = std::atexit(&WaitForAll);
  static_cast<void>(at_exit);
  {
    const std::lock_guard lock(mutex_);
    const bool enough = threads_ - busy_ > jobs_.size() || threads_ == most_;
    if (paused_ || enough || StartThread()) {
      jobs_.push_back(std::move(job));
      return;
    }
  }
  job();
}

/// With the lock.
bool Builders::StartThread() {
  // As those of streams: signals belong to the program's own threads.
  sigset_t blocked, old;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  bool started = true;
  try {
    std::thread([this] { Main(); }).detach();
    ++threads_;
  } catch (...) {
    started = threads_ != 0;  // else one that runs takes the job
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return started;
}

void Builders::Main() {
  std::unique_lock lock(mutex_);
  while (!jobs_.empty() && !paused_) {
    {
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      ++busy_;
      lock.unlock();
      job();
    }
    lock.lock();
    --busy_;
  }
  --threads_;
  changed_.notify_all();
}

void Builders::BeforeFork() {
  std::unique_lock lock(mutex_);
  paused_ = true;
  changed_.wait(lock, [this] { return threads_ == 0; });
  lock.release();  // until the process has forked
}

void Builders::AfterForkInParent() {
  paused_ = false;
  for (std::size_t i = std::min<std::size_t>(jobs_.size(), most_); i != 0; --i) StartThread();
  mutex_.unlock();
}

void Builders::AfterForkInChild() { AfterForkInParent(); }

}  // namespace gridloom::exec
