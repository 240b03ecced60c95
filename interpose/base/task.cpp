#include "interpose/base/task.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "rewriter/support/own_thread.h"

namespace gridloom::session {
namespace {

/// For loops that look for what another thread does.
void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

TaskPool& TaskPool::Get() {
  alignas(TaskPool) static unsigned char storage[sizeof(TaskPool)];
  static TaskPool* const pool = new (storage) TaskPool;
  return *pool;
}

TaskPool::TaskPool() : processors_(std::max(std::thread::hardware_concurrency(), 1u)) {}

std::int64_t TaskPool::NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::unique_lock<std::mutex> TaskPool::Lock() {
  constexpr int kLooks = 50;
  for (int i = 0; i < kLooks; ++i) {
    if (mutex_.try_lock()) return {mutex_, std::adopt_lock};
    Pause();
  }
  return std::unique_lock(mutex_);
}

bool TaskPool::Link(const TaskPtr& task, std::span<const TaskPtr> after) {
  task->order_ = ++submissions_;
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
  to_look_at_.store(ready_.size(), std::memory_order_relaxed);
  if (looking_ && ready_.size() == 1) return;
  const unsigned wanted = std::max(processors_ - (sleepers_ == 0 ? 1 : 0), 1u);
  if (busy() < wanted) return CallThread();
  if (!has_watch_) has_watch_ = StartThread(&TaskPool::WatchMain);
  if (!has_watch_) return CallThread();
  if (!std::exchange(watching_, true)) watch_.notify_one();
}

TaskPtr TaskPool::TakeReady(std::deque<TaskPtr>::iterator which) {
  TaskPtr task = std::move(*which);
  ready_.erase(which);
  to_look_at_.store(ready_.size(), std::memory_order_relaxed);
  task->state_.store(Task::State::kRunning, std::memory_order_relaxed);
  return task;
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
  const OwnThreadSignals signals;
  try {
    std::thread([this, main] {
      BecomeOwnThread();
      (this->*main)();
    }).detach();
  } catch (...) {
    if (threads_ == 0) throw;
    return false;
  }
  return true;
}

void TaskPool::Submit(const TaskPtr& task, std::span<const TaskPtr> after) {
  std::unique_lock lock = Lock();
  if (!Link(task, after)) return;
  if (task->where_ != Task::Where::kElsewhere) return Push(task);
  task->state_.store(Task::State::kRunning, std::memory_order_relaxed);
  lock.unlock();
  task->Run();
}

bool TaskPool::SubmitOrClaim(const TaskPtr& task, std::span<const TaskPtr> after) {
  const std::unique_lock lock = Lock();
  if (!Link(task, after)) return false;
  task->state_.store(Task::State::kRunning, std::memory_order_relaxed);
  return true;
}

template <typename Takes>
void TaskPool::End(const TaskPtr& task, Takes takes) {
  task->finished_ns_.store(NowNs(), std::memory_order_release);
  task->state_.store(Task::State::kDone, std::memory_order_release);  // pairs with done() and Wait
  for (TaskPtr& successor : task->successors_) {
    if (--successor->waits_ != 0) continue;
    successor->state_.store(Task::State::kRunning, std::memory_order_relaxed);
    if (!takes(successor)) Push(std::move(successor));
  }
}

TaskPtr TaskPool::RunClaimed(const TaskPtr& task, Goal goal) {
  task->Run();
  if (task->where_ == Task::Where::kElsewhere) return nullptr;  // it may be done by now, or take a while
  task->Drop();
  std::vector<TaskPtr> elsewhere;
  TaskPtr next;
  std::vector<TaskPtr> successors;  // freed without the lock
  {
    const std::unique_lock lock = Lock();
    // A thread goes on with what comes behind its task, but not for ever while others wait.
    const bool of_pool = goal.lane == kAnyLane;
    const bool to_others = of_pool && taken_ % kTurns == 0 && !ready_.empty();
    End(task, [&](TaskPtr& successor) {
      const bool goes_elsewhere = successor->where_ == Task::Where::kElsewhere;
      if (goes_elsewhere) elsewhere.push_back(std::move(successor));
      else if (next == nullptr && !to_others && goal.Covers(*successor)) next = std::move(successor);
      else return false;
      return true;
    });
    if (next == nullptr && of_pool && elsewhere.empty() && !ready_.empty()) next = TakeReady(ready_.begin());
    if (next != nullptr && of_pool) ++taken_;
    successors.swap(task->successors_);
  }
  task->state_.notify_all();
  for (const TaskPtr& successor : elsewhere) successor->Run();
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
    std::vector<TaskPtr> successors;
    {
      const std::unique_lock lock = Lock();
      End(one, [&](TaskPtr& successor) {
        if (successor->where_ == Task::Where::kThread) return false;
        here.push_back(std::move(successor));
        return true;
      });
      successors.swap(one->successors_);
    }
    one->state_.notify_all();
  }
}

void TaskPool::Wait(const TaskPtr& task) {
  while (!task->done()) {
    TaskPtr mine;
    Goal goal;
    if (task->lane_ != 0) {
      const std::unique_lock lock = Lock();
      if (task->order_ != 0) goal = {task->lane_, task->order_};
      const auto found = std::ranges::find_if(ready_, [&](const TaskPtr& t) { return goal.Covers(*t); });
      if (found != ready_.end()) mine = TakeReady(found);
    }
    while (mine != nullptr) mine = RunClaimed(mine, goal);
    if (!task->done()) Sleep(task);
  }
}

void TaskPool::Sleep(const TaskPtr& task) {
  {
    const std::unique_lock lock = Lock();
    ++sleepers_;
    for (std::size_t i = ready_.size(); i != 0 && busy() < processors_; --i) CallThread();
  }
  const auto state = task->state_.load(std::memory_order_acquire);
  if (state != Task::State::kDone) task->state_.wait(state, std::memory_order_acquire);
  const std::unique_lock lock = Lock();
  --sleepers_;
}

bool TaskPool::WaitShortly(const TaskPtr& task) {
  for (int i = 0; i < 2000 && task != nullptr && !task->done(); ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return task == nullptr || task->done();
}

void TaskPool::ThreadMain() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (ready_.empty() && !looking_) LookAround(lock);
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
    TaskPtr task = TakeReady(ready_.begin());
    lock.unlock();
    while (task != nullptr) task = RunClaimed(task, Goal{kAnyLane});
    lock = Lock();
  }
}

