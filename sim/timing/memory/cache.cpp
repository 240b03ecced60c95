#include "sim/timing/memory/cache.h"

#include <algorithm>
#include <bit>

#include "sim/timing/memory/set_search.h"

namespace gridloom::timing {
namespace {

constexpr std::uint8_t kBehind = 0xff;  // use of a place behind the ways
constexpr std::size_t kGuideAlignment = 32;

std::uint16_t PrintOf(std::uint64_t line) { return static_cast<std::uint16_t>((line * 0x9e3779b97f4a7c15ull) >> 48); }

}  // namespace

Cache::Cache(std::uint32_t size_bytes, std::uint32_t ways)
    : ways_(ways),
      stride_((ways + kWaysPerStep - 1) / kWaysPerStep * kWaysPerStep),
      guide_bytes_((stride_ * 3 + 1 + kGuideAlignment - 1) / kGuideAlignment * kGuideAlignment),
      sets_(std::max(1u, size_bytes / (128 * ways))),
      ways_per_set_(stride_),
      lines_(std::size_t{size_bytes / (128 * ways)} * stride_),
      guides_(size_bytes / (128 * ways) * guide_bytes_) {
  Clear();
}

void Cache::Clear() {
  std::ranges::fill(lines_, CacheLine{});
  std::ranges::fill(guides_, std::uint8_t{0});
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (i % stride_ >= ways_) UsesOf(i / stride_)[i % stride_] = kBehind;
  }
}

std::size_t Cache::SetOf(std::uint64_t line) const {
  // Mixes in higher bits, so that power-of-two strides do not fall on one set.
  const std::uint64_t mixed = line ^ (line >> 6) ^ (line >> 13) ^ (line >> 21);
  return (sets_.value() & (sets_.value() - 1)) == 0 ? mixed & (sets_.value() - 1) : mixed % sets_.value();
}

CacheLine* Cache::FindIn(std::size_t set, std::uint16_t print, std::uint64_t line) {
  CacheLine* const first = lines_.data() + set * stride_;
  for (std::uint64_t like = Matches(PrintsOf(set), stride_, print); like != 0; like &= like - 1) {
    CacheLine* const way = first + std::countr_zero(like);
    if (way->line == line) return way;
  }
  return nullptr;
}

CacheLine* Cache::Find(std::uint64_t line) { return FindIn(SetOf(line), PrintOf(line), line); }

void Cache::Touch(const CacheLine* line) {
  const auto index = static_cast<std::size_t>(line - lines_.data());
  const std::size_t set = ways_per_set_.Quotient(index);
  Use(set, static_cast<std::uint32_t>(index - set * stride_));
}

void Cache::Use(std::size_t set, std::uint32_t way) {
  std::uint8_t* const used = UsesOf(set);
  std::uint8_t& clock = used[stride_];
  if (clock == kLatestUse) clock = NumberByAge(used, stride_, ways_);
  used[way] = ++clock;
}

CacheLine& Cache::FindOrInsert(std::uint64_t line, Victim& victim) {
  const std::size_t set = SetOf(line);
  const std::uint16_t print = PrintOf(line);
  if (CacheLine* const found = FindIn(set, print, line); found != nullptr) return *found;
  const std::uint32_t way = FirstLeast(UsesOf(set), stride_);
  CacheLine& place = lines_[set * stride_ + way];
  if (has_been_dirty_) victim = {.line = place.line, .dirty = static_cast<std::uint8_t>(place.dirty)};
  place = {.line = line};
  PrintsOf(set)[way] = print;
  Use(set, way);
  return place;
}

}  // namespace gridloom::timing
