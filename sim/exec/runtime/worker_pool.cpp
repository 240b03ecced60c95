#include "sim/exec/runtime/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <utility>

#include "rewriter/support/own_thread.h"
#include "sim/exec/runtime/fault_signal.h"
#include "sim/exec/runtime/worker.h"

namespace gridloom::exec {
namespace {

constexpr auto kLookAround = std::chrono::microseconds(20);  // before a helper goes to sleep
constexpr auto kWaitAwake = std::chrono::microseconds(10);   // before a launching thread does

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

template <typename Condition>
bool SpinFor(std::chrono::microseconds time, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

/// Outlives the pool in threads that are just leaving.
struct WorkerPool::Shared {
  std::mutex mutex;
  std::condition_variable work;          // for helpers: a grid was offered, or the end
  std::condition_variable done;          // for launching threads: a helper left a grid
  std::deque<Launch*> offered;           // with CTAs left, oldest first
  std::atomic<std::uint32_t> offers{0};  // size of `offered`, to look at without the lock
  unsigned sleeping = 0, waiting = 0;
  bool stop = false;
  std::vector<std::unique_ptr<Worker>> idle;  // for launching threads
  std::vector<const Worker*> all;             // helpers' and launching threads'; none goes before the pool does

  std::unique_ptr<Worker> MakeWorker(DeviceMemory& memory) {
    auto worker = std::make_unique<Worker>(memory);
    all.push_back(worker.get());
    return worker;
  }

  void Remove(Launch& launch) {
    std::erase(offered, &launch);
    offers.store(static_cast<std::uint32_t>(offered.size()), std::memory_order_relaxed);
  }
};

WorkerPool::WorkerPool(unsigned helpers, DeviceMemory& memory)
    : helpers_(helpers), memory_(memory), shared_(std::make_shared<Shared>()) {
  RegisterForkAware(this);
}

WorkerPool::~WorkerPool() {
  UnregisterForkAware(this);
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->work.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::StartThreads() {
  // Signals are for the program's own threads; only faults must arrive here.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  while (threads_.size() < helpers_) {
    try {
      auto worker = shared_->MakeWorker(memory_);
      worker->share = static_cast<unsigned>(threads_.size()) + 1;  // the first one is the launching thread's
      threads_.emplace_back(&WorkerPool::Main, shared_, std::move(worker));
    } catch (const std::system_error&) {
      break;  // no more threads to be had: the launching threads do the work
    }
    pthread_setname_np(threads_.back().native_handle(), ("gridloom-" + std::to_string(threads_.size())).c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerPool::Publish(Launch& launch) {
  bool wake = false;
  {
    const std::lock_guard lock(shared_->mutex);
    if (threads_.empty()) StartThreads();
    shared_->offered.push_back(&launch);
    shared_->offers.store(static_cast<std::uint32_t>(shared_->offered.size()), std::memory_order_release);
    wake = shared_->sleeping != 0;
  }
  if (wake) shared_->work.notify_one();  // who wakes up wakes the next one
}

void WorkerPool::Finish(Launch& launch) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  shared.Remove(launch);
  if (launch.participants == 0) return;
  lock.unlock();
  SpinFor(kWaitAwake, [&] {
    if (!lock.try_lock()) return false;
    const bool over = launch.participants == 0;
    lock.unlock();
    return over;
  });
  lock.lock();
  ++shared.waiting;
  shared.done.wait(lock, [&] { return launch.participants == 0; });
  --shared.waiting;
}

void WorkerPool::Main(std::shared_ptr<Shared> shared, std::unique_ptr<Worker> worker) {
  BecomeOwnThread();
  const FaultsArrive faults;
  std::unique_lock lock(shared->mutex);
  for (;;) {
    if (shared->offered.empty() && !shared->stop) {
      lock.unlock();
      SpinFor(kLookAround, [&] { return shared->offers.load(std::memory_order_acquire) != 0; });
      lock.lock();
      ++shared->sleeping;
      shared->work.wait(lock, [&] { return shared->stop || !shared->offered.empty(); });
      --shared->sleeping;
    }
    if (shared->stop) return;
    Launch& launch = *shared->offered.front();
    // Grids take turns, so that no stream starves while a long one runs.
    std::rotate(shared->offered.begin(), shared->offered.begin() + 1, shared->offered.end());
    ++launch.participants;
    const bool more = shared->sleeping != 0;
    lock.unlock();
    if (more) shared->work.notify_one();
    worker->Run(launch, nullptr, nullptr);
    lock.lock();
    shared->Remove(launch);
    if (--launch.participants == 0 && shared->waiting != 0) shared->done.notify_all();
  }
}

std::unique_ptr<Worker> WorkerPool::Borrow() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->idle.empty()) return shared_->MakeWorker(memory_);
  std::unique_ptr<Worker> worker = std::move(shared_->idle.back());
  shared_->idle.pop_back();
  return worker;
}

bool WorkerPool::TellAllToLeave() {
  const std::lock_guard lock(shared_->mutex);
  bool any = false;
  for (const Worker* worker : shared_->all) {
    const pid_t thread = worker->thread();
    if (thread == 0) continue;
    any = true;
    TellToLeave(thread);
  }
  return any;
}

void WorkerPool::Return(std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(shared_->mutex);
  shared_->idle.push_back(std::move(worker));
}

void WorkerPool::BeforeFork() { shared_->mutex.lock(); }
void WorkerPool::AfterForkInParent() { shared_->mutex.unlock(); }

/// The child has neither the helpers nor the other threads that were launching: it starts anew. What those used leaks.
void WorkerPool::AfterForkInChild() {
  auto* const lost_state = new std::shared_ptr<Shared>(std::move(shared_));
  auto* const lost_threads = new std::vector<std::thread>(std::move(threads_));
  static_cast<void>(lost_state);
  static_cast<void>(lost_threads);
  threads_.clear();
  shared_ = std::make_shared<Shared>();
  Worker::ForgetThreadNumber();
}

}  // namespace gridloom::exec
