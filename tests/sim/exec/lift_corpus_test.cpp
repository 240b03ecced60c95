// Every kernel of the committed PTX corpus either lifts to IR that verifies or is refused with a reason.
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/pipeline.h"
#include "sim/exec/contract/reached.h"
#include "sim/exec/runtime/code_key.h"

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
      if (std::getenv("GRIDLOOM_TEST_VERBOSE"))
        std::cout << path.string() << ':' << lifted.error_line << ": " << lifted.error << '\n';
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

/// What is compiled of a kernel, as text; of one that is refused, where: its message, which is not kept, may have
/// names.
std::string Lifted(const ptx::Module& module, const ptx::Function& kernel, const CompileOptions& options,
                   const llvm::TargetMachine& machine) {
  llvm::LLVMContext context;
  SpmdModule spmd(context, "corpus");
  spmd.ir().setDataLayout(machine.createDataLayout());
  const LiftedKernel lifted = LiftKernel(module, kernel, options, spmd);
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::StripDebugInfo(spmd.ir());  // names of functions, which code does not have
  spmd.ir().print(stream, nullptr);
  stream << lifted.error.empty() << lifted.error_line << ' ' << lifted.facts.static_shared_bytes << ' '
         << lifted.facts.local_bytes << ' ' << lifted.facts.recursive;
  for (const auto& [number, function] : lifted.address_taken) stream << ' ' << number;
  return stream.str();
}

ProgramKey KeyOf(const ptx::Module& module, const ptx::Function& kernel, bool recorded) {
  const SymbolTable symbols = NumberSymbols(module);
  return CodeKey(module, symbols, SharedCodeOf(module, symbols), kernel, recorded);
}

/// Gives other names to what has no name outside of the module, and to parameters in memory.
void Rename(ptx::Module& module) {
  std::map<std::string_view, std::string_view> names;
  const auto another = [&](std::string_view name) {
    return names.try_emplace(name, module.strings.Intern("other_" + std::string(name))).first->second;
  };
  const auto known = [](std::string_view name) {
    return name.starts_with("gridloom_") || name.starts_with("cuda") || name.starts_with("__cuda");
  };
  for (const ptx::Function& function : module.functions) {
    if (function.body != nullptr && function.linkage == ptx::Linkage::kInternal && !known(function.name))
      another(function.name);
  }
  for (ptx::Function& function : module.functions) {
    if (names.contains(function.name)) function.name = names[function.name];
    for (auto* const parameters : {&function.params, &function.returns})
      for (ptx::Variable& parameter : *parameters)
        if (parameter.space != ptx::StateSpace::kReg)
          parameter.name = module.strings.Intern("other_" + std::string(parameter.name));
  }
  for (ptx::Variable& variable : module.variables) {
    if (variable.linkage == ptx::Linkage::kInternal && !known(variable.name))
      variable.name = module.strings.Intern("other_" + std::string(variable.name));
  }
}

/// Takes everything out of the module that is not in the keys of kernels that reach these functions only. `lengths`:
/// how many instructions the others have is in them.
void Strip(ptx::Module& module, const Reached& reached, bool lengths) {
  for (ptx::Function& function : module.functions) {
    if (function.body == nullptr) continue;
    const bool used = std::ranges::find(reached.functions, &function) != reached.functions.end();
    if (used)
      std::erase_if(function.body->statements,
                    [](const auto& one) { return std::holds_alternative<ptx::LocDirective>(one); });
    else if (!lengths || function.is_entry) function.body->statements.clear();
  }
}

/// Each kernel for which that changes something, alone in a module; answers how many there are.
int CheckWithoutTheRest(const std::filesystem::path& path, const llvm::TargetMachine& machine) {
  const std::string text = ReadFile(path);
  DiagnosticSink sink;
  const auto whole = ptx::ParseModule(text, sink);
  int kernels = 0;
  for (const ptx::Function& kernel : whole->functions) {
    if (!kernel.is_entry || !kernel.body) continue;
    for (const Recording record : {Recording::kNone, Recording::kAll}) {
      INFO(path.string() << ' ' << kernel.name << ' ' << static_cast<int>(record));
      CompileOptions options;
      options.record = record;
      const bool recorded = record != Recording::kNone;
      const auto rest = ptx::ParseModule(text, sink);
      const ptx::Function& same = *rest->FindFunction(kernel.name);
      Strip(*rest, ReachedFrom(*rest, same), recorded);
      Rename(*rest);
      CHECK(KeyOf(*rest, same, recorded) == KeyOf(*whole, kernel, recorded));
      CHECK((Lifted(*rest, same, options, machine) == Lifted(*whole, kernel, options, machine)));
    }
    ++kernels;
  }
  return kernels;
}

}  // namespace

// What is not in a kernel's key is nothing that its code depends on.
TEST_CASE("CodeKey_Corpus_HasAllThatCodeDependsOn") {
  std::string error;
  const auto machine = MakeTargetMachine("", error);
  REQUIRE(machine);
  int kernels = 0;
  const char* folder = std::getenv("GRIDLOOM_TEST_PTX");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder ? folder : "tests/data/ptx")) {
    if (entry.path().extension() == ".ptx") kernels += CheckWithoutTheRest(entry.path(), *machine);
  }
  CHECK(kernels > 200);
}

TEST_CASE("LiftKernel_Corpus_LiftsOrRefusesByName") {
  Outcome outcome;
  const char* folder = std::getenv("GRIDLOOM_TEST_PTX");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder ? folder : "tests/data/ptx")) {
    if (entry.path().extension() == ".ptx") LiftFile(entry.path(), outcome);
  }
  CHECK(outcome.lifted > 200);
  if (std::getenv("GRIDLOOM_TEST_VERBOSE"))
    std::cout << outcome.lifted << " lifted, " << outcome.refused << " refused\n";
}
