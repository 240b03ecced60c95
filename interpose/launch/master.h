// One block of a MasterKernel that stays on the executor, with the host's side of its TaskTable
// (interpose/tasks/task_table.h): both on one thread, which spawns tasks and hears of those that have ended between the
// rounds over the block's warps, and sleeps while there are none.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "interpose/base/task.h"
#include "interpose/launch/master_code.h"
#include "interpose/objects/operation.h"
#include "interpose/tasks/task_table.h"
#include "sim/exec/grid_feed.h"

namespace gridloom::session {

class TaskQueue;

/// A launch that is to run as a task: handed to the queue when all that it has to wait for is done.
class LaunchedTask final : public Task, public std::enable_shared_from_this<LaunchedTask> {
 public:
  LaunchedTask(std::uint64_t lane, TaskQueue& queue, KernelOp op)
      : Task(lane, Where::kElsewhere), queue_(queue), kernel(op.plan.task), op(std::move(op)) {}

 private:
  void Run() noexcept override;
  void Drop() noexcept override { op = {}; }

  TaskQueue& queue_;

 public:
  const TaskKernelPtr kernel;
  KernelOp op;
  std::int64_t spawned_ns = 0;
};
using LaunchedTaskPtr = std::shared_ptr<LaunchedTask>;

/// Tasks whose turn has come and that no master has taken yet.
class TaskQueue {
 public:
  /// False: the queue is closed, and nobody will take it.
  bool Put(LaunchedTaskPtr task);
  /// Moves at most `most` of them behind those in `to`.
  void Take(std::size_t most, std::vector<LaunchedTaskPtr>& to);
  /// Puts the tasks back in front of all others.
  void PutBack(std::vector<LaunchedTaskPtr>& tasks);
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// Returns when there is a task, or `over` holds.
  void Wait(const std::atomic<bool>& over);
  void WakeAll();
  /// Takes no more, and gives up what it has.
  std::deque<LaunchedTaskPtr> Close();
  void Open();

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<LaunchedTaskPtr> tasks_;
  std::atomic<std::size_t> size_{0};
  unsigned sleeping_ = 0;
  bool closed_ = false;
};

class Master final : exec::GridFeed, tasks::Port {
 public:
  /// Begins at once. `masters`: how many of them take from the queue.
  Master(Context& context, std::shared_ptr<const MasterCode> code, const tasks::TableShape& shape, TaskQueue& queue,
         unsigned masters);
  /// Ends the kernel when its tasks have ended.
  ~Master() override;

  /// Takes no more tasks, and ends with those it has.
  void End();
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  bool Feed() override;
  void Wait() override;
  void Write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void Read(std::uint64_t offset, std::span<std::byte> bytes) override;

  void Main();
  void Spawn(LaunchedTaskPtr task);
  void Close(LaunchedTask& task, bool ran);
  void Fail(const exec::LaunchFault& fault);
  /// Names the task that the warp of the fault runs, with the thread's own place, or those that it may be.
  std::string NameOf(const exec::LaunchFault& fault) const;

  Context& context_;
  const std::shared_ptr<const MasterCode> code_;
  const tasks::TableShape shape_;
  TaskQueue& queue_;
  const unsigned masters_;
  std::uint64_t memory_ = 0;  ///< of the device: the table, then what the control parameter points at
  std::uint64_t control_ = 0;
  tasks::TaskTable table_;
  std::vector<std::pair<tasks::TaskId, LaunchedTaskPtr>> running_;
  std::vector<LaunchedTaskPtr> taken_;  ///< room for what Feed takes
  bool told_to_end_ = false;
  std::atomic<bool> ending_{false}, ended_{false};
  std::thread thread_;
};

}  // namespace gridloom::session
