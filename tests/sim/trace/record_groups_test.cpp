// Groups of records (sim/exec/contract/records.h) against the long form of the same: a block alone, and each access
// with 32 addresses.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "sim/exec/simd.h"
#include "sim/trace/cta_stream.h"

using namespace gridloom;
using exec::RecordHeader, exec::RecordKind, exec::RecordSlot;

namespace {

constexpr unsigned kAccesses = 6, kSlots = 5;
constexpr std::int64_t kUnit = 12;
constexpr std::uint64_t kGlobal = 0x10000;

const char* const kPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<3>;
.reg .b32 %r<6>;
.shared .align 4 .b8 s[128];
ld.param.u64 %rd1, [p];
ld.global.u32 %r1, [%rd1];
ld.global.u32 %r2, [%rd1+16];
ld.shared.u32 %r3, [s];
ld.global.u32 %r4, [%rd1+4096];
ld.global.u32 %r5, [%rd1+64];
st.global.u32 [%rd1+8192], %r5;
ret;
}
)";

trace::CodeTable MakeTable() {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(kPtx, sink);
  REQUIRE(!sink.has_errors());
  return trace::BuildCodeTable(*module, *module->FindFunction("k"));
}

/// A kernel's constants: the group of the whole block, and the one of each access.
struct Groups {
  explicit Groups(const trace::CodeTable& table) {
    std::vector<std::uint64_t> headers;
    for (std::uint32_t i = 0; i < table.entries.size(); ++i) {
      if (table.entries[i].block != trace::CodeTable::kNoBlock)
        block = RecordHeader{.kind = RecordKind::kBlock, .instruction = i}.Pack();
      if (table.entries[i].count == 0) continue;
      const trace::Instruction& instruction = table.code.instructions[table.entries[i].first];
      if (!instruction.has_access()) continue;
      const bool shared = instruction.space == trace::Space::kShared, store = (instruction.flags & trace::kStore) != 0;
      headers.push_back(RecordHeader{.kind = RecordKind::kLanes,
                                     .access = store ? exec::AccessKind::kWrite : exec::AccessKind::kRead,
                                     .space = shared ? exec::Space::kShared : exec::Space::kGlobal,
                                     .bytes = 4,
                                     .instruction = i}
                            .Pack());
    }
    REQUIRE(headers.size() == kAccesses);
    whole.group = {.block = block, .access_count = kAccesses, .slot_count = kSlots};
    constexpr std::array<std::uint64_t, kAccesses> kSlotOf = {0, 0, 1, 2, 3, 4}, kAdd = {0, 16, 0, 0, 64, 0};
    for (unsigned i = 0; i < kAccesses; ++i) {
      whole.accesses[i] = {.header = headers[i], .slot = kSlotOf[i], .add = kAdd[i]};
      single[i] = {.group = {.access_count = 1, .slot_count = 1},
                   .access = {.header = headers[i]},
                   .slot = {.form = RecordSlot::kFound}};
    }
    whole.slots = {RecordSlot{.form = RecordSlot::kStride, .base = 8, .lanes = 4},
                   RecordSlot{.form = RecordSlot::kFixed, .base = 32, .lanes = 4},
                   RecordSlot{.form = RecordSlot::kPattern, .lanes = 0},
                   RecordSlot{.form = RecordSlot::kStride | RecordSlot::kMayDiffer, .base = 4, .lanes = 8},
                   RecordSlot{.form = RecordSlot::kFound, .lanes = kUnit}};
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      whole.pattern[static_cast<std::size_t>(lane)] = lane % 16 * 4 + lane / 16 * 1000;
      found[static_cast<std::size_t>(lane)] = (lane - 5) * (lane - 5) * kUnit;
    }
  }

  std::uint64_t block = 0;
  struct {
    exec::RecordGroup group;
    std::array<exec::RecordAccess, kAccesses> accesses;
    std::array<RecordSlot, kSlots> slots;
    std::array<std::int64_t, 32> pattern;
  } whole;
  struct {
    exec::RecordGroup group;
    exec::RecordAccess access;
    RecordSlot slot;
  } single[kAccesses];
  std::array<std::int64_t, 32> found;
};

