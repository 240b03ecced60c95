#include "rewriter/passes/consolidate_functions.h"

#include <algorithm>

#include "rewriter/passes/aggregate_functions.h"
#include "rewriter/passes/consolidate_text.h"
#include "rewriter/passes/deferred_launches.h"
#include "rewriter/passes/merged_kernel.h"
#include "rewriter/passes/module_text.h"
#include "rewriter/passes/serial_kernel.h"

namespace gridloom::passes {
namespace {

using ptx::Function;

/// Copies parameters from a slot to `to`, both aligned to 16 bytes; not a byte more.
std::string CopyText(std::uint32_t bytes, const std::string& to) {
  std::string text;
  std::uint32_t at = 0;
  const auto copy = [&](const std::string& type, const std::string& values) {
    text += "\tld.local." + type + " " + values + ", [%buffer+" + std::to_string(at) + "];\n\tst.global." + type +
            " [" + to + "+" + std::to_string(at) + "], " + values + ";\n";
  };
  for (; at + 16 <= bytes; at += 16) copy("v2.b64", "{%copy0, %copy1}");
  for (; at + 8 <= bytes; at += 8) copy("b64", "%copy0");
  for (; at + 4 <= bytes; at += 4) copy("b32", "%copy2");
  for (; at < bytes; ++at) copy("b8", "%copy3");
  return text;
}
constexpr std::string_view kCopyRegisters = "\t.reg .b64 %copy0, %copy1;\n\t.reg .b32 %copy2;\n\t.reg .b16 %copy3;\n";

/// Threads that a block of the kernel may have; launches of more fail.
std::uint64_t MostThreads(const Function& kernel) {
  std::uint64_t most = 1024;
  for (const std::string_view name : {"maxntid", "reqntid"}) {
    const ptx::FunctionDirective* const directive = kernel.FindDirective(name);
    if (directive == nullptr) continue;
    std::uint64_t threads = 1;
    for (const std::uint64_t value : directive->values) threads *= value;
    most = std::min(most, threads);
  }
  return most;
}

/// Puts in what all texts have.
std::string Fill(std::string text, const Function& kernel, std::string_view prefix) {
  const LaunchFunctions functions = LaunchFunctionsOf(kernel);
  const std::pair<std::string_view, std::string> kAll[] = {
      {"<registers>", std::string(kSlotRegisters) + std::string(kCopyRegisters)},
      {"<load>", std::string(kLoadSlot)},
      {"<get>", std::string(kGetBuffer)},
      {"<call>", std::string(kLaunchBuffer)},
      {"<no_memory>", std::string(kNoMemory)},
      {"<forgotten>", std::to_string(kForgotten)},
      {"<no_stream>", std::to_string(kNoStream)},
      {"<most_threads>", std::to_string(MostThreads(kernel))},
      {"<record_bytes>", std::to_string(RecordBytes(kernel))},
      {"<prefix>", std::string(prefix)},
      {"<plain>", functions.plain},
      {"<launch>", functions.launch},
      {"<kernel>", std::string(kernel.name)},
  };
  for (const auto& [placeholder, by] : kAll) text = With(std::move(text), placeholder, by);
  return text;
}

}  // namespace

std::uint32_t SlotBytes(const Function& kernel) { return kSlotHead + (ptx::LayoutParams(kernel).bytes + 15) / 16 * 16; }

LaunchFunctions LaunchFunctionsOf(const Function& kernel) {
  const std::string name = "_" + std::string(kernel.name);
  return {"gridloom_plain" + name, "gridloom_consolidated" + name};
}

std::string DeclarationsText(const Function& kernel, std::string_view prefix, ConsolidateScope scope) {
  return Fill(std::string(kRuntime) + std::string(kOwn), kernel, prefix) + ListsText(kernel, scope);
}

std::string SlotFunctionText() { return With(std::string(kSlot), "<slot_head>", std::to_string(kSlotHead)); }

std::string DefinitionsText(const LaunchText& of) {
  const std::uint32_t bytes = ptx::LayoutParams(*of.kernel).bytes;
  // What a kernel's name stands for is the module's.
  std::string text = ".extern .func <kernel>();\n.extern .func <merged>();\n";
  if (of.threshold != 0) text += ".func " + SerialFunctionName(*of.kernel) + "(.param .b64 buffer);\n";
  text += std::string(kPlain) + std::string(kHead) + std::string(kSortOut);
  if (of.threshold != 0)
    text += With(With(std::string(kSmall), "<threshold>", std::to_string(of.threshold)), "<serial>",
                 SerialFunctionName(*of.kernel));
  text += With(std::string(kFindGroup), "<match>", of.sm >= 70 ? kMatch : kMatchInTurn);
  switch (of.scope) {
    case ConsolidateScope::kWarp: text += kWarp; break;
    case ConsolidateScope::kBlock: text += kBlock; break;
    case ConsolidateScope::kGrid: text += kGrid; break;
  }
  if (of.scope != ConsolidateScope::kWarp) text += LaunchListText(of);
  text = With(With(std::move(text), "<fill>", kFillTable), "<make>", kMake);
  text = With(std::move(text), "<copy>", CopyText(bytes, "%made"));
  text = With(std::move(text), "<copy_record>", CopyText(bytes, "%place"));
  return DeclarationsText(*of.kernel, of.prefix, of.scope) +
         Fill(With(std::move(text), "<merged>", of.merged->name), *of.kernel, of.prefix);
}

}  // namespace gridloom::passes
