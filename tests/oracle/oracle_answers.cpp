// What Gridloom says of the PTX that scripts/oracle makes.
//
//   oracle_answers words FILE         line and reason of each instruction that is not run, of a PTX file or all PTX in
//                                     a program or library
//   oracle_answers run TIERS FILE     what each kernel of the file writes, in hexadecimal: a line "NAME WORD WORD …"
//
// Kernels take two addresses: 256 bytes to read (from standard input, in hexadecimal, words of 32 bits) and 64 bytes to
// write.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "rewriter/image/image_set.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/diagnostic.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;

namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void VerifyBlock(const ptx::Module& module, const ptx::Block& block) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* inner = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) VerifyBlock(module, **inner);
    const auto* instruction = std::get_if<ptx::Instruction>(&statement);
    if (instruction == nullptr) continue;
    DiagnosticSink sink;
    if (ptx::VerifyInstruction(module, *instruction, sink)) continue;
    std::printf("%u %s\n", instruction->loc.line, sink.diagnostics().front().message.c_str());
  }
}

void VerifyText(const char* path, const std::string& text) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  if (sink.has_errors()) {
    std::cerr << FormatDiagnostics(sink, path, text);
    return;
  }
  for (const ptx::Function& function : module->functions)
    if (function.body) VerifyBlock(*module, *function.body);
}

int Words(const char* path) {
  const auto images = image::ReadImageFile(path);
  if (!images) {
    std::cerr << images.error().message << '\n';
    return 1;
  }
  for (const image::Container& container : images->containers) {
    for (const image::Entry& entry : container.entries) {
      if (entry.kind != image::EntryKind::kPtx) continue;
      const auto text = entry.Read();
      if (text) VerifyText(path, *text);
    }
  }
  return 0;
}

int Run(const char* tiers, const char* path) {
  const std::string text = ReadFile(path);
  std::vector<std::uint32_t> input(64), output(16);
  for (std::uint32_t& word : input) std::cin >> std::hex >> word;
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  if (sink.has_errors()) {
    std::cerr << FormatDiagnostics(sink, path, text);
    return 1;
  }
  exec::Engine::Options options;
  options.threads = 1;
  options.tiers = tiers;
  test::Executor executor(options);
  const std::uint64_t in = executor.Upload(input), out = executor.Upload(output);
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry) continue;
    const std::string name(function.name);
    std::memset(reinterpret_cast<void*>(out), 0, output.size() * sizeof output[0]);
    const exec::LaunchFault fault =
        executor.Launch(text, name, {1, 1, 1}, {1, 1, 1}, test::ParamBlock().Add(in).Add(out));
    executor.Download(out, output);
    std::printf("%s", name.c_str());
    if (fault.kind != exec::FaultKind::kNone) std::printf(" fault %s", fault.text.c_str());
    else
      for (const std::uint32_t word : output) std::printf(" %08x", word);
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "words" && argc == 3) return Words(argv[2]);
  if (what == "run" && argc == 4) return Run(argv[2], argv[3]);
  std::fprintf(stderr, "usage: oracle_answers words FILE | run TIERS FILE\n");
  return 2;
}
