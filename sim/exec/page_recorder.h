// The pages of global memory that each CTA of a launch really touches, and how: what profiled ranges are checked against.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "sim/exec/access_observer.h"

namespace gridloom::exec {

/// Page number -> kRangeRead, kRangeWrite (range_sink.h). An atomic is both.
using PageFlags = std::map<std::uint64_t, std::uint32_t>;

class PageRecorder final : public AccessObserver {
 public:
  explicit PageRecorder(std::uint32_t page_bytes = 4096) : page_bytes_(page_bytes) {}
  void OnAccess(const ObservedAccess& access) override;

  std::uint32_t page_bytes() const { return page_bytes_; }
  /// By linear CTA index; CTAs that touched nothing are not in it. When the launch has ended.
  std::map<std::uint64_t, PageFlags> Pages() const;

 private:
  static constexpr std::size_t kShards = 16;  // CTAs run on several threads
  /// What was recorded lately: most accesses touch pages that the CTA has just touched.
  struct Recent {
    std::uint64_t cta = ~std::uint64_t{0}, page = 0;
    std::uint32_t flags = 0;
  };
  static constexpr std::size_t kRecent = 256;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::uint64_t, PageFlags> by_cta;
    std::array<Recent, kRecent> recent;
  };
  const std::uint32_t page_bytes_;
  std::array<Shard, kShards> shards_;
};

}  // namespace gridloom::exec
