// A tenant's launch, as the timing model asks for its CTAs.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "sim/tenants/tenant_account.h"
#include "sim/timing/cycle.h"
#include "sim/timing/live/live_source.h"

namespace gridloom::tenants {

/// Whatever goes wrong with it, the model gets CTAs that it can simulate: those that are lost are empty.
class TenantSource final : public trace::CtaSource {
 public:
  struct Owner {
    std::shared_ptr<TenantAccount> account;
    std::function<timing::Cycle()> now;                   ///< simulated time
    std::function<void(const std::string& why)> problem;  ///< told once; on the simulation's thread
    std::shared_ptr<timing::TraceStore> store = nullptr;  ///< where its CTAs wait; null: the account's
  };
  TenantSource(std::shared_ptr<const trace::KernelCode> code, const trace::LaunchShape& shape, Owner owner);
  ~TenantSource() override;

  const trace::KernelCode& code() const override { return *code_; }
  const trace::LaunchShape& shape() const override { return live_.shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t index) override;

  enum class Pushed : std::uint8_t { kYes, kNotOfLaunch, kNoMemory, kLost };
  /// On the channel's thread. kNotOfLaunch: that CTA is not the launch's, or has come before. kLost: lost() says why.
  Pushed Push(std::uint64_t cta, trace::LoadedCta trace);
  std::string lost() { return live_.problem(); }
  void Close() { live_.Close(); }
  void Abandon() { live_.Abandon(); }

  /// When the model asked for its first CTA; kNever: it has not.
  timing::Cycle begun() const { return begun_.load(std::memory_order_relaxed); }

 private:
  /// Which CTAs have come, in pages: they come nearly in order.
  static constexpr std::uint64_t kPage = 4096;

  const std::shared_ptr<const trace::KernelCode> code_;
  const Owner owner_;
  timing::LiveSource live_;
  std::unordered_map<std::uint64_t, std::bitset<kPage>> came_;
  Charge pages_;
  std::atomic<std::uint64_t> waiting_{0};  ///< CTAs that have come and were not asked for, each of which has its price
  std::atomic<timing::Cycle> begun_{timing::kNever};
  bool told_ = false;
};

}  // namespace gridloom::tenants
