#include "sim/timing/memory/cache.h"

namespace gridloom::timing {

Cache::Cache(std::uint32_t size_bytes, std::uint32_t ways)
    : sets_(size_bytes / (128 * ways)), ways_(ways), tags_(std::size_t{sets_} * ways, kNoLine), lines_(tags_.size()), used_(tags_.size()) {}

std::size_t Cache::SetOf(std::uint64_t line) const {
  // Mixes in higher bits, so that power-of-two strides do not fall on one set.
  const std::uint64_t mixed = line ^ (line >> 6) ^ (line >> 13) ^ (line >> 21);
  const std::uint64_t set = (sets_ & (sets_ - 1)) == 0 ? mixed & (sets_ - 1) : mixed % sets_;
  return static_cast<std::size_t>(set) * ways_;
}

CacheLine* Cache::Find(std::uint64_t line) {
  const std::size_t first = SetOf(line);
  for (std::size_t i = first; i < first + ways_; ++i) {
    if (tags_[i] == line) return &lines_[i];
  }
  return nullptr;
}

CacheLine& Cache::Insert(std::uint64_t line, Victim& victim) {
  const std::size_t first = SetOf(line);
  std::size_t oldest = first;
  for (std::size_t i = first; i < first + ways_; ++i) {
    if (used_[i] < used_[oldest]) oldest = i;  // free ways were never used
  }
  victim = {.line = tags_[oldest], .state = tags_[oldest] == kNoLine ? CacheLine{} : lines_[oldest]};
  tags_[oldest] = line;
  lines_[oldest] = {};
  used_[oldest] = ++clock_;
  return lines_[oldest];
}

}  // namespace gridloom::timing
