// What a module has of a newer PTX than the tables: it is refused by name where it is launched, and only there.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

// A kernel that has the instruction, one that calls a function with it, and two that do not come to it.
std::string Module(const std::string& instruction, const std::string& version = "9.9") {
  const std::string registers = ".reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p<2>; .reg .b64 %rd<3>;\n";
  const std::string store = "ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], 7;\n";
  return ".version " + version + "\n.target sm_90\n.address_size 64\n.func odd() {\n" + registers + instruction + "\nret;\n}\n" +
         ".entry has(.param .u64 out) {\n" + registers + instruction + store + "ret;\n}\n" + ".entry calls(.param .u64 out) {\n" +
         registers + store + "call odd, ();\nret;\n}\n" + ".entry has_not(.param .u64 out) {\n" + registers + store + "ret;\n}\n" +
         ".entry skips(.param .u64 out) {\n" + registers + store + "bra END;\n" + instruction + "\nEND: ret;\n}\n";
}

using Named = std::vector<std::pair<std::string, std::string>>;  // an instruction and what the message has to name

void ExpectRefused(const Named& instructions, const std::string& version) {
  for (const std::string tiers : {"off", "interpret"}) {
    for (const auto& [instruction, name] : instructions) {
      INFO(instruction << " with tiers " << tiers);
      Engine::Options options;
      options.tiers = tiers;
      test::Executor executor(options);
      std::vector<std::uint32_t> out(1);
      const std::uint64_t device = executor.Upload(out);
      const auto launch = [&](const std::string& kernel) {
        executor.Upload(out);
        return executor.Launch(Module(instruction, version), kernel, {1, 1, 1}, {1, 1, 1}, test::ParamBlock().Add(device));
      };
      for (const char* kernel : {"has", "calls"}) {
        const LaunchFault fault = launch(kernel);
        INFO(fault.text);
        CHECK(fault.kind != FaultKind::kNone);
        CHECK(fault.text.find(name) != std::string::npos);
        executor.Download(device, out);
        CHECK(out[0] == 0);
      }
      for (const char* kernel : {"has_not", "skips"}) {
        const LaunchFault fault = launch(kernel);
        INFO(fault.text);
        CHECK(fault.kind == FaultKind::kNone);
        executor.Download(device, out);
        CHECK(out[0] == 7);
      }
    }
  }
}

}  // namespace

TEST_CASE("UnknownWords_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {{"add.wibble.u32 %r1, %r2, %r3;", "add.wibble.u32"},
                              {"sin.approx.3pi.ftz.f32 %f1, %f2;", ".3pi"},
                              {"@%p1 cvt.rn.wobble::n2.f16x2.f32 %r1, %f2, %f3;", "wobble::n2"},
                              {"quux.u32 %r1, %r2;", "quux"},
                              {"add.u32 %r1, %r2, %r3, %r1;", "add.u32"},
                              {"add.u4x8 %r1, %r2, %r3;", "u4x8"},
                              {"set.eq.u8x4.u8x4 %r1, %r2, %r3;", "set.eq.u8x4.u8x4"},
                              {"multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd2], %r1;", "multimem.cp.async.bulk"},
                              {"mov.u32 %r1, %unheard_of;", "%unheard_of"}};
  ExpectRefused(instructions, "9.9");
}

// Words that other instructions have.
TEST_CASE("MisplacedWords_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {
      {"add.relu.u32 %r1, %r2, %r3;", "does not take '.relu'"},  {"add.sat.u64 %rd1, %rd2, %rd1;", "does not take '.sat'"},
      {"add.rn.rz.f32 %f1, %f2, %f3;", "does not take '.rz'"},   {"add.global.u32 %r1, %r2, %r3;", "does not take '.global'"},
      {"mul.lo.u32.u32 %r1, %r2, %r3;", "does not take '.u32'"}, {"ld.rn.global.u32 %r1, [%rd1];", "does not take '.rn'"},
      {"mov.sat.u32 %r1, %r2;", "does not take '.sat'"},         {"mad.lo.sat.s32 %r1, %r2, %r3, %r1;", "does not take '.sat'"},
      {"cvt.relu.u32.f32 %r1, %f1;", "does not take '.relu'"},   {"shl.wrap.b32 %r1, %r2, %r3;", "does not take '.wrap'"},
      {"bar.aligned.sync 0;", "does not take '.aligned'"}};
  ExpectRefused(instructions, "8.0");
}

// PTX 9.4.
TEST_CASE("AtomicsOfSingles_TakeNoftz") {
  for (const std::string tiers : {"off", "interpret"}) {
    for (const std::string instruction : {"red.global.add.noftz.f32 [%rd1], %f1;", "atom.add.noftz.f32 %f2, [%rd1], %f1;",
                                          "red.global.add.noftz.v2.f32 [%rd1], {%f1, %f1};"}) {
      INFO(instruction << " with tiers " << tiers);
      Engine::Options options;
      options.tiers = tiers;
      test::Executor executor(options);
      std::vector<float> out = {1.5f, 0};
      const std::uint64_t device = executor.Upload(out);
      const std::string text =
          ".version 9.4\n.target sm_90\n.address_size 64\n.entry adds(.param .u64 out) {\n"
          ".reg .f32 %f<3>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nmov.f32 %f1, 0f40100000;\n" +
          instruction + "\nret;\n}\n";
      const LaunchFault fault = executor.Launch(text, "adds", {1, 1, 1}, {1, 1, 1}, test::ParamBlock().Add(device));
      INFO(fault.text);
      CHECK(fault.kind == FaultKind::kNone);
      executor.Download(device, out);
      CHECK(out[0] == 3.75f);
    }
  }
}