std::uint64_t Word(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
constexpr std::uint64_t kWarpEnd = RecordHeader{.kind = RecordKind::kWarpEnd}.Pack();

/// Lanes of the fifth access where its index wraps.
std::uint64_t Wrapped(unsigned lane, std::uint64_t base) { return base + lane * 8 % 96; }

/// How the last slot is told: by a pattern, 32 addresses, distances of the active lanes or of all.
enum class Told { kPattern, kAddresses, kNear, kAllNear };

void PutNear(const Groups& groups, std::uint32_t mask, std::uint32_t told, std::uint64_t base,
             std::vector<std::uint64_t>& words) {
  std::int64_t lowest = INT64_MAX;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) lowest = std::min(lowest, groups.found[lane]);
  }
  std::vector<std::uint32_t> distances;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((told >> lane & 1) == 0) continue;
    const bool active = (mask >> lane & 1) != 0;
    distances.push_back(active ? static_cast<std::uint32_t>((groups.found[lane] - lowest) / kUnit) : 0);
  }
  words.insert(words.end(), {RecordSlot::kNear | std::uint64_t{distances.size()} << exec::NearLanes::kCountShift | told,
                             base + static_cast<std::uint64_t>(lowest)});
  if (distances.size() % 2 != 0) distances.push_back(0);
  for (std::size_t i = 0; i < distances.size(); i += 2)
    words.push_back(distances[i] | std::uint64_t{distances[i + 1]} << 32);
}

/// One visit of the block. `wraps`: the fourth slot lies elsewhere.
void PutGroup(const Groups& groups, std::uint32_t mask, std::uint64_t base, bool wraps, Told told,
              std::vector<std::uint64_t>& words) {
  if (mask != ~0u) words.push_back(RecordHeader{.mask = mask, .kind = RecordKind::kMaskedGroup}.Pack());
  words.insert(words.end(), {Word(&groups.whole), base, base + 4096, wraps ? RecordSlot::kElsewhere : base});
  const auto put_lanes = [&](auto address) {
    for (unsigned lane = 0; lane < 32; ++lane) words.push_back(mask >> lane & 1 ? address(lane) : 0);
  };
  if (wraps) put_lanes([&](unsigned lane) { return Wrapped(lane, base); });
  if (told == Told::kPattern) {
    words.insert(words.end(), {Word(groups.found.data()), base + 8192});
    return;
  }
  if (told != Told::kAddresses) return PutNear(groups, mask, told == Told::kNear ? mask : ~0u, base + 8192, words);
  words.push_back(0);
  put_lanes([&](unsigned lane) { return base + 8192 + static_cast<std::uint64_t>(groups.found[lane]); });
}

void PutLong(const Groups& groups, std::uint32_t mask, std::uint64_t base, bool wraps,
             std::vector<std::uint64_t>& words) {
  words.push_back(groups.block | mask);
  for (unsigned i = 0; i < kAccesses; ++i) {
    words.push_back(RecordHeader{.mask = mask, .kind = RecordKind::kMaskedGroup}.Pack());
    words.push_back(Word(&groups.single[i]));
    words.push_back(0);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const std::uint64_t address[kAccesses] = {base + 8 + 4 * lane,
                                                base + 24 + 4 * lane,
                                                32 + 4 * lane,
                                                base + 4096 + static_cast<std::uint64_t>(groups.whole.pattern[lane]),
                                                64 + (wraps ? Wrapped(lane, base) : base + 4 + 8 * lane),
                                                base + 8192 + static_cast<std::uint64_t>(groups.found[lane])};
      words.push_back(mask >> lane & 1 ? address[i] : 0);
    }
  }
}

void CheckEqual(const trace::CtaTrace& a, const trace::CtaTrace& b) {
  REQUIRE(a.visits.size() == b.visits.size());
  REQUIRE(a.accesses.size() == b.accesses.size());
  for (std::size_t i = 0; i < a.visits.size(); ++i)
    CHECK((a.visits[i].block == b.visits[i].block && a.visits[i].mask == b.visits[i].mask));
  for (std::size_t i = 0; i < a.accesses.size(); ++i) {
    INFO("access " << i);
    REQUIRE(a.accesses[i].mask == b.accesses[i].mask);
    std::array<std::uint64_t, 32> left{}, right{};
    trace::LaneAddresses(a, a.accesses[i], left);
    trace::LaneAddresses(b, b.accesses[i], right);
    for (unsigned lane = 0; lane < 32; ++lane)
      CHECK((a.accesses[i].mask >> lane & 1) * left[lane] == (a.accesses[i].mask >> lane & 1) * right[lane]);
  }
}

struct Visit {
  std::uint32_t mask;
  bool wraps;
  Told told;
};
const std::vector<Visit> kVisits = {
    {~0u, false, Told::kPattern},         {~0u, true, Told::kAddresses},       {0xfff0u, false, Told::kAddresses},
    {0x80000001u, true, Told::kPattern},  {~0u, false, Told::kNear},           {0x00f0f06cu, false, Told::kNear},
    {0x00f0f06cu, false, Told::kAllNear}, {0x00100000u, false, Told::kNear},   {0x00100004u, false, Told::kNear},
    {0x00000038u, true, Told::kNear},     {0x00000038u, true, Told::kAllNear}, {0x70000000u, false, Told::kAddresses}};

}  // namespace

