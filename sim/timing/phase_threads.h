// Threads that go through phases together: all do a phase, none begins the next before the last has ended the one before.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace gridloom::timing {

/// CPU time of phases: what threads that never wait for a processor would save. Waiting for each other does not count.
struct ThreadTimes {
  double all = 0;      ///< seconds, of all threads
  double longest = 0;  ///< of the thread that took longest, summed over phases: no run can take less
};

/// The caller is thread 0. Waiting threads spin for a while, since phases take microseconds, then sleep, so that on a busy machine the
/// one that they wait for gets its processor.
class PhaseThreads {
 public:
  explicit PhaseThreads(unsigned threads, ThreadTimes* times = nullptr);
  ~PhaseThreads();
  PhaseThreads(const PhaseThreads&) = delete;
  PhaseThreads& operator=(const PhaseThreads&) = delete;

  /// Runs phase(thread) on all threads, and returns when all have.
  void Run(const std::function<void(unsigned)>& phase);

 private:
  void Work(unsigned thread);
  void RunTimed(unsigned thread, const std::function<void(unsigned)>& phase);
  void AddTimes();

  std::vector<std::thread> workers_;
  const std::function<void(unsigned)>* phase_ = nullptr;  // null: the workers end
  ThreadTimes* const times_;                              // null: nobody wants to know
  std::vector<double> seconds_;                           // by thread, of the phase
  // What each side polls lies in a line of the host's caches of its own.
  alignas(64) std::atomic<unsigned> round_{0};    // release: phase_ is set for this round; pairs with acquire in Work
  alignas(64) std::atomic<unsigned> running_{0};  // release: a worker has done the phase; pairs with acquire in Run
};

}  // namespace gridloom::timing
