// Any PTX through every pass: what parses must not crash one, and what verifies must come out as PTX that verifies. The corpus is
// that of the parser's fuzzer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/registry.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"

using namespace gridloom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  if (sink.has_errors()) return 0;
  const bool valid = ptx::VerifyModule(*module, sink);
  for (const auto& pass : passes::AllPasses()) {
    const auto rewritten = passes::Run(passes::Pipeline({pass.get()}), *module);
    if (!rewritten.ok() || !valid) continue;
    const std::string printed = ptx::PrintModule(*rewritten->module);
    DiagnosticSink second;
    const auto again = ptx::ParseModule(printed, second);
    if (!second.has_errors() && ptx::VerifyModule(*again, second)) continue;
    std::fprintf(stderr, "after %s:\n%s\n%s", std::string(pass->name()).c_str(), printed.c_str(),
                 FormatDiagnostics(second, "printed", printed).c_str());
    std::abort();
  }
  return 0;
}
