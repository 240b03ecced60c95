// Links what a text holds: PTX modules separated by NUL bytes. A result has to print, and its print has to parse.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

using gridloom::DiagnosticSink;
using gridloom::ptx::LinkInput;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<LinkInput> inputs;
  while (!rest.empty() && inputs.size() < 8) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(text.size() < rest.size() ? text.size() + 1 : rest.size());
    DiagnosticSink sink;
    auto module = gridloom::ptx::ParseModule(text, sink);
    // Linking is for what parses.
    if (!sink.has_errors()) inputs.push_back({std::to_string(inputs.size()), std::move(module)});
  }
  const auto linked =
      gridloom::ptx::LinkModules(std::move(inputs), [](std::string_view name) { return name == "vprintf"; });
  if (!linked.ok()) return 0;
  DiagnosticSink sink;
  (void)gridloom::ptx::ParseModule(gridloom::ptx::PrintModule(**linked), sink);
  if (sink.has_errors()) std::abort();
  return 0;
}
