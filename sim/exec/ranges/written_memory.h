// What a launch may write, as its profiler told, and the bytes that lie there: with both, a launch can be undone
// (docs/ranges.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/exec/device_memory.h"
#include "sim/exec/ranges/range_sink.h"

namespace gridloom::exec {

struct ByteRange {
  std::uint64_t begin = 0, end = 0;  ///< exclusive
  bool operator==(const ByteRange&) const = default;
};

/// Takes a profiler's calls and keeps what they say is written: whole pages, as far as they are in the call's
/// allocation.
class WrittenMemory final : public RangeSink {
 public:
  explicit WrittenMemory(const DeviceMemory& memory) : memory_(memory) {}
  void OnRange(const RangeCall& call) override;

  /// Sorted, without overlap. When the launch has ended.
  std::vector<ByteRange> Ranges() const;
  /// Some of it that the host reaches, too (managed, pinned or registered), if there is any.
  std::optional<Allocation> SharedWithHost() const;

 private:
  static constexpr std::size_t kShards = 16;  // CTAs run on several threads
  struct Shard {
    mutable std::mutex mutex;
    std::vector<ByteRange> ranges;
    std::size_t compact_at = 1u << 12;
    std::optional<Allocation> shared;
  };

  const DeviceMemory& memory_;
  std::array<Shard, kShards> shards_;
};

/// The bytes of some memory at one moment.
class SavedMemory {
 public:
  /// Nothing when there is not enough memory for a copy.
  static std::optional<SavedMemory> Of(const std::vector<ByteRange>& ranges);
  /// Puts them back. Who saved them sees to it that nobody works there meanwhile.
  void Restore() const;
  static std::uint64_t BytesOf(const std::vector<ByteRange>& ranges);

 private:
  SavedMemory(std::vector<ByteRange> ranges, std::unique_ptr<std::byte[]> bytes)
      : ranges_(std::move(ranges)), bytes_(std::move(bytes)) {}

  std::vector<ByteRange> ranges_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace gridloom::exec
