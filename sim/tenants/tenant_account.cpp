#include "sim/tenants/tenant_account.h"

#include <algorithm>

#include "scheduler/protocol/frames.h"

namespace gridloom::tenants {
namespace {

/// A trace that its tenant pays for as long as it is there.
struct PaidTrace {
  PaidTrace(trace::CtaTrace of, std::shared_ptr<TenantAccount> by, std::uint64_t price)
      : trace(std::move(of)), account(std::move(by)), bytes(price) {}
  ~PaidTrace() { account->Give(bytes); }
  PaidTrace(const PaidTrace&) = delete;

  const trace::CtaTrace trace;
  const std::shared_ptr<TenantAccount> account;
  const std::uint64_t bytes;
};

std::uint64_t AloneDisk(const TenantAccount::Limits& limits) { return limits.alone ? limits.disk_bytes / 4 : 0; }

}  // namespace

TenantAccount::TenantAccount(const Limits& limits)
    : limits_(limits),
      store_(std::make_shared<timing::TraceStore>(limits.bytes / 4, limits.disk_bytes - AloneDisk(limits))),
      alone_store_(std::make_shared<timing::TraceStore>(limits.bytes / 8, AloneDisk(limits))) {}

bool TenantAccount::Take(std::uint64_t bytes) {
  std::uint64_t has = bytes_.load(std::memory_order_relaxed);
  do {
    if (has > limits_.bytes || bytes > limits_.bytes - has) return false;
  } while (!bytes_.compare_exchange_weak(has, has + bytes, std::memory_order_relaxed));
  Reached(has + bytes);
  return true;
}

void TenantAccount::Reached(std::uint64_t bytes) {
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < bytes && !peak_.compare_exchange_weak(peak, bytes, std::memory_order_relaxed)) continue;
}

std::uint64_t TenantAccount::most_bytes() const {
  const std::uint64_t has = bytes();
  return std::min<std::uint64_t>(protocol::kMaxCtaBytes, limits_.bytes - std::min(has, limits_.bytes));
}

std::shared_ptr<const trace::CtaTrace> TenantAccount::Keep(trace::CtaTrace trace) {
  const std::uint64_t bytes = trace::BytesOf(trace);
  Reached(bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  const auto paid = std::make_shared<const PaidTrace>(std::move(trace), shared_from_this(), bytes);
  return {paid, &paid->trace};
}

}  // namespace gridloom::tenants
