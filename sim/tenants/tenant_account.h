// What the sessions of one tenant have of the timing model's memory and disk, and may have (docs/security.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "sim/timing/live/live_source.h"
#include "sim/trace/cta_codec.h"

namespace gridloom::tenants {

/// Counts what a tenant's traces, kernels, works and questions take, whoever holds them: the last trace gives back what
/// it took when the model has let go of it. From any thread.
class TenantAccount final : public trace::TraceKeeper, public std::enable_shared_from_this<TenantAccount> {
 public:
  struct Limits {
    std::uint64_t bytes = std::uint64_t{2} << 30;        ///< of memory
    std::uint64_t disk_bytes = std::uint64_t{16} << 30;  ///< of traces that wait
    bool alone = false;  ///< some of it is for simulating the tenant alone (alone_device.h)
  };
  explicit TenantAccount(const Limits& limits);

  /// False, and nothing is taken, when it would be more than the tenant may have.
  bool Take(std::uint64_t bytes);
  void Give(std::uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  const Limits& limits() const { return limits_; }
  /// Where traces wait: a quarter of the memory, then the disk.
  const std::shared_ptr<timing::TraceStore>& store() const { return store_; }
  /// Where those wait that are simulated alone: an eighth of the memory, then a quarter of the disk, which the others
  /// have less then.
  const std::shared_ptr<timing::TraceStore>& alone_store() const { return alone_store_; }

  std::uint64_t most_bytes() const override;
  /// Counted until the last one who holds it lets it go, also where that is more than there is: most_bytes was asked
  /// before.
  std::shared_ptr<const trace::CtaTrace> Keep(trace::CtaTrace trace) override;

 private:
  const Limits limits_;
  void Reached(std::uint64_t bytes);

  std::atomic<std::uint64_t> bytes_{0}, peak_{0};
  const std::shared_ptr<timing::TraceStore> store_, alone_store_;
};

/// A part of an account that grows and shrinks, and is given back at the end.
class Charge {
 public:
  explicit Charge(std::shared_ptr<TenantAccount> account) : account_(std::move(account)) {}
  ~Charge() { account_->Give(bytes_); }
  Charge(const Charge&) = delete;

  /// False when there is not so much; then nothing changes.
  bool Add(std::uint64_t bytes) {
    if (!account_->Take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  /// To no more than it is.
  void ShrinkTo(std::uint64_t bytes) {
    if (bytes >= bytes_) return;
    account_->Give(bytes_ - bytes);
    bytes_ = bytes;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<TenantAccount> account_;
  std::uint64_t bytes_ = 0;
};

}  // namespace gridloom::tenants
