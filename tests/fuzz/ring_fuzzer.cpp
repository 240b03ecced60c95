// The memory that a tenant shares with the broker, written to by a hostile tenant at any place between any two looks of
// the broker's: the ring, its counts, the mailboxes that only the broker should write. What the broker believes must
// not depend on what it wrote.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

#include "scheduler/core/scheduler.h"
#include "scheduler/daemon/session.h"
#include "scheduler/policy/builtin.h"
#include "tests/scheduler/policy/no_pairs.h"

namespace gridloom {
namespace {

using protocol::RawRecord;
using protocol::RecordKind;
using protocol::SegmentLayout;

void Require(bool condition) {
  if (!condition) std::abort();
}

/// Takes the fuzzer's bytes apart; zeros behind their end.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  template <typename T>
  T Next() {
    T value{};
    const std::size_t size = std::min(sizeof value, bytes_.size());
    std::memcpy(static_cast<void*>(&value), bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A broker with one session, as far as rings go.
struct Tenant final : sched::Engine, broker::SessionHost {
  std::uint64_t time = 0, granted_last = 0, memory = 0;
  std::map<sched::LaunchId, std::uint32_t> slots;
  broker::Session session{1, protocol::Fd(), {}, 0};
  sched::Scheduler scheduler;
  std::uint64_t pushed = 0, launches = 0;

  explicit Tenant(std::string_view policy)
      : scheduler({.sms = 3,
                   .empty_sm = {.free_ctas = 4, .free_warps = 32, .free_registers = 65536, .free_shared_bytes = 65536},
                   .quantum = 1000},
                  *this, policy::MakePolicy(policy, policy::NoPairs()).value()) {
    scheduler.SetTenant(1, {.in_flight = 5});
    Require(session.Admit(1).ok());
  }
  std::uint64_t now() override { return time += 100; }
  void Grant(sched::LaunchId launch, std::uint64_t end) override {
    granted_last = end;
    if (const auto slot = slots.find(launch); slot != slots.end()) session.Grant(slot->second, end, time);
  }
  void OnMemory(broker::Session&, std::uint64_t bytes) override { memory = bytes; }
  void OnSubmit(sched::LaunchId launch, broker::Session&, std::uint32_t slot) override { slots[launch] = slot; }
  void OnEnd(sched::LaunchId launch) override { slots.erase(launch); }
  SegmentLayout& layout() { return session.segment().layout(); }

  /// Writes anywhere.
  void Scribble(Bytes& in) {
    const std::size_t at = in.Next<std::uint32_t>() % (sizeof(SegmentLayout) - sizeof(std::uint64_t));
    const auto value = in.Next<std::uint64_t>();
    std::memcpy(reinterpret_cast<std::uint8_t*>(&layout()) + at, &value, sizeof value);
  }
  /// A record that is nearly right, so that what comes behind the first checks is reached.
  void Push(Bytes& in) {
    RawRecord record;
    record.sequence = pushed;
    record.kind = in.Next<std::uint8_t>() % 5;
    record.slot = in.Next<std::uint8_t>() % 8;
    const auto what = in.Next<std::uint8_t>();
    record.value = in.Next<std::uint16_t>();
    record.flags = what & 1;
    record.stream = what >> 1 & 3;
    record.launch = launches + (what >> 3 & 3) - 1;
    if (record.kind == static_cast<std::uint32_t>(RecordKind::kLaunch)) {
      record.threads_per_cta = 1 + in.Next<std::uint8_t>() * 4u;
      record.launch = ++launches;
    }
    std::memcpy(static_cast<void*>(&layout().ring[pushed % protocol::kRingRecords]), &record, sizeof record);
    layout().pushed = ++pushed;
  }
  bool Take(std::uint32_t most) {
    const auto facts = [](const protocol::LaunchRecord& launch) {
      return Result<broker::LaunchFacts>(
          broker::LaunchFacts{.needs = {.warps = std::min(32u, (launch.threads_per_cta + 31) / 32)}});
    };
    return session.Take(most, scheduler, facts, *this).ok();
  }
};

}  // namespace
}  // namespace gridloom

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom;
  Bytes in(std::span(data, size));
  const auto names = policy::PolicyNames();
  Tenant tenant(names[in.Next<std::uint8_t>() % names.size()]);
  while (!in.empty()) {
    const auto step = in.Next<std::uint8_t>();
    if (step % 4 == 0) tenant.Scribble(in);
    else if (step % 4 == 1) tenant.scheduler.Pump();
    else tenant.Push(in);
    if (step >= 64 && !tenant.Take(step % 64)) break;
  }
  static_cast<void>(tenant.session.Overdue(~std::uint64_t{0}, {.slice = 1, .grant = 1}));
  static_cast<void>(tenant.session.RunningKernel());
  tenant.session.Abandon(tenant.scheduler, tenant);
  Require(tenant.scheduler.launches() == 0 && tenant.scheduler.in_flight(1) == 0 && tenant.scheduler.waiting(1) == 0);
  // Whoever comes after has the whole device.
  tenant.scheduler.SetPolicy(policy::MakePolicy("leftover").value());
  tenant.scheduler.SetTenant(2, {});
  tenant.scheduler.Submit({.tenant = 2,
                           .owner = 2,
                           .kernel = ~std::uint64_t{0},
                           .ctas = 12,
                           .needs = {.warps = 1},
                           .divisible = false,
                           .name = "after"});
  tenant.scheduler.Pump();
  Require(tenant.granted_last == 12);
  return 0;
}
