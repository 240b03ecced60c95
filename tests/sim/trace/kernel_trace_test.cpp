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
    cta.accesses.push_back({.base = 1, .stride = MemoryAccess::kScattered, .mask = 0x80000001});
    cta.lanes = {7, 100, 200};
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
  CHECK(broken([](Sample& s) { s.code.operands.pop_back(); }) == "kernel k, instruction 1: operands end beyond the operand table");
  CHECK(broken([](Sample& s) { s.code.operands[0] = 9; }) == "kernel k, instruction 0: register 9 beyond register_count");
  CHECK(broken([](Sample& s) { s.code.instructions[0].width = 3; }) == "kernel k, instruction 0: access width is not 1, 2, 4, 8 or 16");
  CHECK(broken([](Sample& s) { s.code.instructions[0].space = Space::kNone; }).find("without a space") != std::string::npos);
  CHECK(broken([](Sample& s) { s.code.blocks[0].count = 3; }) == "kernel k, block 0: instructions beyond the table");
  CHECK(broken([](Sample& s) { s.cta.visits[0].block = 1; }) == "kernel k, warp 0: block 1 does not exist");
  CHECK(broken([](Sample& s) { s.cta.visits[0].mask = 0; }) == "kernel k, warp 0: block visited by no lane");
  CHECK(broken([](Sample& s) { s.cta.warps[0].visit_count = 2; }) == "kernel k, warp 0: path beyond the table");
  CHECK(broken([](Sample& s) { s.cta.warps[0].access_count = 0; }) ==
        "kernel k, warp 0: 0 memory accesses recorded where the path executes 1");
  CHECK(broken([](Sample& s) { s.cta.lanes.pop_back(); }) == "kernel k, warp 0: lane addresses beyond the table");
  CHECK(broken([](Sample& s) { s.shape.threads_per_cta = 33; }) == "kernel k: 1 warps in a CTA of 2");
}

TEST_CASE("LaneAddresses_Scattered_GivesTheLanesOfTheMask") {
  const Sample sample;
  std::array<std::uint64_t, kWarpSize> addresses{};
  LaneAddresses(sample.cta, sample.cta.accesses[0], addresses);
  CHECK(addresses[0] == 100);
  CHECK(addresses[31] == 200);
}

TEST_CASE("LaneAddresses_NegativeStride_CountsDown") {
  const CtaTrace cta;
  std::array<std::uint64_t, kWarpSize> addresses{};
  LaneAddresses(cta, {.base = 1000, .stride = -4, .mask = 0xffffffff}, addresses);
  CHECK(addresses[0] == 1000);
  CHECK(addresses[31] == 1000 - 31 * 4);
}

}  // namespace
}  // namespace gridloom::trace
