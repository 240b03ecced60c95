// Any PTX through every pass, and each kernel out of its module: what parses must not crash one, and what verifies must
// come out as PTX that verifies. The corpus is that of the parser's fuzzer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rewriter/passes/extract.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/registry.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/runtime/register_estimate.h"

using namespace gridloom;

namespace {

/// What came of a module that verifies, and by what.
void CheckValid(const ptx::Module& module, std::string_view by) {
  const std::string printed = ptx::PrintModule(module);
  DiagnosticSink sink;
  const auto again = ptx::ParseModule(printed, sink);
  if (!sink.has_errors() && ptx::VerifyModule(*again, sink)) return;
  std::fprintf(stderr, "after %s:\n%s\n%s", std::string(by).c_str(), printed.c_str(),
               FormatDiagnostics(sink, "printed", printed).c_str());
  std::abort();
}

void ExtractKernels(const ptx::Module& module, bool valid) {
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry) continue;
    const auto variables = passes::VariablesOf(module, function.name);
    if (!variables.ok()) continue;
    passes::VariableAddresses addresses;
    for (const std::string& name : *variables) addresses[name] = 0x7f0000000000 + 64 * addresses.size();
    const auto alone = passes::ExtractKernel(module, function.name, addresses);
    if (alone.ok() && valid) CheckValid(**alone, "extract");
  }
}

/// What is asked of a module out of an image before any of its kernels is compiled; estimates are made of text that
/// nobody verified, too.
void Describe(const ptx::Module& module) {
  for (const ptx::Function& function : module.functions) (void)exec::EstimateRegisters(function);
  DiagnosticSink sink;
  if (!ptx::VerifyModule(module, sink, ptx::PtxOrigin::kCompiled)) return;
  (void)exec::NumberSymbols(module);
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || function.body == nullptr) continue;
    (void)exec::LayoutShared(module, function);
    (void)exec::LayoutLocal(function);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  if (sink.has_errors()) return 0;
  const bool valid = ptx::VerifyModule(*module, sink);
  for (const auto& pass : passes::AllPasses()) {
    const auto rewritten = passes::Run(passes::Pipeline({pass.get()}), *module);
    if (rewritten.ok() && valid) CheckValid(*rewritten->module, pass->name());
  }
  ExtractKernels(*module, valid);
  Describe(*module);
  return 0;
}
