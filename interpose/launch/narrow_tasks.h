// GRIDLOOM_POLICY=pagoda: launches of few threads become tasks of a MasterKernel that stays (Pagoda;
// docs/narrow-tasks.md), everything else runs as before, beside it. On the executor a MasterKernel is a block for each
// of its host threads (launch/master.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "interpose/launch/master.h"
#include "rewriter/support/result.h"

namespace gridloom::session {

class NarrowTasks {
 public:
  explicit NarrowTasks(Context& context);
  ~NarrowTasks();

  /// Null unless the policy asks for it.
  static std::unique_ptr<NarrowTasks> MakeFor(Context& context);
  /// What is wrong with the settings.
  static Status CheckSettings();

  /// The kernel as a task when the launch can be one; null when it has to be a grid, which the summary tells. The first
  /// launch of a kernel makes a larger MasterKernel.
  TaskKernelPtr Admit(const KernelOp& op);
  /// Runs a launch that was admitted.
  TaskPtr Make(std::uint64_t lane, KernelOp op);
  /// Ends the MasterKernel. What other threads put into streams meanwhile does not run any more, as its context has
  /// ended.
  void End();

 private:
  using Key = std::pair<const exec::Program*, const exec::KernelInfo*>;
  TaskKernelPtr Find(const KernelOp& op);
  void Enlarge(const KernelOp& op);
  void Start(std::shared_ptr<const MasterCode> code);
  std::string WhyGrid(const KernelOp& op, const TaskKernel& kernel) const;

  Context& context_;
  const std::uint64_t threads_;  ///< a launch of fewer is a task
  const tasks::TableShape shape_;
  TaskQueue queue_;
  std::mutex mutex_;  ///< of all below
  std::map<Key, TaskKernelPtr> known_;
  std::vector<TaskKernelPtr> kernels_;  ///< the same in the order they came, which is that of the MasterKernel
  std::shared_ptr<const MasterCode> code_;
  std::vector<std::unique_ptr<Master>> masters_;  ///< those that take tasks
  std::vector<std::unique_ptr<Master>> older_;    ///< those that end
  std::atomic<std::uint64_t> numbers_{0};
};

}  // namespace gridloom::session
