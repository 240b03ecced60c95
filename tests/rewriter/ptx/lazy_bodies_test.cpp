// Bodies of kernels that are read when they are asked for are what they are when all is read at once.
#include "rewriter/ptx/lazy_bodies.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::ptx;

namespace {

std::vector<const Function*> KernelsOf(const Module& module) {
  std::vector<const Function*> kernels;
  for (const Function& function : module.functions) {
    if (function.is_entry && function.body != nullptr) kernels.push_back(&function);
  }
  return kernels;
}

const Function& Named(const Module& module, std::string_view name) {
  const Function* const function = module.FindFunction(name);
  REQUIRE(function != nullptr);
  return *function;
}

bool IsRead(const Module& module, std::string_view name) { return !Named(module, name).body->statements.empty(); }

std::unique_ptr<Module> Lazily(const std::string& text) {
  DiagnosticSink sink;
  auto module = ParseModuleLazily(text, sink, PtxOrigin::kCompiled);
  INFO(FormatDiagnostics(sink, "t.ptx", text));
  REQUIRE(!sink.has_errors());
  return module;
}

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

}  // namespace

TEST_CASE("LazyBodies_OfTheCorpusInAnyOrder_AreWhatIsReadAtOnce") {
  std::mt19937 random(7);
  std::size_t left = 0;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    DiagnosticSink sink;
    const auto whole = ParseModule(file.text, sink);
    const auto lazy = Lazily(file.text);
    auto kernels = KernelsOf(*lazy);
    std::shuffle(kernels.begin(), kernels.end(), random);
    for (const Function* kernel : kernels) {
      left += kernel->body->statements.empty() ? 1 : 0;
      CHECK(lazy->unread->Read(*kernel).empty());
      const Function& same = Named(*whole, kernel->name);
      CHECK(kernel->body->statements.size() == same.body->statements.size());
      CHECK(kernel->body->loc.line == same.body->loc.line);
      CHECK(kernel->body->end_loc.line == same.body->end_loc.line);
    }
    CHECK(PrintModule(*lazy) == PrintModule(*whole));
    CHECK(PrintModule(*Lazily(file.text)) == PrintModule(*whole));  // who prints reads all
  }
  CHECK(left > 100);
}

TEST_CASE("LazyBodies_OnlyWhatIsAskedForOrNamed_IsRead") {
  const auto module = Lazily(std::string(kHead) +
                             ".entry early() { ret; }\n"
                             ".func helper() { .reg .u64 %a; mov.u64 %a, of_helper; ret; }\n"
                             ".entry of_helper() { .reg .u64 %a; mov.u64 %a, early; ret; }\n"
                             ".entry alone() { /* } */ // }\n .pragma \"}\"; { ret; } }\n"
                             ".entry late();\n"
                             ".entry launcher() { .reg .u64 %a; mov.u64 %a, late; mov.u64 %a, launcher; ret; }\n"
                             ".entry late() { .reg .u64 %a; mov.u64 %a, table; ret; }\n"
                             ".entry in_table() { ret; }\n"
                             ".global .u64 table[1] = {in_table};\n");
  CHECK(IsRead(*module, "helper"));
  CHECK(IsRead(*module, "of_helper"));
  CHECK(IsRead(*module, "early"));
  CHECK(IsRead(*module, "in_table"));
  CHECK_FALSE(IsRead(*module, "alone"));
  CHECK_FALSE(IsRead(*module, "launcher"));
  CHECK_FALSE(IsRead(*module, "late"));
  CHECK(module->unread->Read(Named(*module, "launcher")).empty());
  CHECK(IsRead(*module, "launcher"));
  CHECK(IsRead(*module, "late"));
  CHECK_FALSE(IsRead(*module, "alone"));
  module->unread->ReadAll();
  CHECK(IsRead(*module, "alone"));
}

TEST_CASE("LazyBodies_WithErrors_NameThemOfTheirOwnKernelOnly") {
  const auto module = Lazily(std::string(kHead) +
                             ".entry good() { ret; }\n"
                             ".entry syntax() { add.s32 %r1 %r2; ret; }\n"
                             ".entry meaning() { .reg .u32 %r; add.s32 %r, %r, nobody; ret; }\n");
  CHECK(module->unread->Read(Named(*module, "good")).empty());
  CHECK(module->unread->Read(Named(*module, "syntax")).find("ptx:5:31: error: expected ',' or ';'") !=
        std::string::npos);
  CHECK(module->unread->Read(Named(*module, "meaning")).find("ptx:6:") != std::string::npos);
  CHECK(module->unread->Read(Named(*module, "syntax")).find("ptx:5:31") != std::string::npos);  // again
  CHECK(module->unread->Read(Named(*module, "good")).empty());
}

TEST_CASE("LazyBodies_ThatDoNotEnd_AreErrorsAtOnce") {
  for (const std::string body : {"{", "{ { }", "{ \" }", "{ // }", "{ /* }", "{ /* } */"}) {
    DiagnosticSink sink;
    ParseModuleLazily(kHead + (".entry k() " + body), sink, PtxOrigin::kCompiled);
    INFO(body);
    CHECK(sink.has_errors());
  }
}

TEST_CASE("LazyBodies_ReadByManyThreads_AreReadOnce") {
  std::string text = kHead;
  constexpr int kKernels = 200;
  for (int i = 0; i < kKernels; ++i) {
    const std::string next = std::to_string((i + 1) % kKernels);
    text += ".entry k" + std::to_string(i) + "();\n";
    text += ".entry k" + std::to_string(i) + "() { .reg .u64 %a; " + (i % 3 == 0 ? "mov.u64 %a, k" + next + ";" : "") +
            " ret; }\n";
  }
  DiagnosticSink sink;
  const auto whole = ParseModule(text, sink);
  const auto module = Lazily(text);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kKernels; ++i) {
        const Function& function =
            *module->FindFunction("k" + std::to_string((i * 7 + static_cast<int>(t) * 50) % kKernels));
        if (!module->unread->Read(function).empty() || function.body->statements.empty()) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(PrintModule(*module) == PrintModule(*whole));
}