void TaskPool::LookAround(std::unique_lock<std::mutex>& lock) {
  constexpr std::int64_t kLookNs = 20'000;
  looking_ = true;
  lock.unlock();
  const std::int64_t until = NowNs() + kLookNs;
  while (to_look_at_.load(std::memory_order_relaxed) == 0 && NowNs() < until) Pause();
  lock = Lock();
  looking_ = false;
}

void TaskPool::WatchMain() {
  // Rounds without a ready task, after which the thread sleeps: waking it costs the program's thread a system call.
  constexpr unsigned kRounds = 20;
  std::unique_lock lock(mutex_);
  while (true) {
    watch_.wait(lock, [this] { return watching_; });  // it may be true already when this thread begins
    std::size_t calls = 1;                            // twice as many in each round in which nothing is taken
    for (unsigned quiet = 0;
         quiet < kRounds || !ready_.empty();) {  // a task that came in the last round has not woken it
      const bool waits = !ready_.empty();
      quiet = waits ? 0 : quiet + 1;
      const std::uint64_t taken = taken_;
      watch_.wait_for(lock, std::chrono::milliseconds(1));
      const bool stands = waits && taken_ == taken;
      if (stands) {
        for (std::size_t i = std::min(ready_.size(), calls); i != 0; --i) CallThread();
      }
      calls = stands ? 2 * calls : 1;
    }
    watching_ = false;
  }
}

void TaskPool::AbandonAfterFork() {
  new (this) TaskPool;  // the parent's threads and whatever they held do not exist here
}

}  // namespace gridloom::session
