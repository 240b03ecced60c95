// The host threads that run grids, besides those that launch them. Threads start when first needed, look for work for a
// moment after each grid, then sleep. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/exec/runtime/fork_guard.h"
#include "sim/exec/runtime/launch.h"

namespace gridloom::exec {

class Worker;

class WorkerPool final : public ForkAware {
 public:
  /// `helpers`: threads besides the calling ones.
  WorkerPool(unsigned helpers, DeviceMemory& memory);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  bool has_helpers() const { return helpers_ != 0; }

  /// Offers a grid to the helpers. The caller works on it too.
  void Publish(Launch& launch);
  /// Takes the grid back and waits for the helpers that work on it.
  void Finish(Launch& launch);

  /// Tells all threads that are in a grid to leave it (fault_signal.h). False: there are none.
  bool TellAllToLeave();

  /// Equipment for a launching thread, kept for the next one.
  std::unique_ptr<Worker> Borrow();
  void Return(std::unique_ptr<Worker> worker);

  void BeforeFork() override;
  void AfterForkInParent() override;
  void AfterForkInChild() override;

 private:
  struct Shared;
  void StartThreads();
  static void Main(std::shared_ptr<Shared> shared, std::unique_ptr<Worker> worker);

  const unsigned helpers_;
  DeviceMemory& memory_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace gridloom::exec
