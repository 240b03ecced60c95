// The pages of global memory that each CTA of a launch really touches, and how: what profiled ranges are checked against.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/exec/access_observer.h"

namespace gridloom::exec {

struct TouchedPage {
  std::uint64_t page = 0;
  std::uint32_t flags = 0;  ///< kRangeRead, kRangeWrite (range_sink.h); an atomic is both
};
using TouchedPages = std::vector<TouchedPage>;

class PageRecorder final : public AccessObserver {
 public:
  /// `page_bytes` is a power of two.
  explicit PageRecorder(std::uint32_t page_bytes = 4096);
  void OnAccess(const ObservedAccess& access) override;

  /// By linear CTA index, sorted, each page once; CTAs that touched nothing are not in it. When the launch has ended.
  std::map<std::uint64_t, TouchedPages> Pages() const;

 private:
  static constexpr std::size_t kShards = 16;  // CTAs run on several threads
  /// What was recorded lately: most accesses touch pages that the CTA has just touched.
  struct Recent {
    std::uint64_t cta = ~std::uint64_t{0}, page = 0;
    std::uint32_t flags = 0;
  };
  static constexpr std::size_t kRecent = 256;
  /// What a CTA touched, in any order and more than once, but not much more than there are pages.
  struct Touched {
    TouchedPages pages;
    std::size_t compact_at = 1024;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::uint64_t, Touched> by_cta;
    std::array<Recent, kRecent> recent;
  };
  static void Compact(TouchedPages& pages);

  const unsigned page_shift_;
  std::array<Shard, kShards> shards_;
};

}  // namespace gridloom::exec
