// A kernel that is compiled again has the same code: no address of what is in memory meanwhile decides anything.
#include <llvm/IR/DebugInfo.h>
#include <llvm/Support/raw_ostream.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/pipeline.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

/// The warp form of a kernel as text; empty where the kernel is refused.
std::string WarpForm(const ptx::Module& module, const ptx::Function& function, const CompileOptions& options) {
  llvm::LLVMContext context;
  std::string text;
  const auto machine = MakeTargetMachine(options.cpu, text);
  REQUIRE(machine);
  SpmdModule spmd(context, "same_code");
  spmd.ir().setDataLayout(machine->createDataLayout());
  LiftedKernel lifted = LiftKernel(module, function, options, spmd);
  if (!lifted.error.empty()) return {};
  llvm::StripDebugInfo(spmd.ir());
  SetTarget(spmd.ir(), *machine);
  OptimizeSpmd(spmd, lifted.address_taken, options, *machine);
  REQUIRE(Vectorize(spmd, lifted.kernel, lifted.address_taken, options, lifted.facts).ok());
  llvm::raw_string_ostream(text) << spmd.ir();
  return text;
}

TEST_CASE("a kernel that is compiled again has the same code") {
  CompileOptions options;
  options.cpu = "x86-64-v4";
  options.block[0] = 256, options.block[1] = options.block[2] = 1;
  options.fetch_ahead = true;
  int kernels = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/ptx/hand")) {
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(text, sink);
    REQUIRE(module);
    for (const ptx::Function& function : module->functions) {
      if (!function.is_entry || !function.body) continue;
      INFO(entry.path().string() << ' ' << function.name);
      const std::string first = WarpForm(*module, function, options);
      if (first.empty()) continue;
      ++kernels;
      CHECK(first == WarpForm(*module, function, options));
    }
  }
  CHECK(kernels > 150);
}

}  // namespace
