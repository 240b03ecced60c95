// Host memory that kernels may touch besides the device range (cuMemHostRegister). Readers take no lock: generated
// code's slow paths ask for every lane. Writers are serialised by the owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/exec/device_memory.h"

namespace gridloom::exec {

struct HostRange {
  std::uint64_t base = 0, bytes = 0, id = 0;
  bool read_only = false;
  AllocationOwner* owner = nullptr;
};

class HostRegistry {
 public:
  HostRegistry();
  ~HostRegistry();

  /// False when it overlaps a registered range, is empty or wraps around.
  bool Add(const HostRange& range);
  bool Remove(std::uint64_t base);

  std::optional<HostRange> Find(std::uint64_t address) const;
  /// The range that begins last at or before `address`, and the first one after it (for messages).
  std::optional<HostRange> FindBefore(std::uint64_t address) const;
  std::optional<HostRange> FindAfter(std::uint64_t address) const;
  bool Accessible(std::uint64_t address, std::uint64_t bytes, bool write) const;

 private:
  struct Table;
  template <typename F>
  auto Read(F&& look) const;
  void Publish(const std::vector<HostRange>& ranges);

  std::vector<HostRange> ranges_;               // sorted, the writer's copy
  std::vector<std::unique_ptr<Table>> tables_;  // all ever published, each twice as big as the one before
  std::atomic<Table*> current_;
  std::atomic<std::uint64_t> version_{0};  // odd while a writer changes the current table
};

}  // namespace gridloom::exec
