// Asynchronous copies to shared memory that nobody has waited for. Each unit has its own; only the unit's worker
// touches them.
#pragma once

#include <cstdint>
#include <vector>

namespace gridloom::exec {

class AsyncCopies {
 public:
  struct Copy {
    std::uint32_t begin = 0, end = 0;  ///< offsets in the unit's shared memory
    std::uint32_t warp = 0, lane = 0, line = 0;
    std::uint32_t group = 0;         ///< of the thread, which has committed those before its newest one
    const void* mbarrier = nullptr;  ///< that tells of its end; null: the thread waits for a group
    bool landed = false;             ///< its mbarrier's phase is over
  };

  void Prepare(std::uint32_t shared_bytes, std::uint32_t warps);
  void BeginCta();
  bool empty() const { return count_ == 0; }

  void Begin(Copy copy);
  void Commit(std::uint32_t warp, std::uint32_t lane);
  /// All but the thread's newest `groups` committed groups; `all`: what it has not committed, too. Takes out those that
  /// have ended.
  std::vector<Copy> Await(std::uint32_t warp, std::uint32_t lane, std::uint32_t groups, bool all);
  /// An mbarrier tells of the end of all that the thread has begun.
  void Bind(std::uint32_t warp, std::uint32_t lane, const void* mbarrier);
  /// A phase of the mbarrier is over: its copies are there for whoever asks it.
  void EndPhase(const void* mbarrier);
  /// A thread has seen that.
  void SeeEnd(const void* mbarrier);

  /// False: none writes to [begin, end). Quick; true says nothing.
  bool MayWrite(std::uint64_t begin, std::uint64_t end) const;
  /// One that writes a byte of [begin, end) and was not waited for; null: none.
  const Copy* Find(std::uint32_t begin, std::uint32_t end) const;

 private:
  struct Thread {
    std::uint32_t group = 0;  ///< that it is filling
    std::vector<Copy> copies;
  };
  Thread& ThreadOf(std::uint32_t warp, std::uint32_t lane);
  void Count(const Copy& copy, std::uint32_t step);

  std::vector<Thread> threads_;
  std::vector<Copy> bound_;            // with an mbarrier
  std::size_t count_ = 0;              // of all
  std::vector<std::uint32_t> chunks_;  // how many copies write to each
};

}  // namespace gridloom::exec
