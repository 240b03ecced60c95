// The reference-count table of the CRCS paper (section 4.1, Figure 6) for one kernel: per page, how many set calls of its CTAs
// for reading and for writing have not been released yet. The pre-profiler fills it, the release code of the kernel empties it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "sim/exec/device_memory.h"
#include "sim/exec/page_set.h"
#include "sim/exec/range_sink.h"

namespace gridloom::exec {

class ReferenceCounts final : public RangeSink {
 public:
  struct Count {
    std::int64_t read = 0, write = 0;
    bool operator==(const Count&) const = default;
  };
  explicit ReferenceCounts(const DeviceMemory& memory, std::uint32_t page_bytes = 4096) : memory_(memory), page_bytes_(page_bytes) {}

  /// What lies outside of the allocation that the call's array is in counts for nothing (section 4.2.2); so does all of a call
  /// whose array is in none.
  void OnRange(const RangeCall& call) override;

  std::uint32_t page_bytes() const { return page_bytes_; }
  /// By page number. Pages whose counts are both back to zero are not in it.
  std::map<std::uint64_t, Count> Counts() const;
  /// Pages a CTA has set, whether released or not, with kRangeRead and kRangeWrite; sorted. By linear CTA index.
  std::map<std::uint64_t, PageSet> SetByCta() const;
  std::uint64_t calls() const;

 private:
  void Add(const RangeCall& call, std::uint64_t first, std::uint64_t last);

  const DeviceMemory& memory_;
  const std::uint32_t page_bytes_;
  mutable std::mutex mutex_;
  /// By page, how far its counts differ from those of the page before: a call changes two, however many pages it names.
  std::map<std::uint64_t, Count> steps_;
  std::unordered_map<std::uint64_t, PageSet> set_;
  std::uint64_t calls_ = 0;
};

}  // namespace gridloom::exec
