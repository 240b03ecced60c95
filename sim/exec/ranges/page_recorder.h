// The pages of global memory that each CTA of a launch really touches, and how: what profiled ranges are checked
// against.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/exec/ranges/access_observer.h"
#include "sim/exec/ranges/page_set.h"

namespace gridloom::exec {

class PageRecorder final : public AccessObserver {
 public:
  /// `page_bytes` is a power of two. CTAs that are not in `sample` are not recorded.
  explicit PageRecorder(std::uint32_t page_bytes = 4096, CtaSample sample = {});
  void OnAccess(const ObservedAccess& access) override;

  /// By CTA; the flags are kRangeRead and kRangeWrite (range_sink.h), an atomic is both. When the launch has ended.
  std::vector<CtaPages> Pages() const;

 private:
  static constexpr std::size_t kShards = 16;  // CTAs run on several threads
  /// What was recorded lately: most accesses touch pages that the CTA has just touched.
  struct Recent {
    std::uint64_t cta = ~std::uint64_t{0}, page = 0;
    std::uint32_t flags = 0;
  };
  static constexpr std::size_t kRecent = 32;  // few enough to stay in the cache for all shards
  struct Shard {
    mutable std::mutex mutex;
    CtaPageLog log;
    std::array<Recent, kRecent> recent;
  };

  const unsigned page_shift_;
  const CtaSample sample_;
  std::array<Shard, kShards> shards_;
};

}  // namespace gridloom::exec
