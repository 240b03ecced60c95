#include "sim/trace/kernel_trace.h"

#include <catch2/catch.hpp>

namespace gridloom::trace {
namespace {

/// One block: a load with a scattered address, then an add.
struct Sample {
  KernelCode code;
  LaunchShape shape{.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 8, .shared_bytes = 0};
  CtaTrace cta;

  Sample() {
    code.name = "k";
    code.register_count = 2;
    code.operands = {1, 2, 2, 1};
    code.instructions.push_back(
        {.op = OpClass::kMemory, .space = Space::kGlobal, .width = 4, .destinations = 1, .sources = 1, .operands = 0});
    code.instructions.push_back({.op = OpClass::kInt, .destinations = 1, .sources = 1, .operands = 2});
    code.blocks.push_back({0, 2});
    cta.warps.push_back({0, 1, 0, 1});
    cta.visits.push_back({0, 0xffffffff});
    cta.lanes = {7};
    const std::uint64_t begin = AppendLanes(std::array<std::uint64_t, 2>{200, 100}, cta.lanes);
    cta.accesses.push_back({.base = begin, .stride = MemoryAccess::kScattered, .mask = 0x80000001});
  }
  /// Two executions of the block, each with an event at its second instruction.
  void AddEvents() {
    cta.visits.push_back({0, 0xff});
    cta.accesses.push_back({.base = 64, .stride = 4, .mask = 0xff});
    cta.warps[0] = {0, 2, 0, 2};
    for (const std::uint32_t visit : {0u, 1u})
      cta.events.push_back(
          {.kind = EventKind::kReleaseRange, .flags = kRangeRead, .visit = visit, .instruction = 1, .lanes = 1});
  }
  std::string error() const {
    const Status of_code = ValidateCode(code);
    if (!of_code.ok()) return of_code.error().message;
    const Status of_cta = ValidateCta(code, shape, cta);
    return of_cta.ok() ? "" : of_cta.error().message;
  }
};

TEST_CASE("Validate_ConsistentTables_AreAccepted") {
  const Sample sample;
  CHECK(sample.error().empty());
  CHECK(InstructionCount(sample.code, sample.cta) == 2);
}

TEST_CASE("Validate_EachBrokenReference_IsNamed") {
  const auto broken = [](auto change) {
    Sample sample;
    change(sample);
    return sample.error();
  };
  CHECK(broken([](Sample& s) { s.code.operands.pop_back(); }) ==
        "kernel k, instruction 1: operands end beyond the operand table");
  CHECK(broken([](Sample& s) { s.code.operands[0] = 9; }) ==
        "kernel k, instruction 0: register 9 beyond register_count");
  CHECK(broken([](Sample& s) { s.code.instructions[0].width = 3; }) ==
        "kernel k, instruction 0: access width is not 1, 2, 4, 8 or 16");
  CHECK(broken([](Sample& s) { s.code.instructions[0].space = Space::kNone; }).find("without a space") !=
        std::string::npos);
  CHECK(broken([](Sample& s) { s.code.blocks[0].count = 3; }) == "kernel k, block 0: instructions beyond the table");
  CHECK(broken([](Sample& s) { s.cta.visits[0].block = 1; }) == "kernel k, warp 0: block 1 does not exist");
  CHECK(broken([](Sample& s) { s.cta.visits[0].mask = 0; }) == "kernel k, warp 0: block visited by no lane");
  CHECK(broken([](Sample& s) { s.cta.warps[0].visit_count = 2; }) == "kernel k, warp 0: path beyond the table");
  CHECK(broken([](Sample& s) { s.cta.warps[0].access_count = 0; }) ==
        "kernel k, warp 0: 0 memory accesses recorded where the path executes 1");
  CHECK(broken([](Sample& s) { s.cta.lanes.pop_back(); }) == "kernel k, warp 0: lane addresses beyond the table");
  CHECK(broken([](Sample& s) { s.shape.threads_per_cta = 33; }) == "kernel k: 1 warps in a CTA of 2");
}

TEST_CASE("Validate_EventsAtInstructionsOfThePath_AreAccepted") {
  Sample sample;
  sample.AddEvents();
  CHECK(sample.error().empty());
  CHECK(EventsOf(sample.cta, 0).size() == 2);
  CHECK(EventsOf(sample.cta, 1).empty());
}

TEST_CASE("Validate_EachBrokenEvent_IsNamed") {
  const auto broken = [](auto change) {
    Sample sample;
    sample.AddEvents();
    change(sample.cta.events[1]);
    return sample.error();
  };
  CHECK(broken([](CtaEvent& e) { e.kind = static_cast<EventKind>(kEventKindCount); }) ==
        "kernel k, event 1: unknown kind");
  CHECK(broken([](CtaEvent& e) { e.warp = 1; }) == "kernel k, event 1: warp 1 does not exist");
  CHECK(broken([](CtaEvent& e) { e.visit = 2; }) == "kernel k, event 1: beyond the path of its warp");
  CHECK(broken([](CtaEvent& e) { e.instruction = 2; }) == "kernel k, event 1: instruction outside the block");
  CHECK(broken([](CtaEvent& e) { e.lanes = 0; }) == "kernel k, event 1: lanes that are not active");
  CHECK(broken([](CtaEvent& e) { e.lanes = 0x101; }) == "kernel k, event 1: lanes that are not active");
  CHECK(broken([](CtaEvent& e) { e.visit = 0, e.instruction = 0; }) == "kernel k, event 1: not in order");
  const auto with = [&](std::array<std::uint64_t, 4> data) { return broken([&](CtaEvent& e) { e.data = data; }); };
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  const std::string beyond = "kernel k, event 1: a range beyond the last address";
  CHECK(with({kLast - 10, 10, 0, 1}).empty());
  CHECK(with({kLast - 10, 11, 0, 1}) == beyond);
  CHECK(with({0, 10, kLast - 10, 2}).empty());
  CHECK(with({0, 11, kLast - 10, 2}) == beyond);
  CHECK(with({0, 1, std::uint64_t{1} << 33, std::uint64_t{1} << 31 | 1}) == beyond);
  CHECK(with({0, kLast, kLast, kLast}) == beyond);
}

TEST_CASE("LaneAddresses_Scattered_GivesTheLanesOfTheMask") {
  const Sample sample;
  std::array<std::uint64_t, kWarpSize> addresses{};
  LaneAddresses(sample.cta, sample.cta.accesses[0], addresses);
  CHECK(addresses[0] == 200);
  CHECK(addresses[31] == 100);
}

TEST_CASE("AppendLanes_FarOnes_TakeTwoWordsEach") {
  CtaTrace cta;
  const std::array<std::uint64_t, 3> near = {4096 + 0xffffffffu, 4096, 5000},
                                     far = {8192, 8191 + (std::uint64_t{1} << 33), 8000};
  const std::uint32_t mask = 1u << 3 | 1u << 4 | 1u << 31;
  for (const auto& lanes : {near, far})
    cta.accesses.push_back({.base = AppendLanes(lanes, cta.lanes), .stride = MemoryAccess::kScattered, .mask = mask});
  CHECK(cta.lanes.size() == ScatteredLanes::Words(1, 3) + ScatteredLanes::Words(ScatteredLanes::kFar, 3));
  for (std::size_t i = 0; i < 2; ++i) {
    std::array<std::uint64_t, kWarpSize> addresses{};
    LaneAddresses(cta, cta.accesses[i], addresses);
    const auto& lanes = i == 0 ? near : far;
    CHECK((addresses[3] == lanes[0] && addresses[4] == lanes[1] && addresses[31] == lanes[2] && addresses[0] == 0));
  }
}

TEST_CASE("LaneAddresses_NegativeStride_CountsDown") {
  const CtaTrace cta;
  std::array<std::uint64_t, kWarpSize> addresses{};
  LaneAddresses(cta, {.base = 1000, .stride = -4, .mask = 0xffffffff}, addresses);
  CHECK(addresses[0] == 1000);
  CHECK(addresses[31] == 1000 - 31 * 4);
}

/// A load of global memory, of four bytes a lane; what is said of a CTA of one warp that executes it so.
std::string ProblemOf(const MemoryAccess& access, std::uint64_t shift = 0, const CtaTrace& tables = {},
                      std::uint8_t flags = 0) {
  KernelCode code;
  code.name = "k";
  code.instructions.push_back({.op = OpClass::kMemory, .space = Space::kGlobal, .width = 4, .flags = flags});
  code.blocks = {{0, 1}};
  CtaTrace cta = tables;
  cta.warps = {{0, 1, 0, 1}};
  cta.visits.push_back({0, ~0u});
  cta.accesses.push_back(access);
  LoadedCta loaded{.trace = std::make_shared<const CtaTrace>(std::move(cta)), .shifts = {}};
  if (shift != 0) *loaded.shifts.Renew(1) = shift;
  const Status checked = CtaChecks().Check(code, {.ctas = 1, .threads_per_cta = 32}, loaded);
  return checked.ok() ? "" : checked.error().message;
}

TEST_CASE("CtaChecks_Addresses_LieInMemory_WithShiftsPatternsAndWindows") {
  constexpr std::uint64_t kEnd = MemoryAccess::kAddressEnd;
  const auto is_none = [](const std::string& problem) {
    return problem.find("where there is no memory") != std::string::npos;
  };
  CHECK(ProblemOf({.base = 4096, .stride = 4, .mask = ~0u}).empty());
  CHECK(ProblemOf({.base = kEnd - 128, .stride = 4, .mask = ~0u}).empty());
  CHECK(is_none(ProblemOf({.base = kEnd - 127, .stride = 4, .mask = ~0u})));
  CHECK(is_none(ProblemOf({.base = std::uint64_t{1} << 58, .stride = 4, .mask = 1})));
  CHECK(is_none(ProblemOf({.base = ~std::uint64_t{0}, .stride = 4, .mask = ~0u})));
  // Of the lanes those that access.
  CHECK(is_none(ProblemOf({.base = 100, .stride = -4, .mask = ~0u})));
  CHECK(ProblemOf({.base = 100, .stride = -4, .mask = 0xff}).empty());
  CHECK(ProblemOf({.base = 0 - std::uint64_t{400}, .stride = 100, .mask = ~0xfu}).empty());
  // Shifts, of the lowest and the highest byte.
  CHECK(ProblemOf({.base = 4096, .stride = 4, .mask = ~0u}, 0 - std::uint64_t{4096}).empty());
  CHECK(is_none(ProblemOf({.base = 4096, .stride = 4, .mask = ~0u}, 0 - std::uint64_t{4097})));
  CHECK(ProblemOf({.base = 4096, .stride = 4, .mask = ~0u}, kEnd - 4096 - 128).empty());
  CHECK(is_none(ProblemOf({.base = 4096, .stride = 4, .mask = ~0u}, kEnd - 4096 - 127)));
  CHECK(is_none(ProblemOf({.base = 4096, .stride = 4, .mask = ~0u}, std::uint64_t{1} << 61)));
  // Windows of generic addresses: those of shared memory are not moved, and have no end.
  const MemoryAccess shared{.base = MemoryAccess::kSharedWindow + 64, .stride = 4, .mask = ~0u};
  CHECK(is_none(ProblemOf(shared)));
  CHECK(ProblemOf(shared, 0, {}, kGeneric).empty());
  CHECK(ProblemOf(shared, std::uint64_t{1} << 61, {}, kGeneric).empty());
  const MemoryAccess local{.base = MemoryAccess::kLocalWindow + 4096, .stride = 4, .mask = ~0u};
  CHECK(ProblemOf(local, 64, {}, kGeneric).empty());
  CHECK(is_none(ProblemOf(local, kEnd, {}, kGeneric)));
  // Patterns and lanes without one.
  CtaTrace tables;
  tables.patterns.emplace_back()[31] = 1 << 30;
  tables.patterns[0][0] = -(1 << 30);
  const MemoryAccess rows{.base = std::uint64_t{1} << 30, .stride = MemoryAccess::kFirstPattern, .mask = ~0u};
  CHECK(ProblemOf(rows, 0, tables).empty());
  CHECK(is_none(ProblemOf({.base = rows.base - 1, .stride = rows.stride, .mask = rows.mask}, 0, tables)));
  CHECK(ProblemOf({.base = 0, .stride = rows.stride, .mask = rows.mask & ~1u}, 0, tables).empty());
  const std::array<std::uint64_t, 2> near = {4096, kEnd - 4}, far = {4096, std::uint64_t{1} << 50};
  for (const auto& lanes : {near, far}) {
    CtaTrace scattered;
    const MemoryAccess access{
        .base = AppendLanes(lanes, scattered.lanes), .stride = MemoryAccess::kScattered, .mask = 3};
    CHECK(ProblemOf(access, 0, scattered).empty() == (lanes[1] < kEnd));
  }
}

TEST_CASE("ValidateRepeats_TurnsWithoutInstructions_AreNone") {
  KernelCode code;
  code.name = "k";
  code.instructions.resize(1);
  code.blocks = {{0, 0}, {0, 1}};
  CtaTrace cta;
  cta.warps = {{0, 2, 0, 0}};
  cta.visits.push_back({0, ~0u});
  cta.visits.push_back({1, ~0u});
  cta.repeats.push_back({.warp = 0, .visit = 0, .visit_count = 2, .more = 1000});
  CHECK(ValidateRepeats(code, cta).ok());
  cta.repeats[0].visit_count = 1;
  const Status empty = ValidateRepeats(code, cta);
  REQUIRE(!empty.ok());
  CHECK(empty.error().message == "kernel k, repeat in warp 0: no instruction is repeated");
}

TEST_CASE("ValidateCode_AGenericAccessOfOneSpace_IsNone") {
  KernelCode code;
  code.instructions.push_back({.op = OpClass::kMemory, .space = Space::kShared, .width = 4, .flags = kGeneric});
  CHECK(!ValidateCode(code).ok());
}

}  // namespace
}  // namespace gridloom::trace