TEST_CASE("RecordGroup_DecodesLikeTheLongForm") {
  const trace::CodeTable table = MakeTable();
  const Groups groups(table);
  std::vector<std::uint64_t> with_groups, in_full;
  for (const Visit& visit : kVisits) {
    PutGroup(groups, visit.mask, kGlobal, visit.wraps, visit.told, with_groups);
    PutLong(groups, visit.mask, kGlobal, visit.wraps, in_full);
  }
  with_groups.push_back(kWarpEnd);
  in_full.push_back(kWarpEnd);
  for (const bool with_sites : {false, true}) {
    trace::RecordDecoder a(table), b(table);
    trace::RecordSites sites, other;
    const auto left = a.Decode({}, {with_groups}, with_sites ? &sites : nullptr);
    const auto right = b.Decode({}, {in_full}, with_sites ? &other : nullptr);
    CHECK((a.dropped() == 0 && b.dropped() == 0));
    CHECK(left->accesses.size() == kAccesses * kVisits.size());
    CheckEqual(*left, *right);
    if (!with_sites) continue;
    // The first two accesses share a word and so move together; shared memory does not move.
    REQUIRE(sites.usable);
    CHECK((sites.of[0] == sites.of[1] && sites.of[0] != trace::RecordSites::kFixed &&
           sites.of[2] == trace::RecordSites::kFixed));
    CHECK((sites.of[3] != sites.of[0] && sites.of[4] != sites.of[0] && sites.of[5] != sites.of[4]));
  }
  // Patterns of lanes are soon given up: those of later CTAs are copied.
  trace::RecordDecoder short_form(table), long_form(table);
  for (unsigned cta = 0; cta < 12; ++cta) {
    INFO("CTA " << cta);
    CheckEqual(*short_form.Decode({}, {with_groups}, nullptr), *long_form.Decode({}, {in_full}, nullptr));
  }
  exec::RecordReader reader(with_groups);
  std::size_t blocks = 0, accesses = 0;
  while (reader.Next()) {
    blocks += reader.header().kind == RecordKind::kBlock;
    accesses += reader.header().kind != RecordKind::kBlock && reader.header().kind != RecordKind::kWarpEnd;
  }
  CHECK((blocks == kVisits.size() && accesses == kAccesses * kVisits.size() && reader.next() == with_groups.size()));
}

TEST_CASE("RecordDecoder_BlocksInARow_AreVisitsWithTheirAccessesOff") {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k()
{
.reg .b32 %r<5>;
.shared .align 4 .b8 s[128];
mov.u32 %r1, 1;
A: add.s32 %r2, %r1, 1;
add.s32 %r2, %r2, 1;
B: ld.shared.u32 %r3, [s];
C: add.s32 %r4, %r2, 1;
ret;
}
)",
                                       sink);
  REQUIRE(!sink.has_errors());
  const trace::CodeTable table = trace::BuildCodeTable(*module, *module->FindFunction("k"));
  // Also numbers that begin no block or are none, and no lanes; mostly without the block that has an access, so that
  // many come in a row.
  std::mt19937 random(1);
  std::vector<std::uint64_t> words;
  std::vector<trace::BlockVisit> visits;
  std::size_t accesses = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    const auto instruction = static_cast<std::uint32_t>(random() % (table.entries.size() + 1));
    const std::uint32_t mask = random() % 64 == 0 ? 0 : static_cast<std::uint32_t>(random()) | 1;
    const std::uint32_t block =
        instruction < table.entries.size() ? table.entries[instruction].block : trace::CodeTable::kNoBlock;
    const bool known = block != trace::CodeTable::kNoBlock;
    const bool has_access = known && table.code.instructions[table.code.blocks[block].first].has_access();
    if ((!known || has_access) && random() % 64 != 0) continue;
    words.push_back(RecordHeader{.mask = mask, .kind = RecordKind::kBlock, .instruction = instruction}.Pack());
    if (!known || mask == 0) continue;
    visits.push_back({block, mask});
    accesses += has_access ? 1 : 0;
  }
  words.push_back(kWarpEnd);
  REQUIRE((visits.size() > 500 && accesses > 5));
  for (const exec::SimdLevel level : {exec::SimdLevel::kBaseline, exec::SimdLevel::kAvx2, exec::SimdLevel::kAvx512}) {
    exec::LimitSimd(level);
    const auto trace = trace::RecordDecoder(table).Decode({}, {words}, nullptr);
    REQUIRE((trace->visits.size() == visits.size() && trace->accesses.size() == accesses && trace->warps.size() == 1));
    for (std::size_t i = 0; i < visits.size(); ++i)
      REQUIRE((trace->visits[i].block == visits[i].block && trace->visits[i].mask == visits[i].mask));
    for (const trace::MemoryAccess& access : trace->accesses) CHECK(access.mask == 0);
  }
}

