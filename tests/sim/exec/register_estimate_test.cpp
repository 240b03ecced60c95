// Estimates of registers for code of any size, and for what no verifier has seen.
#include "sim/exec/runtime/register_estimate.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/parser.h"
#include "tests/growth.h"

namespace gridloom::exec {
namespace {

std::unique_ptr<ptx::Module> Kernel(const std::string& body) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred %p; .reg .b32 %r<100000>;\n" + body +
          " ret; }\n",
      sink);
  REQUIRE(!sink.has_errors());
  return module;
}

std::uint32_t Estimate(const std::string& body) { return EstimateRegisters(Kernel(body)->functions.front()); }

/// So many values that are defined, and then used.
std::string Define(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += "mov.u32 %r" + std::to_string(i) + ", 1;\n";
  return text;
}
std::string Use(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += "add.u32 %r0, %r0, %r" + std::to_string(i) + ";\n";
  return text;
}

TEST_CASE("EstimateRegisters_WhatIsUsedInALoop_LivesToItsEnd") {
  const std::string back = "@%p bra L;\n";
  const std::uint32_t apart = Estimate(Define(1, 40) + Use(1, 40) + Define(50, 40) + Use(50, 40));
  const std::uint32_t loop = Estimate(Define(1, 40) + "L:" + Use(1, 40) + Define(50, 40) + Use(50, 40) + back);
  CHECK(apart < 60);
  CHECK(loop > 80);
  // A second loop that begins in the first one carries them on; one that begins behind it does not.
  const std::uint32_t overlap = Estimate(Define(1, 40) + "L:" + Use(1, 40) + "M: add.u32 %r0, %r0, 1;\n" + back +
                                         Define(50, 40) + Use(50, 40) + "@%p bra M;\n");
  const std::uint32_t behind = Estimate(Define(1, 40) + "L:" + Use(1, 40) + back + "M: add.u32 %r0, %r0, 1;\n" +
                                        Define(50, 40) + Use(50, 40) + "@%p bra M;\n");
  CHECK(overlap > 80);
  CHECK(behind < 60);
  // What is defined in the loop begins anew in each round.
  CHECK(Estimate("L:" + Define(1, 40) + Use(1, 40) + Define(50, 40) + Use(50, 40) + back) < 60);
}

TEST_CASE("EstimateRegisters_GuardThatNobodyDeclares_IsNoRegister") {
  CHECK(Estimate("@%nobody mov.u32 %r1, 1;\n@!q bra L; L:\n") >= 8);
}

/// A module of a kernel k with this body, and device functions before it.
std::uint32_t OfKernel(const std::string& functions, const std::string& body) {
  DiagnosticSink sink;
  const auto module =
      ptx::ParseModule(".version 8.0\n.target sm_80\n.address_size 64\n" + functions +
                           ".entry k() { .reg .pred %p; .reg .b32 %r<1000>; .reg .b64 %a;\n" + body + " ret; }\n",
                       sink);
  REQUIRE(!sink.has_errors());
  return KernelRegisters(*module).Of(*module->FindFunction("k"));
}

std::string Function(const std::string& name, const std::string& body) {
  return ".func " + name + "() { .reg .b32 %r<1000>;\n" + body + " ret; }\n";
}

// The numbers are those of ptxas 13.0: 24 for kernels that call small functions, whatever they do themselves.
TEST_CASE("KernelRegisters_OfAKernelThatCalls_AreThoseOfTheWidestFunction") {
  const std::string small = Function("small", Define(1, 2) + Use(1, 2)),
                    wide = Function("wide", Define(1, 60) + Use(1, 60));
  CHECK(OfKernel(small, "mov.u32 %r1, 1;\n") < 24);
  CHECK(OfKernel(small, "call.uni small;\n") == 24);
  CHECK(OfKernel(".extern .func f();\n", "call.uni f;\n") == 24);
  CHECK(OfKernel(wide, "mov.u32 %r1, 1;\n") < 24);
  CHECK(OfKernel(wide, "call.uni wide;\n") > 60);
  CHECK(OfKernel(small, Define(1, 60) + "call.uni small;\n" + Use(1, 60)) > 60);
  // Through others, and through a declaration before the definition.
  CHECK(OfKernel(".func wide();\n" + Function("middle", "call.uni wide;\n") + wide, "call.uni middle;\n") > 60);
  // Those that call each other end.
  CHECK(OfKernel(".func b();\n" + Function("a", "call.uni b;\n") + Function("b", "call.uni a;\n"), "call.uni a;\n") ==
        24);
}

TEST_CASE("KernelRegisters_OfIndirectCalls_AreThoseOfAllAddressesTaken") {
  const std::string wide = Function("wide", Define(1, 60) + Use(1, 60));
  const std::string table = ".global .u64 table[1] = { wide };\n",
                    call = "ld.global.u64 %a, [table];\nP: .callprototype _ ();\ncall %a, (), P;\n";
  CHECK(OfKernel(wide + table, call) > 60);
  CHECK(OfKernel(wide + table, "ld.global.u64 %a, [table];\n") < 24);
}

TEST_CASE("EstimateRegisters_ManyBranches_CostInProportion") {
  const auto loops = [](int count) {
    std::string text;
    for (int i = 1; i <= count; ++i) {
      const std::string n = std::to_string(i);
      text += "L" + n + ": add.u32 %r" + n + ", %r0, 1;\nsetp.eq.u32 %p, %r" + n + ", 1;\n@%p bra L" + n + ";\n";
    }
    return Kernel(text);
  };
  const auto small = loops(3'000), large = loops(3'000 * static_cast<int>(testing::kLarger));
  const double growth =
      testing::Growth(1, [&](std::size_t size) { EstimateRegisters((size == 1 ? small : large)->functions.front()); });
  CHECK(growth < testing::kLinear);
}

}  // namespace
}  // namespace gridloom::exec
