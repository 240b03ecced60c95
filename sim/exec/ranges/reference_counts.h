// The reference-count table of the CRCS paper (section 4.1, Figure 6) for one kernel: per page, how many set calls of
// its CTAs for reading and for writing have not been released yet. The pre-profiler fills it, the release code of the
// kernel empties it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/exec/device_memory.h"
#include "sim/exec/ranges/page_set.h"
#include "sim/exec/ranges/range_sink.h"

namespace gridloom::exec {

class ReferenceCounts final : public RangeSink {
 public:
  struct Count {
    std::int64_t read = 0, write = 0;
    bool operator==(const Count&) const = default;
  };
  /// All CTAs are counted; SetByCta knows of those in `sample`.
  explicit ReferenceCounts(const DeviceMemory& memory, std::uint32_t page_bytes = 4096, CtaSample sample = {})
      : memory_(memory), page_bytes_(page_bytes), sample_(sample) {}

  /// What lies outside of the allocation that the call's array is in counts for nothing (section 4.2.2); so does all of
  /// a call whose array is in none.
  void OnRange(const RangeCall& call) override;

  std::uint32_t page_bytes() const { return page_bytes_; }
  /// By page number. Pages whose counts are both back to zero are not in it.
  std::map<std::uint64_t, Count> Counts() const;
  /// Pages a CTA has set, whether released or not, with kRangeRead and kRangeWrite. By CTA; those without a page are
  /// not in it.
  std::vector<CtaPages> SetByCta() const;
  std::uint64_t calls() const;

 private:
  static constexpr std::size_t kShards = 16, kChunk = 512;
  using Chunk = std::array<Count, kChunk>;
  /// The calls of some CTAs: of one always in the same shard.
  struct Shard {
    mutable std::mutex mutex;
    /// By page, in chunks of neighbours, how far its counts differ from those of the page before: a call changes two,
    /// however many pages it names.
    std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> steps;
    std::uint64_t last_chunk = 0;  ///< the one used last
    Chunk* last = nullptr;
    CtaPageLog set;
    std::uint64_t calls = 0;

    Count& StepAt(std::uint64_t page);
  };
  void Add(Shard& shard, const RangeCall& call, std::uint64_t first, std::uint64_t last) const;

  const DeviceMemory& memory_;
  const std::uint32_t page_bytes_;
  const CtaSample sample_;
  std::array<Shard, kShards> shards_;
};

}  // namespace gridloom::exec
