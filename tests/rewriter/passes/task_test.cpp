// Task functions and the MasterKernel as text: what is refused and why, what is kept, and that whatever comes out is
// valid PTX. What they do: tests/gpu/master_kernel.cpp.
#include "rewriter/passes/task.h"

#include <catch2/catch.hpp>

#include "rewriter/passes/master_kernel.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::passes;

namespace {

constexpr const char* kHeader = ".version 7.8\n.target sm_90\n.address_size 64\n";

std::unique_ptr<ptx::Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, "test", text));
  REQUIRE(!sink.has_errors());
  return module;
}

struct Outcome {
  std::unique_ptr<ptx::Module> module;
  PassReport report;
  std::vector<TaskFunction> tasks;
};

Outcome MakeTasks(const std::string& text) {
  Outcome outcome{.module = Parse(text), .report = {}, .tasks = {}};
  outcome.report = StartReport(*outcome.module);
  outcome.tasks = AddTasks(*outcome.module, outcome.report);
  return outcome;
}

void CheckValid(const ptx::Module& module) {
  const std::string text = ptx::PrintModule(module);
  DiagnosticSink sink;
  const auto again = ptx::ParseModule(text, sink);
  ptx::VerifyModule(*again, sink);
  INFO(FormatDiagnostics(sink, "tasks", text) << text);
  CHECK(!sink.has_errors());
  CHECK(ptx::PrintModule(*again) == text);
}

/// Why a kernel of this body is refused; empty when it is not.
std::string Refusal(const std::string& body, const std::string& before = "", const std::string& directives = "") {
  const Outcome outcome =
      MakeTasks(std::string(kHeader) + before + ".visible .entry k(.param .u64 p)\n" + directives + "{\n" +
                ".reg .u32 %r<9>;\n.reg .u64 %rd<9>;\n.reg .pred %p<4>;\n" + body + "\nret;\n}\n");
  CheckValid(*outcome.module);
  const KernelReport& kernel = outcome.report.kernels.front();
  CHECK((kernel.status == KernelStatus::kRefused) == outcome.tasks.empty());
  return kernel.reason;
}

}  // namespace

TEST_CASE("Task_WhatNeedsTheRealGrid_IsRefusedByName") {
  CHECK(Refusal("mov.u64 %rd1, %gridid;") == "it asks for its real place (%gridid)");
  CHECK(Refusal("mov.u32 %r1, %warpid;") == "it asks for its real place (%warpid)");
  CHECK(Refusal("mov.b32 %r1, %envreg2;") == "it synchronises the whole grid (%envreg2)");
  CHECK(Refusal("bar.sync 3;") == "it waits at barrier 3, not at barrier 0 alone");
  CHECK(Refusal("bar.sync 0, 64;") == "a part of its threads waits for each other (bar.sync with a count)");
  CHECK(Refusal("bar.arrive 0, 64;") == "a part of its threads waits for another (bar.arrive)");
  CHECK(Refusal("mov.u32 %r1, 0;\nbar.sync %r1;") == "the number of its barrier is computed (bar.sync)");
  CHECK(Refusal("", "", ".explicitcluster .reqnctapercluster 2, 1, 1\n") ==
        "it is launched in clusters (.reqnctapercluster)");
  CHECK(Refusal("griddepcontrol.wait;") == "the end of the grid controls the start of another (griddepcontrol)");
  CHECK(Refusal("mov.u64 %rd1, f;\nq: .callprototype _ ();\ncall %rd1, (), q;", ".func f() { ret; }\n")
            .starts_with("it calls through a pointer"));
}

TEST_CASE("Task_LanesThatExchangeValues_MustAllCome") {
  const std::string shuffle = "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xFFFFFFFF;\n";
  CHECK(Refusal("mov.u32 %r1, %tid.x;\n" + shuffle).empty());
  CHECK(Refusal("mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 bra END;\n" + shuffle + "END:") ==
        "lanes exchange values where some of its threads may not come (shfl.sync.bfly.b32)");
}

TEST_CASE("Task_LanesThatExchangeValues_MayDoSoInSomeWarps") {
  const auto needs = [](const std::string& body) {
    const Outcome outcome =
        MakeTasks(std::string(kHeader) + ".visible .entry k(.param .u32 n)\n{\n.reg .u32 %r<9>;\n.reg .pred %p<4>;\n" +
                  body + "\nret;\n}\n");
    REQUIRE(outcome.tasks.size() == 1);
    CheckValid(*outcome.module);
    return outcome.tasks.front().needs;
  };
  const std::string shuffle = "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xFFFFFFFF;\n", thread = "mov.u32 %r1, %tid.x;\n";
  CHECK(needs(thread + shuffle).full_warps);
  CHECK_FALSE(needs(thread + shuffle).full_rows);
  CHECK(needs(thread + "setp.gt.u32 %p1, %r1, 31;\n@%p1 bra END;\n" + shuffle + "END:").full_rows);
  CHECK(needs(thread + "setp.gt.u32 %p1, %r1, 31;\n@%p1 ret;\n" + shuffle).full_rows);
  CHECK(needs(thread + "setp.lt.u32 %p1, %r1, 32;\n@%p1 " + shuffle).full_rows);
  CHECK_FALSE(needs("bar.sync 0;").full_warps);
  CHECK(Refusal(thread + "setp.lt.u32 %p1, %r1, 33;\n@%p1 " + shuffle).starts_with("lanes exchange values where"));
}

