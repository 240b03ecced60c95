#include "sim/timing/memory/cache.h"

#include <algorithm>

namespace gridloom::timing {

Cache::Cache(std::uint32_t size_bytes, std::uint32_t ways)
    : sets_(size_bytes / (128 * ways)), ways_(ways), lines_(std::size_t{sets_} * ways) {}

std::size_t Cache::FirstOf(std::uint64_t line) const {
  // Mixes in higher bits, so that power-of-two strides do not fall on one set.
  const std::uint64_t mixed = line ^ (line >> 6) ^ (line >> 13) ^ (line >> 21);
  const std::uint64_t set = (sets_ & (sets_ - 1)) == 0 ? mixed & (sets_ - 1) : mixed % sets_;
  return set * ways_;
}

void Cache::Prefetch(std::uint64_t line) const {
  constexpr std::uint32_t kHostLine = 64;
  const std::size_t first = FirstOf(line);
  for (std::uint32_t way = 0; way < ways_; way += kHostLine / sizeof(CacheLine)) __builtin_prefetch(&lines_[first + way]);
}

CacheLine* Cache::Find(std::uint64_t line) {
  // Without a way out of the loop: which way it is cannot be predicted.
  CacheLine* const set = SetOf(line);
  CacheLine* found = nullptr;
  for (CacheLine* way = set; way != set + ways_; ++way) found = way->line == line ? way : found;
  return found;
}

CacheLine& Cache::Touch(CacheLine* line) {
  CacheLine* const set = SetOf(line->line);
  std::rotate(set, line, line + 1);
  return *set;
}

CacheLine& Cache::Insert(std::uint64_t line, Victim& victim) {
  CacheLine* const set = SetOf(line);
  CacheLine& last = set[ways_ - 1];
  victim = {.line = last.line, .state = last};
  std::move_backward(set, set + ways_ - 1, set + ways_);
  *set = {.line = line};
  return *set;
}

}  // namespace gridloom::timing
