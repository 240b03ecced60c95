// Work that runs asynchronously to the host: a graph of tasks, each run once all tasks it waits for are done. Streams,
// events and graphs are expressed as dependencies. A pool of host threads runs ready tasks: as many as there are
// processors, less one while the program's own thread goes on, since short tasks of many streams would otherwise cost a
// change of threads each. It grows when none of them has taken a ready task for a millisecond, because tasks may wait
// for each other through memory (kernels that poll, cuStreamWaitValue32).
//
// Invariants, guarded by the pool's mutex:
//   1. A task's state only moves forward: waiting -> ready -> running -> done.
//   2. A task is ready exactly when `waits_` is zero and nobody has claimed it.
//   3. No lock is held while a task runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "interpose/base/recycled.h"

namespace gridloom::session {

class Task;
using TaskPtr = std::shared_ptr<Task>;

class Task {
 public:
  enum class State : std::uint32_t { kWaiting, kReady, kRunning, kDone };
  enum class Where : std::uint8_t {
    kThread,     ///< on a thread of the pool's, or on one that waits
    kAnywhere,   ///< it takes no time and waits for nothing: also on the thread that ends what it waited for
                 ///< (TaskPool::Finish)
    kElsewhere,  ///< Run hands it to somebody who calls TaskPool::Finish; it does not wait and may be called under
                 ///< locks
  };
  virtual ~Task() = default;

  bool done() const { return state_.load(std::memory_order_acquire) == State::kDone; }
  /// Steady-clock nanoseconds at which the task ended; 0 before.
  std::int64_t finished_ns() const { return finished_ns_.load(std::memory_order_acquire); }

 protected:
  /// `lane`: tasks of one lane run one after the other, in the order in which they were submitted, as those of a stream
  /// do. A thread that waits for one of them may run it and those before it. 0: only the pool's threads run it (host
  /// callbacks).
  explicit Task(std::uint64_t lane, Where where = Where::kThread) : lane_(lane), where_(where) {}

 private:
  friend class TaskPool;
  virtual void Run() noexcept = 0;
  /// Frees what the task captured, as soon as it has run.
  virtual void Drop() noexcept {}

  std::atomic<State> state_{State::kWaiting};
  std::atomic<std::int64_t> finished_ns_{0};
  std::uint32_t waits_ = 0;
  std::uint64_t order_ = 0;  ///< number of its submission
  const std::uint64_t lane_;
  const Where where_;
  std::vector<TaskPtr> successors_;
};

/// A task that calls a function object.
template <typename F>
TaskPtr MakeTask(std::uint64_t lane, F function, Task::Where where = Task::Where::kThread) {
  struct Call final : Task {
    Call(std::uint64_t lane, F&& f, Where where) : Task(lane, where), function(std::move(f)) {}
    ~Call() override { Drop(); }
    void Run() noexcept override { function(); }
    void Drop() noexcept override {
      if (std::exchange(live, false)) function.~F();
    }
    union {
      F function;
    };
    bool live = true;
  };
  return std::allocate_shared<Call>(Recycled<Call>(), lane, std::move(function), where);
}

class TaskPool {
 public:
  /// The process's pool; never destroyed. Its threads start with the first task.
  static TaskPool& Get();

  /// Runs `task` once all of `after` are done. Null and finished entries are fine.
  void Submit(const TaskPtr& task, std::span<const TaskPtr> after);
  /// Does what Submit does, unless nothing is in the task's way. Then it answers true: the task belongs to the caller,
  /// who must call RunHere.
  bool SubmitOrClaim(const TaskPtr& task, std::span<const TaskPtr> after);
  void RunHere(const TaskPtr& task) { RunClaimed(task, Goal{}); }
  /// Ends a task that was handed on, and runs what becomes ready by that, if it may run anywhere.
  void Finish(TaskPtr task);
  /// Returns when the task is done. Meanwhile the caller runs ready tasks of its lane, up to the task itself: what lies
  /// behind it, or was submitted meanwhile, may take for ever, or need what the caller does next.
  void Wait(const TaskPtr& task);
  /// Waits for a task that is about to end; answers whether it has within a tenth of a second. Null has.
  bool WaitShortly(const TaskPtr& task);

  /// In a forked child the threads are gone: drop everything so that the child can at least exit.
  void AbandonAfterFork();

  static std::int64_t NowNs();

 private:
  TaskPool();
  ~TaskPool() = delete;

  /// The mutex is held for some hundred cycles at a time: who looks again for a while need not sleep.
  std::unique_lock<std::mutex> Lock();
  // These have the lock.
  /// Links the task behind `after`; true when it is ready at once.
  bool Link(const TaskPtr& task, std::span<const TaskPtr> after);
  void Push(TaskPtr task);
  TaskPtr TakeReady(std::deque<TaskPtr>::iterator which);
  void CallThread();
  bool StartThread(void (TaskPool::*main)());
  unsigned busy() const { return threads_ - idle_ + called_; }
  /// Marks a task done. Those that are ready then, `takes` moves away where it wants them; the others go to the pool's
  /// threads.
  template <typename Takes>
  void End(const TaskPtr& task, Takes takes);

  /// What a thread may go on with: tasks of a lane up to a submission.
  struct Goal {
    std::uint64_t lane = 0;  ///< 0: nothing
    std::uint64_t last = 0;
    bool Covers(const Task& task) const {
      return lane == kAnyLane || (task.lane_ == lane && lane != 0 && task.order_ <= last);
    }
  };
  /// Runs a claimed task; returns one that is claimed for the caller, if any: of those that became ready and are part
  /// of the goal; with kAnyLane, also of the others that are ready.
  TaskPtr RunClaimed(const TaskPtr& task, Goal goal);
  /// Sleeps until the task is done.
  void Sleep(const TaskPtr& task);
  void ThreadMain();
  /// Looks for a ready task for a while; one thread at a time. Sleeping and waking cost more than most small kernels.
  void LookAround(std::unique_lock<std::mutex>& lock);
  /// Calls further threads while ready tasks wait and nobody takes one.
  void WatchMain();

  static constexpr std::uint64_t kAnyLane = ~std::uint64_t{0};
  static constexpr unsigned kTurns = 16;
  static constexpr unsigned kMaxThreads = 512;
  static constexpr unsigned kKeptThreads = 8;  ///< further threads end after being idle for a while
  const unsigned processors_;
  std::mutex mutex_;
  std::condition_variable work_, watch_;
  std::deque<TaskPtr> ready_;
  unsigned threads_ = 0;
  unsigned idle_ = 0;
  unsigned called_ = 0;      ///< of those that are idle: how many are about to wake up
  unsigned sleepers_ = 0;    ///< threads of the program's that sleep in Wait
  std::uint64_t taken_ = 0;  ///< tasks that the pool's threads have gone on with
  std::uint64_t submissions_ = 0;
  bool has_watch_ = false, watching_ = false;
  bool looking_ = false;                    ///< a thread is in LookAround
  std::atomic<std::size_t> to_look_at_{0};  ///< ready_.size(), for that thread
};

}  // namespace gridloom::session
