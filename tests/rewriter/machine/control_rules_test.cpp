// The rules of control bits: what ptxas has made of slices.cu keeps them, and breaks them where a wait is taken out.
#include "rewriter/machine/control_rules.h"

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/stalls.h"

namespace gridloom::machine {
namespace {

struct Kernel {
  std::string name;
  unsigned sm = 0;
  std::vector<std::byte> code;
  BranchTargets targets;
};

std::vector<Kernel> KernelsOfTests() {
  std::vector<Kernel> kernels;
  for (const unsigned sm : {75U, 80U, 90U}) {
    std::ifstream file("tests/rewriter/machine/slices.sm_" + std::to_string(sm) + ".cubin", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto cubin = CubinFile::Read(image::AsBytes(text));
    REQUIRE(cubin.ok());
    for (const std::string& name : KernelNames(*cubin)) {
      const auto parts = ReadKernelParts(*cubin, name);
      REQUIRE(parts.ok());
      kernels.push_back({name, sm, cubin->sections()[parts->text].data, parts->targets});
    }
  }
  return kernels;
}

Status CheckFixed(const Kernel& kernel) {
  GL_TRY(flow, FlowGraph::Build(kernel.code, kernel.sm, kernel.targets));
  GL_TRY_STATUS(CheckStalls(flow, kernel.sm));
  return CheckHints(flow);
}

/// A kernel with other control bits at one word.
Kernel WithControl(const Kernel& kernel, std::size_t at, const Control& control) {
  Kernel changed = kernel;
  Word word = ReadWord(changed.code, at);
  WriteControl(word, control);
  WriteWord(changed.code, at, word);
  return changed;
}

Status Check(const Kernel& kernel) {
  GL_TRY(flow, FlowGraph::Build(kernel.code, kernel.sm, kernel.targets));
  return CheckControl(flow);
}

/// Instructions of which others read a result that has a scoreboard.
std::vector<std::uint8_t> BoardsInUse(const Kernel& kernel) {
  std::vector<Instruction> instructions;
  for (std::size_t at = 0; at < kernel.code.size(); at += kWordBytes)
    instructions.push_back(*Decode(ReadWord(kernel.code, at), kernel.sm));
  std::vector<std::uint8_t> boards;
  for (std::size_t at = 0; at + 1 < instructions.size(); ++at) {
    const Control& control = instructions[at].control;
    const RegisterSet written = UseOf(instructions[at]).written;
    if (control.write_barrier == kNoBarrier || written.general.none()) continue;
    // On the straight way, before anything else could have waited.
    for (std::size_t next = at + 1; next < instructions.size(); ++next) {
      if (instructions[next].format->flow != Flow::kNext) break;
      const RegisterUse use = UseOf(instructions[next]);
      if ((use.read.general & written.general).any()) boards.push_back(control.write_barrier);
      if (((use.read.general | use.written.general) & written.general).any()) break;
    }
  }
  return boards;
}

Kernel WithoutWaits(Kernel kernel, std::uint8_t board) {
  for (std::size_t at = 0; at < kernel.code.size(); at += kWordBytes) {
    Word word = ReadWord(kernel.code, at);
    Control control = ReadControl(word);
    control.wait = static_cast<std::uint8_t>(control.wait & ~(1U << board));
    WriteControl(word, control);
    WriteWord(kernel.code, at, word);
  }
  return kernel;
}

TEST_CASE("CheckControl_CodeOfTheCompiler_KeepsTheRules") {
  std::size_t checked = 0;
  for (const Kernel& kernel : KernelsOfTests()) {
    INFO("sm_" << kernel.sm << " " << kernel.name);
    const Status status = Check(kernel);
    CHECK((status.ok() || status.error().message.find("a table that is not known") != std::string::npos));
    checked += status.ok() ? 1 : 0;
  }
  CHECK(checked > 40);
}

TEST_CASE("CheckControl_WithoutAWait_NamesTheRegister") {
  std::size_t boards = 0;
  for (const Kernel& kernel : KernelsOfTests()) {
    if (!Check(kernel).ok()) continue;
    for (const std::uint8_t board : BoardsInUse(kernel)) {
      ++boards;
      INFO("sm_" << kernel.sm << " " << kernel.name << " scoreboard " << int{board});
      const Status status = Check(WithoutWaits(kernel, board));
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().message.find(" does not wait for ") != std::string::npos);
    }
  }
  CHECK(boards > 100);
}

// Where a result of fixed latency is used by what comes next, one cycle less is too early for some.
TEST_CASE("CheckStalls_CodeOfPtxas_KeepsThemAndBreaksThemWithShorterOnes") {
  for (const Kernel& kernel : KernelsOfTests()) {
    INFO("sm_" << kernel.sm << " " << kernel.name);
    const Status status = CheckFixed(kernel);
    CHECK((status.ok() ? "" : status.error().message).empty());
    const auto flow = *FlowGraph::Build(kernel.code, kernel.sm, kernel.targets);
    std::size_t uses = 0, noticed = 0;
    VisitFixedUses(flow, 4, [&](const FixedUse& use) {
      if (use.to != use.from + 1 || use.registers.general.none()) return;
      Control control = flow.instructions()[use.from].control;
      control.stall = 1;
      ++uses;
      noticed += CheckFixed(WithControl(kernel, use.from * kWordBytes, control)).ok() ? 0 : 1;
    });
    CHECK(noticed == uses);
  }
}

TEST_CASE("CheckHints_YieldsAndKeptOperandsThatPtxasNeverHas_AreNamed") {
  std::size_t yields = 0, kept = 0;
  for (const Kernel& kernel : KernelsOfTests()) {
    INFO("sm_" << kernel.sm << " " << kernel.name);
    const auto flow = *FlowGraph::Build(kernel.code, kernel.sm, kernel.targets);
    for (std::uint32_t at = 0; at < flow.instructions().size(); ++at) {
      const Instruction& instruction = flow.instructions()[at];
      Control control = instruction.control;
      if (control.stall >= 12) {
        control.yield = true;
        ++yields;
        CHECK_FALSE(CheckFixed(WithControl(kernel, at * kWordBytes, control)).ok());
      }
      if (instruction.format->flow == Flow::kNext || instruction.control.reuse != 0) continue;
      control = instruction.control;
      control.reuse = 1;  // a branch keeps nothing
      ++kept;
      CHECK_FALSE(CheckFixed(WithControl(kernel, at * kWordBytes, control)).ok());
    }
  }
  CHECK(yields != 0);
  CHECK(kept != 0);
}

}  // namespace
}  // namespace gridloom::machine
