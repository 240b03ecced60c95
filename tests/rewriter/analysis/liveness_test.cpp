#include "rewriter/analysis/liveness.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <random>
#include <set>

#include "rewriter/analysis/dominators.h"
#include "rewriter/analysis/loops.h"
#include "rewriter/ptx/defuse.h"
#include "tests/rewriter/analysis/parse.h"

namespace gridloom::analysis {
namespace {

using testing::ParseKernel;
using Name = std::pair<const ptx::Variable*, std::uint32_t>;

/// Iterates the textbook equations over single instructions until nothing changes.
std::vector<std::set<Name>> SlowLiveBefore(const Cfg& cfg) {
  const auto& instructions = cfg.instructions();
  std::vector<std::set<Name>> before(instructions.size() + 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = instructions.size(); i-- > 0;) {
      const ptx::Instruction& instruction = *instructions[i].instruction;
      const BlockId block = instructions[i].block;
      std::set<Name> live;
      if (i + 1 < instructions.size() && instructions[i + 1].block == block) {
        live = before[i + 1];
      } else {
        for (const BlockId successor : cfg.graph().successors[block]) {
          const auto& in = before[cfg.blocks()[successor].first];
          live.insert(in.begin(), in.end());
        }
      }
      VisitDefs(instruction, [&](const ptx::Operand& operand) {
        if (!instruction.guard && operand.element == 0) live.erase({operand.variable, operand.index});
      });
      VisitUses(instruction, [&](const ptx::Operand& operand) { live.insert({operand.variable, operand.index}); });
      VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
        live.insert({&variable, index});
      });
      if (live == before[i]) continue;
      before[i] = std::move(live);
      changed = true;
    }
  }
  return before;
}

std::string RandomBody(std::mt19937& random) {
  const int blocks = 2 + static_cast<int>(random() % 8);
  const auto reg = [&] { return "%r" + std::to_string(random() % 8); };
  const auto label = [&] { return "L" + std::to_string(random() % blocks); };
  std::string body;
  for (int block = 0; block < blocks; ++block) {
    body += "L" + std::to_string(block) + ":\n";
    for (unsigned i = random() % 4; i > 0; --i) {
      if (random() % 4 == 0) body += "@%p" + std::to_string(random() % 3) + " ";
      body += "add.u32 " + reg() + ", " + reg() + ", " + reg() + ";\n";
      if (random() % 5 == 0) body += "setp.ne.u32 %p" + std::to_string(random() % 3) + ", " + reg() + ", 0;\n";
    }
    switch (random() % 4) {
      case 0: body += "bra " + label() + ";\n"; break;
      case 1: body += "@%p0 bra " + label() + ";\n"; break;
      case 2: body += "@!%p1 exit;\n"; break;
      default: break;
    }
  }
  return body;
}

}  // namespace

TEST_CASE("Liveness_Loop_CounterIsLiveRoundIt", "[analysis]") {
  const auto module =
      ParseKernel("mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nret;");
  const Cfg cfg(*module->FindFunction("k"));
  const Liveness liveness(cfg);
  REQUIRE(liveness.LiveIn(1).size() == 1);
  CHECK(liveness.registers()[liveness.LiveIn(1)[0]].index == 1);
  CHECK(liveness.LiveIn(0).empty());
  CHECK(liveness.LiveOut(2).empty());
  CHECK(liveness.max_pressure() == Pressure{1, 1});
}

TEST_CASE("Liveness_GuardedWrite_KeepsTheOldValue", "[analysis]") {
  const auto module = ParseKernel("@%p1 mov.u32 %r1, 0;\nst.global.u32 [%rd1], %r1;\nret;");
  const Liveness liveness(Cfg(*module->FindFunction("k")));
  CHECK(liveness.LiveIn(0).size() == 3);
}

TEST_CASE("Liveness_Pressure_CountsUnitsOf32Bits", "[analysis]") {
  const auto module = ParseKernel(
      ".reg .v4 .f32 %v;\n.reg .b16 %h;\n"
      "mov.u64 %rd1, 0;\nmov.u64 %rd2, 0;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u64 [%rd3], %rd1;\nmov.b16 %h, "
      "0;\nst.global.b16 [0], "
      "%h;\nret;");
  const Cfg cfg(*module->FindFunction("k"));
  const Liveness liveness(cfg);
  CHECK(liveness.pressure()[0] == Pressure{2, 0});
  CHECK(liveness.pressure()[1] == Pressure{4, 0});
  CHECK(liveness.pressure()[2] == Pressure{4, 0});
  CHECK(liveness.pressure()[4] == Pressure{1, 0});
  CHECK(liveness.max_pressure() == Pressure{4, 0});
}

TEST_CASE("Liveness_Random_MatchesTheEquations", "[analysis]") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::string body = RandomBody(random);
    INFO(body);
    const auto module = ParseKernel(body);
    const Cfg cfg(*module->FindFunction("k"));
    const Liveness liveness(cfg);
    const auto expected = SlowLiveBefore(cfg);
    for (std::uint32_t i = 0; i < cfg.instructions().size(); ++i) {
      std::set<Name> live;
      std::uint32_t units = 0;
      for (const RegisterId id : liveness.LiveBefore(i)) {
        live.insert({liveness.registers()[id].variable, liveness.registers()[id].index});
        units += liveness.registers()[id].units();
      }
      CHECK(live == expected[i]);
      CHECK(liveness.pressure()[i].units >= units);
      CHECK(liveness.pressure()[i].units <= liveness.max_pressure().units);
    }
  }
}

TEST_CASE("Analyses_LargeKernel_NearLinear", "[analysis]") {
  std::string body;
  for (int i = 0; i < 10'000; ++i) {
    const std::string n = std::to_string(i % 63), m = std::to_string((i * 7) % 63);
    body += "L" + std::to_string(i) + ": add.u32 %r" + n + ", %r" + m + ", 1;\nsetp.ne.u32 %p1, %r" + n +
            ", 0;\n@%p1 bra L" + std::to_string((i * 31) % 10'000) + ";\n";
  }
  const auto module = ParseKernel(body);
  const std::clock_t start = std::clock();
  const Cfg cfg(*module->FindFunction("k"));
  const DominatorTree dominators(cfg.graph(), 0);
  const PostDominatorTree post(cfg.graph(), 0, cfg.GuardedLeaves());
  const LoopNest loops(cfg.graph(), 0);
  const Liveness liveness(cfg);
  CHECK(std::clock() - start < 2 * CLOCKS_PER_SEC);  // CPU time: other work on the machine does not count
  CHECK(cfg.instructions().size() == 30'000);
  CHECK(liveness.max_pressure().units > 1);
}

}  // namespace gridloom::analysis
