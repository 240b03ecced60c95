// How many CTAs of a slice on a real GPU have run while it runs: forms of machine code count the threads that end
// (docs/machine-code.md#progress), into a table that this process looks at twenty times a second and tells the broker
// of.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "scheduler/protocol/client.h"

namespace gridloom::api {

/// Counts of the threads that have ended, in the memory of the device, for one slice at a time. One count is of one
/// CTA, or of a few that follow each other.
class CountTable {
 public:
  /// In the current context; null when the driver does not give what it takes.
  static std::unique_ptr<CountTable> Make();
  ~CountTable();
  CountTable(const CountTable&) = delete;

  cuda::CUcontext context() const { return context_; }

  /// For launches into that stream that are to follow, of so many CTAs together. False: the driver does not do it.
  bool Clear(bool per_thread, cuda::CUstream stream, std::uint64_t ctas);
  /// What a launch is told: where its counts are, and how many CTAs share one. An address of 0 when there is no room.
  struct Place {
    std::uint64_t address = 0;
    std::uint32_t shift = 0;
  };
  Place Add(std::uint64_t ctas, std::uint32_t threads_per_cta);
  /// CTAs that have run for certain, as the table was some time ago. Never waits.
  std::uint64_t Ended();

 private:
  CountTable() = default;
  struct Launch {
    std::uint32_t first = 0;  ///< count
    std::uint32_t shift = 0;
    std::uint64_t ctas = 0;
    std::uint32_t threads_per_cta = 0;
  };
  std::uint64_t EndedOf(const Launch& launch) const;

  cuda::CUcontext context_ = nullptr;
  cuda::CUdeviceptr counts_ = 0;
  void* copy_ = nullptr;
  cuda::CUstream stream_ = nullptr;  ///< ours, on which copies of the counts are made
  cuda::CUevent cleared_ = nullptr;
  std::vector<Launch> launches_;
  std::uint32_t used_ = 0, room_ = 0;  ///< counts
  bool copying_ = false;
  std::uint64_t ended_ = 0;
};

/// Tells the broker. Never destroyed; all functions may be called from any thread.
class SliceCounts {
 public:
  explicit SliceCounts(protocol::Client& client) : client_(client) {}

  /// A table for CTAs `done` to `end` - 1 of a launch, `threads_per_cta` threads each; null when there is none.
  std::shared_ptr<CountTable> Begin(const protocol::Client::Ticket& ticket, std::uint64_t context, bool per_thread,
                                    cuda::CUstream stream, std::uint64_t done, std::uint64_t end);
  /// From its return on nothing is told of the slice. The table may be null. `over`: nothing of the slice runs, and the
  /// table is for others.
  void End(const std::shared_ptr<CountTable>& table, bool over);

 private:
  struct Slice {
    protocol::Client::Ticket ticket;
    std::uint64_t context = 0;  ///< its number
    std::uint64_t done = 0, end = 0, told = 0;
    std::shared_ptr<CountTable> table;
  };
  void Look();
  void LookAt(Slice& slice);

  protocol::Client& client_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable begun_;
  bool looks_ = false;
  std::vector<Slice> slices_;                                               ///< that run
  std::map<std::uint64_t, std::vector<std::shared_ptr<CountTable>>> free_;  ///< tables, by context
  std::vector<std::shared_ptr<CountTable>> lost_;                           ///< something may still count into them
};

}  // namespace gridloom::api
