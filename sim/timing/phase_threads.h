// Threads that go through phases together: a phase has as many parts as there are threads, and the next begins when all
// parts are done.
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

/// The caller is thread 0. Part i is thread i's, whose processor has its data in its caches; but who has done his own
/// does those that nobody has begun, since on a busy machine it may take milliseconds until a thread gets a processor.
/// Waiting threads spin for a while, since phases take microseconds, then sleep, so that the one that they wait for
/// gets theirs.
class PhaseThreads {
 public:
  explicit PhaseThreads(unsigned threads, ThreadTimes* times = nullptr);
  ~PhaseThreads();
  PhaseThreads(const PhaseThreads&) = delete;
  PhaseThreads& operator=(const PhaseThreads&) = delete;

  /// Runs phase(part) for each part, on any of the threads, and returns when all are done.
  void Run(const std::function<void(unsigned)>& phase);

 private:
  using Phase = std::function<void(unsigned)>;
  /// In a line of the host's caches of its own, as what each side polls.
  struct alignas(64) Part {
    std::atomic<unsigned> round{0};  ///< the last one in which somebody has taken it
  };

  void Work(unsigned thread);
  void TakeParts(unsigned first, unsigned round);
  void RunTimed(unsigned part, const Phase& phase);
  void AddTimes();

  std::vector<std::thread> workers_;
  ThreadTimes* const times_;     // null: nobody wants to know
  std::vector<double> seconds_;  // by part, of the phase
  std::vector<Part> parts_;
  std::atomic<const Phase*> phase_{nullptr};  // stays as it is while a part that was taken is not done
  std::atomic<bool> ending_{false};
  alignas(64) std::atomic<unsigned> round_{
      0};  // release: phase_ is set for this round, what was done before it is to be seen; pairs with acquire in Work
  alignas(64) std::atomic<unsigned> open_{
      0};  // parts of the round that are not done. release: one is; pairs with acquire in Run
};

}  // namespace gridloom::timing
