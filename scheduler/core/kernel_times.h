// What is known of how long a CTA of each of one tenant's kernels takes. One table for each tenant: what a tenant calls
// its kernels, how many it has and how long they take changes nothing that is known of another tenant's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace gridloom::sched {

class KernelTimes {
 public:
  /// Kernels that are kept at most; those that have not run for longest go first.
  static constexpr std::size_t kMost = 1024;

  /// Time of a CTA; null: nothing is known of the kernel.
  const double* Find(std::uint64_t kernel) const {
    if (const auto at = recent_.find(kernel); at != recent_.end()) return &at->second;
    const auto at = older_.find(kernel);
    return at != older_.end() ? &at->second : nullptr;
  }

  /// CTAs of the kernel have taken `each`. Later ones weigh more.
  void Learn(std::uint64_t kernel, double each) {
    auto at = recent_.find(kernel);
    if (at == recent_.end()) {
      const double* const known = Find(kernel);
      const double before = known != nullptr ? *known : each;
      // Half of what is kept is what has run lately; the other half is what did before that, and goes when the first
      // half is full.
      if (recent_.size() >= kMost / 2) older_ = std::exchange(recent_, {});
      at = recent_.emplace(kernel, before).first;
    }
    at->second += (each - at->second) / 4;
  }

  std::size_t size() const { return recent_.size() + older_.size(); }

 private:
  std::unordered_map<std::uint64_t, double> recent_, older_;  ///< a kernel may be in both: then `recent_` holds
};

}  // namespace gridloom::sched
