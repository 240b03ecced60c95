// Threads that compile kernels while the program goes on: a launch returns when it is certain that its kernel can be compiled, and several
// kernels are made at once. They end when nothing is left to do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::exec {

class Builders final : ForkAware {
 public:
  using Job = std::function<void()>;

  explicit Builders(unsigned most_threads);
  /// Waits for all jobs.
  ~Builders();
  Builders(const Builders&) = delete;
  Builders& operator=(const Builders&) = delete;

  /// On a thread of its own, or at once where no thread is to be had. Jobs throw nothing.
  void Run(Job job);
  void Wait();

 private:
  // What runs ends before a process forks: the child has none of these threads, and the compiler's locks must be free in it. What has not
  // begun does so afterwards, in both.
  void BeforeFork() override;
  void AfterForkInParent() override;
  void AfterForkInChild() override;

  bool StartThread();
  void Main();

  const unsigned most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  unsigned threads_ = 0, busy_ = 0;
  bool paused_ = false;
};

}  // namespace gridloom::exec
