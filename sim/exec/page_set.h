// Which pages, and how: ranges of page numbers with flags (range_sink.h), since a CTA may report an array of many pages.
#pragma once

#include <cstdint>
#include <vector>

namespace gridloom::exec {

class PageSet {
 public:
  struct Range {
    std::uint64_t first = 0, last = 0;  ///< both belong to it
    std::uint32_t flags = 0;
    bool operator==(const Range&) const = default;
  };

  /// Pages that are in the set already get these flags, too. Before Sort.
  void Add(const Range& range);
  /// Makes the ranges disjoint; before the following are asked.
  void Sort();
  const std::vector<Range>& ranges() const { return ranges_; }
  /// How many pages.
  std::uint64_t size() const;
  /// 0: not in the set.
  std::uint32_t FlagsOf(std::uint64_t page) const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace gridloom::exec
