#include "interpose/launcher/rewrite/machine_slices.h"

#include <algorithm>
#include <utility>

#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/terminal.h"

namespace gridloom::launcher {
namespace {

using Code = std::optional<std::vector<std::byte>>;

Result<Code> SliceEntry(const image::Entry& entry, CodePiece& piece) {
  auto bytes = entry.Read();
  auto sliced = bytes.ok() ? machine::SliceCubin(image::AsBytes(*bytes)) : Result<machine::SlicedCubin>(bytes.error());
  if (!sliced.ok()) {
    piece.problem = sliced.error().message;
    return Code();
  }
  piece.kernels = std::move(sliced->kernels);
  const auto is_sliced = [](const machine::SlicedKernel& kernel) { return kernel.why_whole.empty(); };
  if (std::ranges::none_of(piece.kernels, is_sliced)) return Code();
  return Code(std::move(sliced->bytes));
}

std::string Registers(const machine::SlicedKernel& kernel) {
  if (kernel.registers == kernel.registers_before) return {};
  return ", " + std::to_string(kernel.registers) + " registers in place of " + std::to_string(kernel.registers_before);
}

}  // namespace

image::CodeEdit SliceMachineCode(const std::string& file, std::deque<CodePiece>& pieces) {
  return [&pieces, file](const image::Entry& entry) {
    CodePiece& piece = pieces.emplace_back();
    piece.name = file + ", machine code " + std::to_string(pieces.size()) + " for " + entry.arch.text();
    return SliceEntry(entry, piece);
  };
}

std::string OutcomeText(const CodePiece& piece) {
  Table table({"", "kernel", "its sliced form, or why it has none"});
  if (!piece.problem.empty()) table.Add({"unchanged", "", piece.problem});
  for (const machine::SlicedKernel& kernel : piece.kernels) {
    const bool sliced = kernel.why_whole.empty();
    table.Add({sliced ? "added" : "refused", DemangledName(kernel.name),
               sliced ? machine::SlicedName(kernel.name) + Registers(kernel) : "slice: " + kernel.why_whole});
  }
  return Coloured(Colour::kBold, piece.name) + "\n" + table.Text(2);
}

nlohmann::ordered_json OutcomeJson(const CodePiece& piece) {
  nlohmann::ordered_json json{{"name", piece.name}};
  if (!piece.problem.empty()) json["problem"] = piece.problem;
  json["kernels"] = nlohmann::ordered_json::array();
  for (const machine::SlicedKernel& kernel : piece.kernels) {
    nlohmann::ordered_json one{{"name", kernel.name}, {"demangled", DemangledName(kernel.name)}};
    if (kernel.why_whole.empty()) {
      one["sliced_form"] = machine::SlicedName(kernel.name);
      one["registers"] = kernel.registers;
      one["registers_before"] = kernel.registers_before;
    } else {
      one["reason"] = kernel.why_whole;
    }
    json["kernels"].push_back(std::move(one));
  }
  return json;
}

}  // namespace gridloom::launcher