TEST_CASE("Task_HowItWaits_IsFoundInTheCode") {
  const auto barrier = [](const std::string& body) {
    const Outcome outcome =
        MakeTasks(std::string(kHeader) + ".visible .entry k(.param .u32 n)\n{\n.reg .u32 %r<9>;\n.reg .pred %p<4>;\n" +
                  body + "\nret;\n}\n");
    REQUIRE(outcome.tasks.size() == 1);
    CheckValid(*outcome.module);
    return outcome.tasks.front().needs.barrier;
  };
  CHECK(barrier("") == task::Barrier::kNone);
  CHECK(barrier("bar.sync 0;") == task::Barrier::kNamed);
  CHECK(barrier("mov.u32 %r1, 0;\nLOOP:\nbar.sync 0;\nadd.u32 %r1, %r1, 1;\nld.param.u32 %r2, [n];\nsetp.lt.u32 %p1, "
                "%r1, %r2;\n@%p1 bra "
                "LOOP;") == task::Barrier::kNamed);
  // Some threads have ended.
  CHECK(barrier("mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 ret;\nbar.sync 0;") == task::Barrier::kCounting);
  CHECK(barrier("mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 bra END;\nbar.sync 0;\nEND:") ==
        task::Barrier::kCounting);
  CHECK(barrier("mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 bar.sync 0;") == task::Barrier::kCounting);
}

TEST_CASE("Task_SharedMemory_IsLaidOutForEachKernel") {
  const Outcome outcome = MakeTasks(std::string(kHeader) + R"(
.shared .align 4 .b8 both[6];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry a() { .shared .f64 own; .reg .f64 %d; .reg .u32 %r; ld.shared.u8 %r, [both+1]; ld.shared.f64 %d, [own]; ret; }
.visible .entry b(.param .u32 x, .param .u64 y) { .reg .u64 %p; .reg .u32 %r; mov.u64 %p, both; ld.shared.u32 %r, [dynamic+4]; ld.param.u64 %p, [y]; ret; }
)");
  CheckValid(*outcome.module);
  REQUIRE(outcome.tasks.size() == 2);
  CHECK(outcome.tasks[0].needs.static_bytes == 16);
  CHECK(outcome.tasks[0].needs.alignment == 8);
  CHECK(outcome.tasks[1].needs.static_bytes == 6);
  CHECK(outcome.tasks[1].param_bytes == 16);
  const ptx::Variable* const facts = outcome.module->FindVariable(task::kFactsName);
  REQUIRE(facts != nullptr);
  CHECK(facts->element_count() == 8);
}

TEST_CASE("Task_OfAnOldArchitecture_IsRefused") {
  const Outcome outcome = MakeTasks(".version 6.0\n.target sm_20\n.address_size 64\n.visible .entry k() { ret; }\n");
  CHECK(outcome.tasks.empty());
  CHECK(outcome.report.kernels.front().reason == "the MasterKernel needs sm_30 or later, and the module is for sm_20");
}

TEST_CASE("Task_KernelsStayAsTheyAre") {
  const std::string text =
      std::string(kHeader) +
      ".visible .entry k(.param .u32 n)\n{\n\t.reg .u32 \t%r<3>;\n\n\tmov.u32 \t%r1, %tid.x;\n\tret;\n}\n";
  const Outcome outcome = MakeTasks(text);
  const auto plain = Parse(text);
  const ptx::Function& before = *plain->FindFunction("k");
  const ptx::Function& after = *outcome.module->FindFunction("k");
  REQUIRE(before.body->statements.size() == after.body->statements.size());
  CHECK(outcome.module->FindFunction("gl_task_k") != nullptr);
  CHECK(outcome.module->FindFunction(task::kMasterName) != nullptr);
}

TEST_CASE("Task_OfEveryModuleOfTheCorpus_IsValid") {
  for (const auto& [path, text] : ptx::testing::LoadCorpus()) {
    INFO(path);
    DiagnosticSink sink;
    auto module = ptx::ParseModule(text, sink);
    ptx::VerifyModule(*module, sink);
    if (sink.has_errors()) continue;
    PassReport report = StartReport(*module);
    AddTasks(*module, report);
    CheckValid(*module);
  }
}
