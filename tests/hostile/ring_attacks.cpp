// Attacks by what lies in shared memory: records, launches, what they claim to have run.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "scheduler/protocol/client.h"
#include "scheduler/protocol/wait.h"
#include "tests/hostile/attack.h"
#include "tests/hostile/raw_tenant.h"

namespace gridloom::hostile {
namespace {

using protocol::RawRecord;
using protocol::RecordKind;

void ScribbledRings(Target& target) {
  for (int i = 0; i < 150; ++i) {
    const auto tenant = RawTenant::Join(target.socket, target.tenant);
    if (!tenant) continue;
    auto* const words = reinterpret_cast<std::uint64_t*>(&tenant->layout());
    constexpr std::size_t kWords = sizeof(protocol::SegmentLayout) / sizeof *words;
    const std::size_t from = i % 2 == 0 ? 0 : target.Below(kWords),
                      count = i % 2 == 0 ? kWords : target.Below(kWords - from);
    for (std::size_t at = from; at < from + count; ++at) words[at] = target.random();
    tenant->Ring();
  }
}

/// Records of which one thing is not so.
void Lies(Target& target) {
  constexpr auto kProgress = RecordKind::kProgress, kEnd = RecordKind::kEnd, kMemory = RecordKind::kMemory;
  const auto changed = [](RawRecord record, auto change) {
    change(record);
    return record;
  };
  const RawRecord launch = LaunchRecord(0, 1, 100);
  struct Lie {
    const char* what;
    std::vector<RawRecord> records;
  };
  const Lie lies[] = {
      {"a replayed record", {launch, LaunchRecord(1, 2, 100)}},  // its sequence is made wrong below
      {"a launch that is announced twice", {launch, LaunchRecord(1, 1, 100)}},
      {"a launch that comes too early", {LaunchRecord(0, 2, 100)}},
      {"a slot that is taken", {launch, LaunchRecord(0, 2, 100)}},
      {"a slot that there is none of", {LaunchRecord(protocol::kSlots, 1, 100)}},
      {"more run than there is", {launch, RecordOf(kProgress, 0, 1, ~std::uint64_t{0})}},
      {"the end of more than there is", {launch, RecordOf(kEnd, 0, 1, 101)}},
      {"progress of no launch", {RecordOf(kProgress, 3, 1, 1)}},
      {"the end of no launch", {RecordOf(kEnd, 0, 7, 1)}},
      {"a record of no kind", {RecordOf(static_cast<RecordKind>(77), 0, 1, 1)}},
      {"a grid of nothing", {LaunchRecord(0, 1, 0)}},
      {"a grid of everything", {LaunchRecord(0, 1, ~std::uint64_t{0})}},
      {"no threads", {changed(launch, [](RawRecord& r) { r.threads_per_cta = 0; })}},
      {"a million threads", {changed(launch, [](RawRecord& r) { r.threads_per_cta = 1u << 20; })}},
      {"endless registers", {changed(launch, [](RawRecord& r) { r.registers_per_thread = ~0u; })}},
      {"endless shared memory", {changed(launch, [](RawRecord& r) { r.shared_bytes = ~0u; })}},
      {"an endless priority", {changed(launch, [](RawRecord& r) { r.priority = INT32_MIN; })}},
      {"unknown flags", {changed(launch, [](RawRecord& r) { r.flags = ~0u; })}},
      {"endless copies", {changed(launch, [](RawRecord& r) { r.copied_bytes = ~std::uint64_t{0}; })}},
      {"endless memory", {RecordOf(kMemory, 0, 0, ~std::uint64_t{0})}},
  };
  for (const Lie& lie : lies) {
    auto tenant = RawTenant::Join(target.socket, target.tenant);
    if (!tenant) continue;
    for (RawRecord record : lie.records) {
      if (&lie == &lies[0]) tenant->PushAsIs(record);  // all say that they are the ring's first
      else tenant->Push(record);
    }
    Require(tenant->Dropped(5), std::string("a session is still there after ") + lie.what);
  }
}

void ImpossibleCounts(Target& target) {
  for (const std::uint64_t pushed :
       {std::uint64_t{1} << 30, ~std::uint64_t{0}, std::uint64_t{protocol::kRingRecords} + 1}) {
    const auto tenant = RawTenant::Join(target.socket, target.tenant);
    if (!tenant) continue;
    tenant->layout().pushed = pushed;
    tenant->Ring();
    Require(tenant->Dropped(5),
            "a session is still there whose ring is said to hold " + std::to_string(pushed) + " records");
  }
  auto tenant = RawTenant::Join(target.socket, target.tenant);
  if (!tenant) return;
  tenant->Push(LaunchRecord(0, 1, 1));
  Require(Within(5, [&] { return tenant->layout().taken.load() == 1; }), "a record is not taken");
  tenant->layout().pushed = 0;
  tenant->Ring();
  Require(tenant->Dropped(5), "a session is still there whose count of records went back");
}

/// The broker's own words in the segment, and the doorbell, are the tenant's to change, too.
void BellStorm(Target& target) {
  auto tenant = RawTenant::Join(target.socket, target.tenant);
  if (!tenant) return;
  fcntl(tenant->doorbell(), F_SETFL, 0);  // a read of it would block now, whoever reads
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(target.seconds);
  std::uint64_t number = 0;
  while (std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 256; ++i) tenant->Ring();
    tenant->layout().broker_sleeps = static_cast<std::uint32_t>(target.random());
    tenant->layout().mailboxes[0].sleepers = ~0u;
    tenant->layout().mailboxes[0].granted = target.random();
    if (!tenant->Push(LaunchRecord(0, ++number, 1)) || !tenant->Push(RecordOf(RecordKind::kEnd, 0, number, 0))) break;
  }
}

/// Launches that end, by the million: nothing may be kept of them, while the session is there or when it has gone.
void LaunchesThatEnd(Target& target) {
  const bool alone = target.daemon != nullptr;
  const std::uint64_t before = alone ? target.daemon->usage().resident_kb : 0;
  auto tenant = RawTenant::Join(target.socket, target.tenant);
  if (!tenant) return;
  const std::uint64_t count = alone && SanitizerOf(DaemonPath()).empty() ? 1'500'000 : 50'000;
  for (std::uint64_t number = 1; number <= count; ++number) {
    const auto slot = static_cast<std::uint32_t>(number % protocol::kSlots);
    const bool pushed =
        tenant->Push(LaunchRecord(slot, number, 1)) && tenant->Push(RecordOf(RecordKind::kEnd, slot, number, 0));
    if (!pushed && !alone) return;  // on a machine that is busy a slice of its own may have taken too long
    Require(pushed, "the broker stopped taking records after " + std::to_string(number) + " launches");
  }
  if (!alone) return;
  Require(Within(10, [&] { return tenant->layout().taken == tenant->layout().pushed; }),
          "the broker does not take the last records");
  const std::uint64_t grown = target.daemon->usage().resident_kb - std::min(before, target.daemon->usage().resident_kb);
  Require(grown < 24u << 10 || !SanitizerOf(DaemonPath()).empty(),
          std::to_string(count) + " launches that have ended hold " + std::to_string(grown) + " KiB");
}

/// Fills the device, and says again and again that nothing further has run.
void EmptyProgress(Target& target) {
  auto hog = RawTenant::Join(target.socket, target.tenant);
  if (!hog) return;
  hog->Push(LaunchRecord(0, 1, std::uint64_t{1} << 40));
  if (!hog->AwaitGrant(0)) return;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(target.daemon != nullptr ? Patience(5) : 5);
  while (std::chrono::steady_clock::now() < until && !hog->Dropped(0)) {
    hog->Push(RecordOf(RecordKind::kProgress, 0, 1, 0));
    usleep(20'000);
  }
  Require(hog->Dropped(0), "a slice of 1 s at most was held for 5 s by records that report nothing");
}

/// As above, but a CTA is said to have run now and then.
void CrawlingProgress(Target& target) {
  auto hog = RawTenant::Join(target.socket, target.tenant);
  if (!hog) return;
  hog->Push(LaunchRecord(0, 1, std::uint64_t{1} << 40));
  if (!hog->AwaitGrant(0)) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(Patience(12));
  for (std::uint64_t done = 1; std::chrono::steady_clock::now() < until && !hog->Dropped(0); ++done) {
    hog->Push(RecordOf(RecordKind::kProgress, 0, 1, done));
    usleep(400'000);
  }
  Require(hog->Dropped(0), "a slice of 1 s at most was held for 12 s by one CTA every 0.4 s");
}

/// Device memory that is refused, as fast as the ring takes the question: each refusal is a line for the operator.
void RefusedMemory(Target& target) {
  auto tenant = RawTenant::Join(target.socket, target.tenant);
  if (!tenant) return;
  const std::uint64_t before = target.daemon != nullptr ? target.daemon->StateFileBytes("audit.jsonl") : 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(target.seconds);
  while (std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 64; ++i) {
      if (!tenant->Push(RecordOf(RecordKind::kMemory, 0, 0, protocol::kMostBytes - target.Below(4096)))) return;
    }
  }
  if (target.daemon == nullptr) return;
  const std::uint64_t lines = target.daemon->StateFileBytes("audit.jsonl") - before;
  Require(lines < 1u << 20, "the audit log grew by " + std::to_string(lines) + " bytes by records that are refused");
}

/// Launches and memory at full speed, in all slots, of all streams.
void EndlessRecords(Target& target) {
  auto tenant = RawTenant::Join(target.socket, target.tenant);
  if (!tenant) return;
  std::vector<std::uint64_t> in_slot(protocol::kSlots);
  std::uint64_t number = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(target.seconds);
  while (std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 100; ++i) {
      const auto slot = static_cast<std::uint32_t>(target.Below(protocol::kSlots));
      RawRecord record = RecordOf(RecordKind::kEnd, slot, in_slot[slot], 0);
      if (in_slot[slot] == 0) {
        record = LaunchRecord(slot, ++number, 1 + target.Below(100), target.random());
        record.stream = target.Below(8);
        record.flags = static_cast<std::uint32_t>(target.Below(2));
        in_slot[slot] = number;
      } else {
        in_slot[slot] = 0;
      }
      if (!tenant->Push(record)) return;
    }
  }
}

// ---- one tenant's word about another's kernels

/// A launch of a kernel whose CTAs are known to be short: how many are granted at once.
std::uint64_t FirstGrant(protocol::Client& client, std::uint64_t kernel, std::uint64_t ctas) {
  protocol::Client::Ticket ticket;
  std::uint64_t granted = 0;
  const bool good =
      client.Announce({.kernel = kernel, .ctas = ctas, .threads_per_cta = 32, .divisible = true, .name = "known"},
                      &ticket) == protocol::Verdict::kGranted &&
      client.Wait(ticket, 0, &granted) == protocol::Verdict::kGranted;
  Require(good, "an honest launch was lost");
  client.End(ticket, granted, false);
  return granted;
}

std::unique_ptr<protocol::Client> Neighbour(const Target& target) {
  auto client = protocol::Client::Connect(
      {.socket = target.socket, .tenant = "neighbour", .token = "", .program = "", .reconnect = false, .log = {}});
  Require(client.ok(), "the neighbour is not admitted");
  return std::move(client).value();
}

constexpr std::uint64_t kKernel = 0x1234567, kCtas = 4000;

/// The neighbour's kernel, one slice of a CTA for each multiprocessor and then more at once, has told how short it is.
std::uint64_t Known(protocol::Client& neighbour) {
  for (int i = 0; i < 40; ++i) FirstGrant(neighbour, kKernel, kCtas);
  return FirstGrant(neighbour, kKernel, kCtas);
}

/// A kernel number that a product with an odd constant and a sum make the same key of as the neighbour's; said to be
/// slow.
void KeyInversion(Target& target) {
  const auto neighbour = Neighbour(target);
  const std::uint64_t before = Known(*neighbour);
  std::uint64_t inverse = 1;
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ULL;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kFactor * inverse;  // Newton, modulo 2^64
  auto hostile = RawTenant::Join(target.socket, target.tenant);
  Require(hostile.has_value(), "not admitted");
  std::uint64_t number = 0;
  for (std::uint64_t apart = 0; apart < 8; ++apart) {  // the tenants' numbers are a few apart
    for (const std::uint64_t by : {apart, std::uint64_t{0} - apart}) {
      hostile->Push(LaunchRecord(0, ++number, 1, kKernel + by * inverse));
      Require(hostile->AwaitGrant(0), "a launch is not granted");
      usleep(100'000);
      hostile->Push(RecordOf(RecordKind::kEnd, 0, number, 1));
      for (int i = 0; i < 100'000 && hostile->layout().taken != hostile->layout().pushed; ++i) usleep(100);
    }
  }
  const std::uint64_t after = FirstGrant(*neighbour, kKernel, kCtas);
  Require(after * 2 >= before, "a slice of the neighbour's kernel has " + std::to_string(after) +
                                   " CTAs where it had " + std::to_string(before) + " before");
}

/// More kernels than anybody has: what is known of the neighbour's is still known.
void KernelFlood(Target& target) {
  const auto neighbour = Neighbour(target);
  const std::uint64_t before = Known(*neighbour);
  auto hostile = RawTenant::Join(target.socket, target.tenant);
  Require(hostile.has_value(), "not admitted");
  const std::uint64_t deadline = protocol::NowNs() + 60'000'000'000;
  for (std::uint64_t number = 1; number <= 6000; ++number) {
    hostile->Push(LaunchRecord(0, number, 1, target.random()));
    // The number first: until it is there, the grant is the last launch's.
    while (hostile->layout().mailboxes[0].launch != number || hostile->granted() == 0) {
      Require(protocol::NowNs() < deadline, "it was not granted in a minute");
      std::this_thread::yield();
    }
    hostile->Push(RecordOf(RecordKind::kEnd, 0, number, 1));
  }
  for (int i = 0; i < 100'000 && hostile->layout().taken != hostile->layout().pushed; ++i) usleep(100);
  const std::uint64_t after = FirstGrant(*neighbour, kKernel, kCtas);
  Require(after * 2 >= before, "a slice of the neighbour's kernel has " + std::to_string(after) +
                                   " CTAs where it had " + std::to_string(before) + " before");
}

constexpr Attack kAttacks[] = {
    {.name = "scribbled-rings",
     .what = "sessions whose shared memory is overwritten",
     .run = ScribbledRings,
     .soak = true},
    {.name = "lies", .what = "records of which one thing is not so", .run = Lies, .soak = true},
    {.name = "impossible-counts",
     .what = "rings that are said to hold what they cannot",
     .run = ImpossibleCounts,
     .soak = true},
    {.name = "bell-storm",
     .what = "a doorbell that never stops, and the broker's own words overwritten",
     .run = BellStorm,
     .soak = true},
    {.name = "launches-that-end", .what = "millions of launches that end", .run = LaunchesThatEnd, .soak = true},
    {.name = "endless-records",
     .what = "launches and ends in all slots, as fast as the ring takes them",
     .run = EndlessRecords,
     .soak = true},
    {.name = "empty-progress",
     .what = "a slice that is held by records that report nothing",
     .run = EmptyProgress,
     .setup = {.config = "slice_timeout_s: 1\n"},
     .soak = true},
    {.name = "crawling-progress",
     .what = "a slice that is held by a CTA now and then",
     .run = CrawlingProgress,
     .setup = {.config = "slice_timeout_s: 1\n"},
     .honest_seconds = 15},
    {.name = "refused-memory",
     .what = "refusals that are logged, as fast as they can be asked for",
     .run = RefusedMemory,
     .soak = true},
    {.name = "key-inversion", .what = "a kernel that passes for another tenant's, and is slow", .run = KeyInversion},
    {.name = "kernel-flood", .what = "thousands of kernels, so that others' are forgotten", .run = KernelFlood},
};

}  // namespace

std::span<const Attack> RingAttacks() { return kAttacks; }

}  // namespace gridloom::hostile