TEST_CASE("RecordGroup_CtasThatDifferByAShift_ShareATrace") {
  const trace::CodeTable table = MakeTable();
  const Groups groups(table);
  std::vector<trace::LoadedCta> ctas;
  trace::CtaStream stream(table, 1);
  stream.BeginLaunch([&](std::span<trace::CtaStream::Captured> captured) {
    for (const trace::CtaStream::Captured& one : captured)
      one.run.ForEach([&](std::uint64_t, const trace::LoadedCta& cta) { ctas.push_back(cta); });
  });
  for (std::uint64_t cta = 0; cta < 6; ++cta) {
    std::vector<std::uint64_t> words, in_full;
    for (const Visit& visit : kVisits) {
      PutGroup(groups, visit.mask, kGlobal + cta * 640, visit.wraps, visit.told, words);
      PutLong(groups, visit.mask, kGlobal + cta * 640, visit.wraps, in_full);
    }
    words.push_back(kWarpEnd);
    in_full.push_back(kWarpEnd);
    stream.OnRecords({.cta_index = cta}, words, 1);
    REQUIRE(ctas.size() == cta + 1);
    CHECK(ctas[cta].shifts.empty() == (cta == 0));
    trace::RecordDecoder decoder(table);
    CheckEqual(trace::Flatten(table.code, ctas[cta]), *decoder.Decode({}, {in_full}, nullptr));
  }
}

TEST_CASE("CtaStream_SeveralCtasAtOnce_AreThoseThatCameOneByOne") {
  const trace::CodeTable table = MakeTable();
  const Groups groups(table);
  struct Cta {
    std::uint64_t base;
    std::uint32_t mask;
  };
  // Steps, and a change of the step; CTAs that are like none, so many that they are not kept, among them two in a row
  // at the step of the first ones.
  std::vector<Cta> ctas;
  constexpr std::uint32_t kMost = 0xfffffff0u;
  for (std::uint64_t i = 0; i < 9; ++i) ctas.push_back({kGlobal + i * 640, kMost});
  for (std::uint64_t i = 0; i < 4; ++i) ctas.push_back({kGlobal + i * 128, kMost});
  for (std::uint32_t i = 0; i < 7; ++i) ctas.push_back({kGlobal + i * 4096, 0x10101u + i * 0x1000u});
  for (std::uint64_t i = 0; i < 3; ++i) ctas.push_back({kGlobal + 100'000 + i * 128, 0xffffu});
  for (std::uint64_t i = 0; i < 5; ++i) ctas.push_back({kGlobal + 200'000 + i * 640, ~0u});
  for (std::uint64_t i = 0; i < 9; ++i) ctas.push_back({kGlobal + 300'000 + i * 640, kMost});
  std::vector<std::vector<std::uint64_t>> words(ctas.size()), in_full(ctas.size());
  for (std::size_t i = 0; i < ctas.size(); ++i) {
    // A pattern's address is of one launch; lanes are of none.
    PutGroup(groups, ctas[i].mask, ctas[i].base, false, ctas[i].mask == kMost ? Told::kNear : Told::kAddresses,
             words[i]);
    PutLong(groups, ctas[i].mask, ctas[i].base, false, in_full[i]);
    words[i].push_back(kWarpEnd);
    in_full[i].push_back(kWarpEnd);
  }
  trace::CtaStream stream(table, 1);
  trace::RecordDecoder decoder(table);
  for (const std::size_t at_once : {1, 2, 5, 32, 3}) {  // launches, each with what the ones before have left
    std::vector<trace::LoadedCta> got;
    std::uint64_t longest = 0;
    stream.BeginLaunch([&](std::span<trace::CtaStream::Captured> captured) {
      for (const trace::CtaStream::Captured& one : captured) {
        longest = std::max(longest, one.run.count);
        one.run.ForEach([&](std::uint64_t index, const trace::LoadedCta& cta) {
          CHECK(index == got.size());
          got.push_back(cta);
        });
      }
    });
    exec::RecordPlace place;
    std::vector<exec::RecordedCta> batch;
    for (std::size_t i = 0; i < ctas.size(); ++i) {
      batch.push_back({.cta_index = i, .words = words[i]});
      if (batch.size() < at_once && i + 1 < ctas.size()) continue;
      stream.OnCtas(place, batch, 1);
      batch.clear();
    }
    stream.EndLaunch();
    REQUIRE(got.size() == ctas.size());
    CHECK((longest > std::min<std::size_t>(at_once, 9) / 2 && longest <= at_once));  // those at one step come as one
    for (std::size_t i = 0; i < ctas.size(); ++i) {
      INFO("CTA " << i << ", " << at_once << " at once");
      CheckEqual(trace::Flatten(table.code, got[i]), *decoder.Decode({}, {in_full[i]}, nullptr));
    }
  }
}
