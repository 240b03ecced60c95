// Every kernel of the committed PTX corpus either lifts to IR that verifies or is refused with a reason.
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/pipeline.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int lifted = 0, refused = 0;
};

// GRIDLOOM_TEST_VERBOSE=1 lists refusals.
void LiftFile(const std::filesystem::path& path, Outcome& outcome) {
  const std::string text = ReadFile(path);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  std::string error;
  const auto machine = MakeTargetMachine("", error);
  REQUIRE(machine);
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry || !function.body) continue;
    INFO(path.string() << ' ' << function.name);
    llvm::LLVMContext context;
    SpmdModule spmd(context, "corpus");
    spmd.ir().setDataLayout(machine->createDataLayout());
    const LiftedKernel lifted = LiftKernel(*module, function, {}, spmd);
    if (!lifted.error.empty()) {
      ++outcome.refused;
      CHECK(lifted.error_line != 0);
      if (std::getenv("GRIDLOOM_TEST_VERBOSE")) std::cout << path.string() << ':' << lifted.error_line << ": " << lifted.error << '\n';
      continue;
    }
    ++outcome.lifted;
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    CHECK_FALSE(llvm::verifyModule(spmd.ir(), &stream));
    INFO(problem);
    CHECK(problem.empty());
    SetTarget(spmd.ir(), *machine);
    OptimizeSpmd(spmd, lifted.address_taken, {}, *machine);
    CHECK_FALSE(llvm::verifyModule(spmd.ir(), &stream));
  }
}

}  // namespace

TEST_CASE("LiftKernel_Corpus_LiftsOrRefusesByName") {
  Outcome outcome;
  const char* folder = std::getenv("GRIDLOOM_TEST_PTX");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder ? folder : "tests/data/ptx")) {
    if (entry.path().extension() == ".ptx") LiftFile(entry.path(), outcome);
  }
  CHECK(outcome.lifted > 200);
  if (std::getenv("GRIDLOOM_TEST_VERBOSE")) std::cout << outcome.lifted << " lifted, " << outcome.refused << " refused\n";
}
