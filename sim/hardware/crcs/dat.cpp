#include "sim/hardware/crcs/dat.h"

#include <algorithm>
#include <bit>

namespace gridloom::hardware::crcs {

void DataAvailabilityTracker::Expect(std::uint64_t page, std::uint32_t bytes) {
  Entry& entry = entries_[page];
  if (entry.cached) used_.erase(entry.use);
  entry = {};
  entry.words = (bytes + kWordBytes - 1) / kWordBytes;
  entry.full.resize((entry.words + 63) / 64);
}

/// Whether it was not on the chip.
bool DataAvailabilityTracker::Fetch(std::uint64_t page, Entry& entry) {
  if (entry.cached) {
    used_.splice(used_.begin(), used_, entry.use);
    return false;
  }
  if (used_.size() == on_chip_) {
    entries_.at(used_.back()).cached = false;
    used_.pop_back();
  }
  used_.push_front(page);
  entry.use = used_.begin();
  entry.cached = true;
  return true;
}

bool DataAvailabilityTracker::Forget(std::uint64_t page) {
  const auto found = entries_.find(page);
  if (found == entries_.end()) return false;
  if (found->second.cached) used_.erase(found->second.use);
  entries_.erase(found);
  return true;
}

DataAvailabilityTracker::Written DataAvailabilityTracker::Write(std::uint64_t page, std::uint32_t begin,
                                                                std::uint32_t end) {
  const auto found = entries_.find(page);
  if (found == entries_.end() || begin >= end) return {};
  Entry& entry = found->second;
  Written written{.full = false, .miss = Fetch(page, entry)};
  const std::uint32_t last = std::min((end + kWordBytes - 1) / kWordBytes, entry.words);
  for (std::uint32_t word = begin / kWordBytes; word < last;) {
    const std::uint32_t next = std::min(last, (word / 64 + 1) * 64);
    const std::uint64_t bits = ~std::uint64_t{0} >> (64 - (next - word)) << word % 64;
    std::uint64_t& full = entry.full[word / 64];
    entry.written += static_cast<std::uint32_t>(std::popcount(bits & ~full));
    full |= bits;
    word = next;
  }
  written.full = entry.written == entry.words;
  if (written.full) {
    used_.erase(entry.use);
    entries_.erase(found);
  }
  return written;
}

}  // namespace gridloom::hardware::crcs
