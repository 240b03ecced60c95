#include "interpose/session/task.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace gridloom::session {

TaskPool& TaskPool::Get() {
  alignas(TaskPool) static unsigned char storage[sizeof(TaskPool)];
  static TaskPool* const pool = new (storage) TaskPool;
  return *pool;
}

TaskPool::TaskPool() : processors_(std::max(std::thread::hardware_concurrency(), 1u)) {}

std::int64_t TaskPool::NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool TaskPool::Link(const TaskPtr& task, std::span<const TaskPtr> after) {
  for (const TaskPtr& dependency : after) {
    if (dependency == nullptr || dependency->done()) continue;
    // Under mutex_: a task that is not done here takes its successors along when it ends.
    dependency->successors_.push_back(task);
    ++task->waits_;
  }
  return task->waits_ == 0;
}

void TaskPool::Push(TaskPtr task) {
  task->state_.store(Task::State::kReady, std::memory_order_relaxed);
  ready_.push_back(std::move(task));
  if (threads_ - idle_ + called_ < processors_) return CallThread();
  if (!has_watch_) has_watch_ = StartThread(&TaskPool::WatchMain);
  if (!has_watch_) return CallThread();
  if (!std::exchange(watching_, true)) watch_.notify_one();
}

void TaskPool::CallThread() {
  if (idle_ > called_) {
    ++called_;
    work_.notify_one();
    return;
  }
  if (threads_ < kMaxThreads && StartThread(&TaskPool::ThreadMain)) ++threads_;  // else a busy thread takes it later
}

bool TaskPool::StartThread(void (TaskPool::*main)()) {
  // Signals belong to the program's own threads. Only faults must arrive here: the kernel kills a process for one that is
  // blocked, and kernels that run on this thread may fault (sim/exec/runtime/fault_signal.cpp).
  sigset_t blocked, old;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  bool started = true;
  try {
    std::thread([this, main] { (this->*main)(); }).detach();
  } catch (...) {
    if (threads_ == 0) {
      pthread_sigmask(SIG_SETMASK, &old, nullptr);
      throw;
    }
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return started;
}

void TaskPool::Submit(const TaskPtr& task, std::span<const TaskPtr> after) {
  std::unique_lock lock(mutex_);
  if (!Link(task, after)) return;
  if (task->where_ != Task::Where::kElsewhere) return Push(task);
  task->state_.store(Task::State::kRunning, std::memory_order_relaxed);
  lock.unlock();
  task->Run();
}

bool TaskPool::SubmitOrClaim(const TaskPtr& task, std::span<const TaskPtr> after) {
  const std::unique_lock lock(mutex_);
  if (!Link(task, after)) return false;
  task->state_.store(Task::State::kRunning, std::memory_order_relaxed);
  return true;
}

template <typename Takes>
void TaskPool::End(const TaskPtr& task, std::vector<TaskPtr>& here, Takes takes) {
  std::vector<TaskPtr> successors;
  {
    const std::lock_guard lock(mutex_);
    task->finished_ns_.store(NowNs(), std::memory_order_release);
    task->state_.store(Task::State::kDone, std::memory_order_release);  // pairs with done() and Wait
    successors.swap(task->successors_);
    for (TaskPtr& successor : successors) {
      if (--successor->waits_ != 0) continue;
      if (successor->where_ == Task::Where::kElsewhere || takes(*successor)) {
        successor->state_.store(Task::State::kRunning, std::memory_order_relaxed);
        here.push_back(std::move(successor));
      } else {
        Push(std::move(successor));
      }
    }
  }
  task->state_.notify_all();
}

TaskPtr TaskPool::RunClaimed(const TaskPtr& task, std::uint64_t only_lane) {
  task->Run();
  if (task->where_ == Task::Where::kElsewhere) return nullptr;  // it may be done by now, or take a while
  task->Drop();
  std::vector<TaskPtr> here;
  bool taken = false;
  End(task, here, [&](const Task& successor) {
    const bool takes = !taken && only_lane != 0 && (only_lane == ~std::uint64_t{0} || successor.lane_ == only_lane);
    taken |= takes;
    return takes;
  });
  TaskPtr next;
  for (TaskPtr& successor : here) {
    if (successor->where_ == Task::Where::kElsewhere) successor->Run();
    else next = std::move(successor);
  }
  return next;
}

void TaskPool::Finish(TaskPtr task) {
  task->Drop();
  std::vector<TaskPtr> here{std::move(task)};
  for (std::size_t i = 0; i < here.size(); ++i) {
    const TaskPtr one = std::move(here[i]);
    if (i != 0) {
      one->Run();
      if (one->where_ == Task::Where::kElsewhere) continue;
      one->Drop();
    }
    End(one, here, [](const Task& successor) { return successor.where_ == Task::Where::kAnywhere; });
  }
}

void TaskPool::Wait(const TaskPtr& task) {
  while (!task->done()) {
    TaskPtr mine;
    if (task->lane_ != 0) {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find_if(ready_, [&](const TaskPtr& t) { return t->lane_ == task->lane_; });
      if (found != ready_.end()) {
        mine = std::move(*found);
        ready_.erase(found);
        mine->state_.store(Task::State::kRunning, std::memory_order_relaxed);
      }
    }
    while (mine != nullptr) mine = RunClaimed(mine, task->done() ? 0 : task->lane_);
    const auto state = task->state_.load(std::memory_order_acquire);
    if (state == Task::State::kDone) return;
    task->state_.wait(state, std::memory_order_acquire);
  }
}

bool TaskPool::WaitShortly(const TaskPtr& task) {
  for (int i = 0; i < 2000 && task != nullptr && !task->done(); ++i) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return task == nullptr || task->done();
}

void TaskPool::ThreadMain() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (ready_.empty()) {
      ++idle_;
      const bool timed_out = work_.wait_for(lock, std::chrono::seconds(5)) == std::cv_status::timeout;
      --idle_;
      if (called_ != 0) --called_;
      if (ready_.empty()) {
        if (!timed_out || threads_ <= kKeptThreads) continue;
        --threads_;
        return;
      }
    }
    ++taken_;
    TaskPtr task = std::move(ready_.front());
    ready_.pop_front();
    task->state_.store(Task::State::kRunning, std::memory_order_relaxed);
    lock.unlock();
    while (task != nullptr) task = RunClaimed(task, ~std::uint64_t{0});
    lock.lock();
  }
}

void TaskPool::WatchMain() {
  std::unique_lock lock(mutex_);
  while (true) {
    watching_ = false;
    watch_.wait(lock, [this] { return watching_; });
    while (!ready_.empty()) {
      const std::uint64_t taken = taken_;
      watch_.wait_for(lock, std::chrono::milliseconds(1));
      if (taken_ != taken) continue;
      for (std::size_t i = ready_.size(); i != 0; --i) CallThread();
    }
  }
}

void TaskPool::AbandonAfterFork() {
  new (this) TaskPool;  // the parent's threads and whatever they held do not exist here
}

}  // namespace gridloom::session
