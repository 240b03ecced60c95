#include "sim/exec/runtime/host_registry.h"

#include <algorithm>

namespace gridloom::exec {

// Read under a sequence lock, so every field is atomic: a reader may see a torn table, but then the version has
// changed. Fields are stored with release and loaded with acquire order: who sees a new field also sees the odd version
// before it.
struct HostRegistry::Table {
  struct Row {
    std::atomic<std::uint64_t> base{0}, bytes{0}, id{0};
    std::atomic<AllocationOwner*> owner{nullptr};
    std::atomic<bool> read_only{false};

    HostRange Load() const {
      return {base.load(std::memory_order_acquire), bytes.load(std::memory_order_acquire),
              id.load(std::memory_order_acquire), read_only.load(std::memory_order_acquire),
              owner.load(std::memory_order_acquire)};
    }
    void Store(const HostRange& range) {
      base.store(range.base, std::memory_order_release);
      bytes.store(range.bytes, std::memory_order_release);
      id.store(range.id, std::memory_order_release);
      read_only.store(range.read_only, std::memory_order_release);
      owner.store(range.owner, std::memory_order_release);
    }
  };

  explicit Table(std::size_t capacity) : rows(capacity) {}

  /// Number of rows that begin at or before `address`.
  std::size_t UpperBound(std::uint64_t address) const {
    std::size_t low = 0, high = std::min(count.load(std::memory_order_acquire), rows.size());
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (rows[middle].base.load(std::memory_order_acquire) <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  std::atomic<std::size_t> count{0};
  std::vector<Row> rows;
};

HostRegistry::HostRegistry() {
  tables_.push_back(std::make_unique<Table>(16));
  current_.store(tables_.back().get());
}

HostRegistry::~HostRegistry() = default;

template <typename F>
auto HostRegistry::Read(F&& look) const {
  for (;;) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    if ((before & 1) != 0) continue;
    auto found = look(*current_.load(std::memory_order_acquire));
    if (version_.load(std::memory_order_relaxed) == before) return found;
  }
}

void HostRegistry::Publish(const std::vector<HostRange>& ranges) {
  Table* table = current_.load();
  if (ranges.size() > table->rows.size()) {
    tables_.push_back(std::make_unique<Table>(ranges.size() * 2));
    table = tables_.back().get();
  }
  version_.fetch_add(1, std::memory_order_acq_rel);
  for (std::size_t i = 0; i < ranges.size(); ++i) table->rows[i].Store(ranges[i]);
  table->count.store(ranges.size(), std::memory_order_release);
  current_.store(table, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

bool HostRegistry::Add(const HostRange& range) {
  if (range.bytes == 0 || range.base + range.bytes < range.base) return false;
  const auto next = std::ranges::upper_bound(ranges_, range.base, {}, &HostRange::base);
  if (next != ranges_.end() && next->base < range.base + range.bytes) return false;
  if (next != ranges_.begin() && std::prev(next)->base + std::prev(next)->bytes > range.base) return false;
  ranges_.insert(next, range);
  Publish(ranges_);
  return true;
}

bool HostRegistry::Remove(std::uint64_t base) {
  const auto it = std::ranges::find(ranges_, base, &HostRange::base);
  if (it == ranges_.end()) return false;
  ranges_.erase(it);
  Publish(ranges_);
  return true;
}

std::optional<HostRange> HostRegistry::FindBefore(std::uint64_t address) const {
  return Read([&](const Table& table) -> std::optional<HostRange> {
    const std::size_t at = table.UpperBound(address);
    if (at == 0) return std::nullopt;
    return table.rows[at - 1].Load();
  });
}

std::optional<HostRange> HostRegistry::FindAfter(std::uint64_t address) const {
  return Read([&](const Table& table) -> std::optional<HostRange> {
    const std::size_t at = table.UpperBound(address);
    if (at >= std::min(table.count.load(std::memory_order_acquire), table.rows.size())) return std::nullopt;
    return table.rows[at].Load();
  });
}

std::optional<HostRange> HostRegistry::Find(std::uint64_t address) const {
  const auto before = FindBefore(address);
  if (!before || address - before->base >= before->bytes) return std::nullopt;
  return before;
}

bool HostRegistry::Accessible(std::uint64_t address, std::uint64_t bytes, bool write) const {
  const auto range = Find(address);
  return range && bytes <= range->base + range->bytes - address && !(write && range->read_only);
}

}  // namespace gridloom::exec
