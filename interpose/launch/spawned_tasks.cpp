#include "interpose/launch/spawned_tasks.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "interpose/launch/launches.h"
#include "interpose/launch/narrow_tasks.h"
#include "interpose/launch/submit.h"
#include "interpose/objects/process.h"

namespace gridloom::session {

using namespace cuda;

/// By number. Those that are over are left out when there are many.
class SpawnedTasks {
 public:
  std::uint64_t Add(const Context& context, TaskPtr task) {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= most_) {
      std::erase_if(tasks_, [](const auto& one) { return one.second.task->done(); });
      most_ = tasks_.size() * 2 + kFew;
    }
    tasks_[++last_] = {&context, std::move(task)};
    return last_;
  }
  /// Null when it is over.
  TaskPtr Find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(number);
    return found == tasks_.end() ? nullptr : found->second.task;
  }
  bool Had(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return number != 0 && number <= last_;
  }
  std::vector<TaskPtr> Of(const Context& context) {
    const std::lock_guard lock(mutex_);
    std::vector<TaskPtr> tasks;
    std::erase_if(tasks_, [](const auto& one) { return one.second.task->done(); });
    for (const auto& [number, one] : tasks_) {
      if (one.context == &context) tasks.push_back(one.task);
    }
    return tasks;
  }

 private:
  static constexpr std::size_t kFew = 1024;
  struct Spawned {
    const Context* context = nullptr;
    TaskPtr task;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Spawned> tasks_;
  std::size_t most_ = kFew;
  std::uint64_t last_ = 0;
};

namespace {

SpawnedTasks& TasksOf(const Context& context) {
  return *context.process().launches().spawned_tasks.Get([] { return std::make_unique<SpawnedTasks>(); });
}

}  // namespace

CUresult SpawnTask(Context& context, LaunchRequest request, std::uint64_t* number) {
  if (context.narrow_tasks() == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  KernelOp op;
  request.may_be_task = true;
  if (const auto status = MakeKernelOp(context, request, &op); status != CUDA_SUCCESS) return status;
  TaskPtr task;
  if (op.plan.task != nullptr) task = context.narrow_tasks()->Make(0, std::move(op));
  else task = MakeTask(0, [&context, operation = Operation(std::move(op))] { Run(context, operation); });
  *number = TasksOf(context).Add(context, task);
  TaskPool::Get().Submit(task, {});
  return CUDA_SUCCESS;
}

CUresult WaitForTask(Context& context, std::uint64_t number) {
  if (!TasksOf(context).Had(number)) return CUDA_ERROR_INVALID_VALUE;
  if (const TaskPtr task = TasksOf(context).Find(number)) TaskPool::Get().Wait(task);
  return context.status();
}

CUresult CheckTask(Context& context, std::uint64_t number) {
  if (!TasksOf(context).Had(number)) return CUDA_ERROR_INVALID_VALUE;
  const TaskPtr task = TasksOf(context).Find(number);
  return task == nullptr || task->done() ? context.status() : CUDA_ERROR_NOT_READY;
}

std::vector<TaskPtr> SpawnedTasksOf(const Context& context) {
  return context.narrow_tasks() != nullptr ? TasksOf(context).Of(context) : std::vector<TaskPtr>();
}

void WaitForSpawnedTasks(Context& context) {
  for (const TaskPtr& task : SpawnedTasksOf(context)) TaskPool::Get().Wait(task);
}

}  // namespace gridloom::session
