// Kernels of many blocks: what is made of them grows in proportion to their length, not with its square.
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/pipeline.h"
#include "sim/exec/compiler/vectorizer.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr int kShort = 300, kTimes = 4;

std::string Kernel(int count, const std::function<std::string(const std::string&)>& piece) {
  std::string text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p<4>;\nld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, "
      "%r1;\n";
  for (int i = 0; i < count; ++i) text += piece(std::to_string(i)) + "\n";
  return text + "st.global.u32 [%rd1], %r2;\nret;\n}\n";
}

/// Instructions of the warp form.
std::size_t SizeOf(const std::string& text) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  REQUIRE_FALSE(sink.has_errors());
  std::string error;
  const auto machine = MakeTargetMachine("", error);
  REQUIRE(machine);
  llvm::LLVMContext context;
  SpmdModule spmd(context, "k");
  spmd.ir().setDataLayout(machine->createDataLayout());
  LiftedKernel lifted = LiftKernel(*module, *module->FindFunction("k"), {}, spmd);
  REQUIRE(lifted.error.empty());
  SetTarget(spmd.ir(), *machine);
  OptimizeSpmd(spmd, lifted.address_taken, {}, *machine);
  REQUIRE(Vectorize(spmd, lifted.kernel, lifted.address_taken, {}, lifted.facts).ok());
  return spmd.ir().getInstructionCount();
}

}  // namespace

TEST_CASE("LongLines_AreCompiledToAsMuchMoreAsTheyAreLonger") {
  const std::pair<const char*, std::function<std::string(const std::string&)>> cases[] = {
      {"barriers", [](const std::string& i) { return "xor.b32 %r2, %r2, " + i + "; bar.sync 0;"; }},
      {"barriers of many numbers",
       [](const std::string& i) { return "xor.b32 %r2, %r2, " + i + "; bar.sync 1, 64; bar.sync 2;"; }},
      {"barriers that count",
       [](const std::string& i) {
         return "setp.gt.u32 %p1, %r2, " + i + "; bar.red.popc.u32 %r3, 0, %p1; add.s32 %r2, %r2, %r3;";
       }},
      {"exchanges in branches",
       [](const std::string& i) {
         return "setp.gt.u32 %p1, %r2, " + i + "; @%p1 bra S" + i + "; shfl.sync.bfly.b32 %r2, %r2, 1, 31, -1; S" + i +
                ": add.s32 %r2, %r2, %r1;";
       }},
      {"votes",
       [](const std::string& i) {
         return "setp.gt.u32 %p1, %r2, " + i + "; vote.sync.ballot.b32 %r3, %p1, -1; add.s32 %r2, %r2, %r3;";
       }},
      {"loops that wait",
       [](const std::string& i) {
         return "W" + i + ": ld.volatile.global.u32 %r3, [%rd1]; setp.lt.u32 %p1, %r3, %r1; @%p1 bra W" + i + ";";
       }},
  };
  for (const auto& [what, piece] : cases) {
    const std::size_t one = SizeOf(Kernel(kShort, piece)), many = SizeOf(Kernel(kTimes * kShort, piece));
    INFO(what << ": " << one << " instructions of " << kShort << ", " << many << " of " << kTimes * kShort);
    CHECK(many < one * kTimes * 11 / 10);
  }
}
