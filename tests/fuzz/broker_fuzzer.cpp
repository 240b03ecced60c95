// The broker's readers on any bytes: a socket message, then records in a ring, as a hostile tenant would leave them.
// Whatever is accepted must leave the scheduler consistent: everything ends, and a tenant that comes after gets the
// whole device.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>

#include "scheduler/core/scheduler.h"
#include "scheduler/daemon/session.h"
#include "scheduler/policy/builtin.h"
#include "scheduler/protocol/message.h"
#include "tests/scheduler/policy/no_pairs.h"

namespace gridloom {
namespace {

struct Silent final : sched::Engine {
  std::uint64_t time = 0;
  std::uint64_t last = 0;
  std::uint64_t now() override { return time += 100; }
  void Grant(sched::LaunchId, std::uint64_t end) override { last = end; }
};

policy::SmView Sm() { return {.free_ctas = 4, .free_warps = 32, .free_registers = 65536, .free_shared_bytes = 65536}; }

Result<broker::LaunchFacts> Facts(const protocol::LaunchRecord& launch) {
  return broker::LaunchFacts{.needs = {.warps = std::min(32u, (launch.threads_per_cta + 31) / 32)}};
}

/// Knows which launches the session has said and not ended.
class Host final : public broker::SessionHost {
 public:
  void OnMemory(broker::Session&, std::uint64_t) override {}
  void OnSubmit(sched::LaunchId launch, broker::Session&, std::uint32_t) override { launches.insert(launch); }
  void OnEnd(sched::LaunchId launch) override { launches.erase(launch); }
  std::set<sched::LaunchId> launches;
};

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace
}  // namespace gridloom

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom;
  static_cast<void>(protocol::ParseMessage(std::as_bytes(std::span(data, size))).ok());
  if (size < 2) return 0;
  Silent engine;
  const auto names = policy::PolicyNames();
  sched::Scheduler scheduler({.sms = 3, .empty_sm = Sm(), .quantum = data[0] % 2 * 1000u}, engine,
                             policy::MakePolicy(names[data[1] % names.size()], policy::NoPairs()).value());
  scheduler.SetTenant(1, {.in_flight = 5});
  broker::Session session(1, protocol::Fd(), {}, 0);
  if (!session.Admit(1).ok()) return 0;
  protocol::SegmentLayout& layout = session.segment().layout();
  Host host;
  // Each piece of 128 bytes is a record; its sequence is mended half of the time, so that others get past the first
  // check.
  std::uint64_t pushed = 0;
  for (std::size_t at = 2; at < size; at += sizeof(protocol::RawRecord)) {
    protocol::RawRecord record;
    std::memcpy(static_cast<void*>(&record), data + at, std::min(sizeof record, size - at));
    if (data[at] % 2 == 0) record.sequence = pushed;
    std::memcpy(static_cast<void*>(&layout.ring[pushed % protocol::kRingRecords]), &record, sizeof record);
    layout.pushed = ++pushed;
    if (!session.Take(64, scheduler, Facts, host).ok()) break;
    scheduler.Pump();
  }
  Require(host.launches.size() == scheduler.launches());
  session.Abandon(scheduler, host);
  Require(host.launches.empty());
  Require(scheduler.launches() == 0 && scheduler.in_flight(1) == 0 && scheduler.waiting(1) == 0);
  scheduler.SetPolicy(policy::MakePolicy("leftover").value());
  scheduler.SetTenant(2, {});
  scheduler.Submit({.tenant = 2,
                    .owner = 2,
                    .kernel = ~std::uint64_t{0},
                    .ctas = 12,
                    .needs = {.warps = 1},
                    .divisible = false,
                    .name = "after"});
  scheduler.Pump();
  Require(engine.last == 12);
  return 0;
}
