#include "rewriter/passes/consolidate_functions.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "rewriter/kernels/kernels.h"
#include "rewriter/kernels/launch_records.h"
#include "rewriter/passes/deferred_launches.h"
#include "rewriter/passes/module_text.h"
#include "rewriter/passes/serial_kernel.h"

namespace gridloom::passes {
namespace {

using ptx::Function;

constexpr std::string_view kLaunchItself = "gridloom_launch_itself", kSmallThreads = "gridloom_small_threads";

/// What follows an argument's type is its value.
using Arguments = std::initializer_list<std::pair<std::string_view, std::string>>;

std::string CallText(std::string_view function, const Arguments& arguments, std::string_view result = "") {
  std::string text = "\t{\n", list;
  for (const auto& [type, value] : arguments) {
    const std::string name = "a" + std::to_string(list.size());
    text += "\t.param ." + std::string(type) + " " + name + ";\n\tst.param." + std::string(type) + " [" + name + "], " +
            value + ";\n";
    list += (list.empty() ? "" : ", ") + name;
  }
  if (result.empty()) return text + "\tcall " + std::string(function) + ", (" + list + ");\n\t}\n";
  return text + "\t.param .b32 told;\n\tcall (told), " + std::string(function) + ", (" + list + ");\n\tld.param.b32 " +
         std::string(result) + ", [told];\n\t}\n";
}

/// Texts declare what they call.
std::string PrototypeText(std::string_view function, std::initializer_list<std::string_view> types, bool tells) {
  std::string list;
  for (const std::string_view type : types)
    list += (list.empty() ? ".param ." : ", .param .") + std::string(type) + " p" + std::to_string(list.size());
  return ".func " + std::string(tells ? "(.param .b32 told) " : "") + std::string(function) + "(" + list + ");\n";
}

/// The function of kernels/consolidate.cu that launches.
std::string GatherFunction(ConsolidateScope scope, unsigned sm) {
  static constexpr const char* kScopes[] = {"warp", "block", "grid"};
  return "gridloom_launch_for_" + std::string(kScopes[static_cast<std::size_t>(scope)]) + (sm >= 70 ? "_70" : "");
}

/// Where a launch goes: the merged kernel, or the list of the kernel.
std::string TargetOf(const LaunchText& of) {
  switch (of.scope) {
    case ConsolidateScope::kBlock: return "gridloom_list_" + std::string(of.kernel->name);
    case ConsolidateScope::kGrid: return "gridloom_grid_list_" + std::string(of.kernel->name);
    default: return std::string(of.merged->name);
  }
}

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

constexpr std::string_view kParameters = "(.param .b64 buffer, .param .b64 stream)";
constexpr std::string_view kBegin =
    "{\n\t.reg .b64 %buffer, %stream, %kernel;\n\t.reg .b32 %result;\n\t.reg .pred %large;\n"
    "\tld.param.b64 %buffer, [buffer];\n\tld.param.b64 %stream, [stream];\n\tmov.u64 %kernel, ";
constexpr std::string_view kEnd = "\tst.param.b32 [result], %result;\n\tret;\n}\n";

std::string Head(const std::string& function) {
  return ".func (.param .b32 result) " + function + std::string(kParameters);
}

}  // namespace

std::uint32_t SlotBytes(const Function& kernel) {
  return static_cast<std::uint32_t>(sizeof(LaunchSlot)) + (ptx::LayoutParams(kernel).bytes + 15) / 16 * 16;
}

LaunchFunctions LaunchFunctionsOf(const Function& kernel) {
  const std::string name = "_" + std::string(kernel.name);
  return {"gridloom_plain" + name, "gridloom_consolidated" + name};
}

void AddLaunchFunctions(ptx::Module& module, std::string_view prefix, const ConsolidateOptions& options) {
  auto own = kernels::Parse(kernels::kConsolidatePtx);
  for (Function& function : own->functions) {
    for (const auto& [name, suffix] : {std::pair{"gridloom_runtime_buffer", "GetParameterBufferV2"},
                                       std::pair{"gridloom_runtime_launch", "LaunchDeviceV2"}}) {
      if (function.name == name) function.name = own->strings.Intern(std::string(prefix) + suffix);
    }
  }
  std::vector<std::string> wanted = {std::string(kSlotFunction), std::string(kLaunchItself), "gridloom_free_tables",
                                     GatherFunction(options.scope, module.sm())};
  if (options.threshold != 0) wanted.emplace_back(kSmallThreads);
  if (options.scope != ConsolidateScope::kWarp) wanted.emplace_back("gridloom_launch_list");
  if (options.scope == ConsolidateScope::kGrid)
    wanted.insert(wanted.end(), {"gridloom_enter_grid", "gridloom_leave_grid", "gridloom_forget_grid"});
  AddFunctions(module, std::move(*own), wanted);
}

std::string DeclarationsText(const Function& kernel, ConsolidateScope scope) {
  const LaunchFunctions functions = LaunchFunctionsOf(kernel);
  return Head(functions.plain) + ";\n" + Head(functions.launch) + ";\n" + ListsText(kernel, scope);
}

std::string DefinitionsText(const LaunchText& of) {
  const LaunchFunctions functions = LaunchFunctionsOf(*of.kernel);
  const std::string name(of.kernel->name), bytes = std::to_string(ptx::LayoutParams(*of.kernel).bytes),
                                           most = std::to_string(MostThreads(*of.kernel));
  // What a kernel's name stands for is the module's.
  std::string text = ".extern .func " + name + "();\n.extern .func " + std::string(of.merged->name) + "();\n";
  text += DeclarationsText(*of.kernel, of.scope);
  const std::string gather = GatherFunction(of.scope, of.sm);
  text += PrototypeText(kLaunchItself, {"b64", "b64", "b64", "b32"}, true) +
          PrototypeText(gather, {"b64", "b64", "b64", "b32", "b32", "b64"}, true);
  text +=
      Head(functions.plain) + "\n" + std::string(kBegin) + name + ";\n" +
      CallText(kLaunchItself, {{"b64", "%buffer"}, {"b64", "%stream"}, {"b64", "%kernel"}, {"b32", bytes}}, "%result") +
      std::string(kEnd);
  std::string small;
  if (of.threshold != 0) {
    const std::string serial = SerialFunctionName(*of.kernel);
    text += PrototypeText(serial, {"b64"}, false) + PrototypeText(kSmallThreads, {"b64", "b64", "b32"}, true);
    small = CallText(kSmallThreads, {{"b64", "%buffer"}, {"b64", "%stream"}, {"b32", most}}, "%result") +
            "\tsetp.ge.u32 %large, %result, " + std::to_string(of.threshold) + ";\n\t@%large bra LARGE;\n" +
            CallText(serial, {{"b64", "%buffer"}}) + "\tmov.b32 %result, 0;\n\tbra DONE;\nLARGE:\n";
  }
  return text + Head(functions.launch) + "\n" + std::string(kBegin) + name + ";\n\t.reg .b64 %target;\n" + small +
         "\tmov.u64 %target, " + TargetOf(of) + ";\n" +
         CallText(gather,
                  {{"b64", "%buffer"},
                   {"b64", "%stream"},
                   {"b64", "%kernel"},
                   {"b32", bytes},
                   {"b32", most},
                   {"b64", "%target"}},
                  "%result") +
         (small.empty() ? "" : "DONE:\n") + std::string(kEnd);
}

}  // namespace gridloom::passes
