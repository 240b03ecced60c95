#include "tests/rewriter/analysis/parse.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"

namespace gridloom::analysis::testing {

std::unique_ptr<ptx::Module> ParseItems(const std::string& items) {
  const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n" + items;
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, "test", text));
  REQUIRE_FALSE(sink.has_errors());
  return module;
}

std::unique_ptr<ptx::Module> ParseKernel(const std::string& body) {
  return ParseItems(
      ".visible .entry k()\n{\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<64>;\n.reg .pred %p<64>;\n" + body +
      "\n}\n");
}

}  // namespace gridloom::analysis::testing
