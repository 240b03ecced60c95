// Which bytes of the device's memory somebody has written (memcheck's initcheck): of what cudaMalloc and its relatives
// give, and of nothing else, since the host writes the rest without telling. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "sim/exec/device_memory.h"

namespace gridloom::exec {

/// The bytes of one allocation that somebody has written, by offset. Ranges lie inside of the allocation.
class WrittenBytes {
 public:
  explicit WrittenBytes(std::uint64_t bytes);
  void Write(std::uint64_t offset, std::uint64_t bytes) { Set(offset, bytes, true); }
  void Unwrite(std::uint64_t offset, std::uint64_t bytes) { Set(offset, bytes, false); }
  bool IsWritten(std::uint64_t offset) const {
    return (words_[offset / 64].load(std::memory_order_relaxed) >> offset % 64 & 1) != 0;
  }
  /// The first byte of a range that nobody has written; none: all is written.
  std::optional<std::uint64_t> FirstUnwritten(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  void Set(std::uint64_t offset, std::uint64_t bytes, bool written);
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

class GlobalShadow {
 public:
  /// The written bytes of the allocation, which is one of `memory`; null for memory of which nothing is known.
  std::shared_ptr<WrittenBytes> Of(const DeviceMemory& memory, const Allocation& allocation);

  /// Marks the range at `address` as written, as far as it lies in one allocation.
  void Write(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes);
  /// The bytes at `to` get what those at `from` have: nothing where these were not written.
  void Copy(const DeviceMemory& memory, std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  /// The first address of a range that nobody has written.
  std::optional<std::uint64_t> FirstUnwritten(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes);

 private:
  struct Range {
    std::shared_ptr<WrittenBytes> bytes;  ///< null: not known, as good as written
    std::uint64_t offset = 0, count = 0;
  };
  Range Find(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes);
  void ForgetFreed();

  struct Entry {
    const DeviceMemory* memory = nullptr;  ///< lives as long as its device
    std::uint64_t id = 0;                  ///< of the allocation: in `memory` alone
    std::shared_ptr<WrittenBytes> bytes;
  };
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> by_base_;  ///< devices have no address in common
  std::size_t most_ = 64;                             ///< with so many, those that are freed go
};

}  // namespace gridloom::exec
