#include "rewriter/passes/aggregate_functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "rewriter/passes/module_text.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/visit.h"
#include "rewriter/support/check.h"

namespace gridloom::passes {
namespace {

using ptx::Function;

constexpr std::string_view kModuleHead = ".version 6.0\n.target sm_60\n.address_size 64\n";

// For each function the text of what it calls, then its own. ORIGINAL and STREAM stand for names and handles.

constexpr std::string_view kOriginalBuffer =
    ".extern .func (.param .b32 result) ORIGINAL(.param .b64 buffer, .param .b64 stream);\n"
    ".extern .func (.param .b32 result) cudaLaunchAggGroupV2(.param .b64 buffer);\n";
constexpr std::string_view kOriginalKernel =
    ".extern .func (.param .b32 result) ORIGINAL(.param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 grid[12],"
    " .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 stream);\n"
    ".extern .func (.param .b32 result) cudaLaunchAggGroup(.param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 "
    "grid[12],"
    " .param .align 4 .b8 block[12], .param .b32 shared);\n";

constexpr std::string_view kBufferParams = "(.param .b64 buffer";
constexpr std::string_view kKernelParams =
    "(.param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 "
    "shared";

constexpr std::string_view kLoadBuffer = "\tld.param.b64 %buffer, [buffer];\n";
constexpr std::string_view kLoadKernel =
    "\tld.param.b64 %kernel, [kernel];\n"
    "\tld.param.b64 %buffer, [buffer];\n"
    "\tld.param.b32 %grid_x, [grid];\n"
    "\tld.param.b32 %grid_y, [grid+4];\n"
    "\tld.param.b32 %grid_z, [grid+8];\n"
    "\tld.param.b32 %block_x, [block];\n"
    "\tld.param.b32 %block_y, [block+4];\n"
    "\tld.param.b32 %block_z, [block+8];\n"
    "\tld.param.b32 %shared, [shared];\n";

/// A call of CALLEE with the arguments of a launch, and with STREAM unless that is empty.
std::string CallText(std::string_view callee, bool of_kernel, std::string_view stream) {
  std::string text = "\t{\n", list;
  const auto pass = [&](std::string_view declaration, std::string_view name, const auto&... stores) {
    text += "\t\t.param " + std::string(declaration) + ";\n";
    (..., (text += "\t\tst.param." + std::string(stores) + ";\n"));
    list += (list.empty() ? "" : ", ") + std::string(name);
  };
  if (of_kernel) pass(".b64 a_kernel", "a_kernel", "b64 [a_kernel], %kernel");
  pass(".b64 a_buffer", "a_buffer", "b64 [a_buffer], %buffer");
  if (of_kernel) {
    pass(".align 4 .b8 a_grid[12]", "a_grid", "b32 [a_grid], %grid_x", "b32 [a_grid+4], %grid_y",
         "b32 [a_grid+8], %grid_z");
    pass(".align 4 .b8 a_block[12]", "a_block", "b32 [a_block], %block_x", "b32 [a_block+4], %block_y",
         "b32 [a_block+8], %block_z");
    pass(".b32 a_shared", "a_shared", "b32 [a_shared], %shared");
  }
  if (!stream.empty()) pass(".b64 a_stream", "a_stream", "b64 [a_stream], " + std::string(stream));
  return text + "\t\t.param .b32 a_result;\n\t\tcall (a_result), " + std::string(callee) + ", (" + list +
         ");\n\t\tld.param.b32 %result, [a_result];\n\t}\n";
}

std::string Registers(bool of_kernel, bool compares) {
  std::string text = "\t.reg .b64 %buffer;\n\t.reg .b32 %result;\n";
  if (of_kernel)
    text += "\t.reg .b64 %kernel;\n\t.reg .b32 %grid_x, %grid_y, %grid_z, %block_x, %block_y, %block_z, %shared;\n";
  if (compares) text += "\t.reg .b64 %stream;\n\t.reg .pred %group;\n";
  return text;
}

/// What another driver does, which does not know of groups: it forgets the launch. Without streams for that, as in CUDA
/// dynamic parallelism 1, only a declaration.
std::string GroupText(bool of_kernel, const Function& original) {
  std::string text(of_kernel ? kOriginalKernel : kOriginalBuffer);
  const std::string name = of_kernel ? "cudaLaunchAggGroup" : "cudaLaunchAggGroupV2";
  if (!original.name.starts_with("__cudaCDP2")) return text;
  text = text.substr(0, text.find('\n') + 1);  // not what is defined here
  return text + ".weak .func (.param .b32 result) " + name + std::string(of_kernel ? kKernelParams : kBufferParams) +
         ")\n{\n" + Registers(of_kernel, false) + std::string(of_kernel ? kLoadKernel : kLoadBuffer) +
         CallText("ORIGINAL", of_kernel, std::to_string(kForgotten)) + "\tst.param.b32 [result], %result;\n\tret;\n}\n";
}

std::string EitherText(bool of_kernel) {
  return std::string(of_kernel ? kOriginalKernel : kOriginalBuffer) + ".weak .func (.param .b32 result) " +
         std::string(kEither) + "ORIGINAL" + std::string(of_kernel ? kKernelParams : kBufferParams) +
         ", .param .b64 stream)\n{\n" + Registers(of_kernel, true) +
         std::string(of_kernel ? kLoadKernel : kLoadBuffer) +
         "\tld.param.b64 %stream, [stream];\n"
         "\tsetp.eq.u64 %group, %stream, " +
         std::to_string(kForgotten) + ";\n\tsetp.eq.or.u64 %group, %stream, " + std::to_string(kNoStream) +
         "U, %group;\n\t@%group bra GROUP;\n" + CallText("ORIGINAL", of_kernel, "%stream") + "\tbra DONE;\nGROUP:\n" +
         CallText(of_kernel ? "cudaLaunchAggGroup" : "cudaLaunchAggGroupV2", of_kernel, "") +
         "DONE:\n\tst.param.b32 [result], %result;\n\tret;\n}\n";
}

std::string DestroyText() {
  return ".extern .func (.param .b32 result) ORIGINAL(.param .b64 stream);\n.weak .func (.param .b32 result) " +
         std::string(kEither) +
         "ORIGINAL(.param .b64 stream)\n{\n\t.reg .b64 %stream;\n\t.reg .b32 %result;\n\t.reg .pred %none;\n"
         "\tld.param.b64 %stream, [stream];\n\tmov.b32 %result, 0;\n\tsetp.eq.u64 %none, %stream, " +
         std::to_string(kNoStream) +
         "U;\n\t@%none bra DONE;\n\t{\n\t\t.param .b64 a_stream;\n\t\tst.param.b64 [a_stream], %stream;\n\t\t.param "
         ".b32 a_result;\n"
         "\t\tcall (a_result), ORIGINAL, (a_stream);\n\t\tld.param.b32 %result, [a_result];\n\t}\n"
         "DONE:\n\tst.param.b32 [result], %result;\n\tret;\n}\n";
}

struct Text {
  std::string name, text;
};
Text TextOf(AddedFunction which, const Function& original) {
  const std::string either = std::string(kEither) + std::string(original.name);
  switch (which) {
    case AddedFunction::kGroup: return {"cudaLaunchAggGroupV2", GroupText(false, original)};
    case AddedFunction::kGroupOfKernel: return {"cudaLaunchAggGroup", GroupText(true, original)};
    case AddedFunction::kEitherBuffer: return {either, EitherText(false)};
    case AddedFunction::kEitherKernel: return {either, EitherText(true)};
    case AddedFunction::kDestroyIfThere: return {either, DestroyText()};
  }
  return {};
}

const Function* FunctionOf(const ptx::ModuleItem& item) {
  const auto* const function = std::get_if<Function*>(&item);
  return function == nullptr ? nullptr : *function;
}

/// Puts the function in front of what uses it.
Function& Insert(ptx::Module& module, Function&& function, const Function& user) {
  Function& added = module.functions.emplace_back(std::move(function));
  module.items.insert(std::ranges::find(module.items, &user, FunctionOf), &added);
  return added;
}

/// PTX wants a declaration in front of what uses a function.
void DeclareBefore(ptx::Module& module, const Function& function, const Function& user) {
  const auto at_user = std::ranges::find(module.items, &user, FunctionOf);
  const auto is_it = [&](const ptx::ModuleItem& item) {
    return FunctionOf(item) != nullptr && FunctionOf(item)->name == function.name;
  };
  if (std::find_if(module.items.begin(), at_user, is_it) != at_user) return;
  Function prototype;
  prototype.loc = function.loc;
  prototype.name = function.name;
  prototype.linkage = function.linkage;
  prototype.returns = function.returns;
  prototype.params = function.params;
  Insert(module, std::move(prototype), user);
}

}  // namespace

Function& AddFunction(ptx::Module& module, AddedFunction which, const Function& original, const Function& user) {
  const Text text = TextOf(which, original);
  if (Function* const there = module.FindFunction(text.name)) {
    DeclareBefore(module, *there, user);
    return *there;
  }
  // What looks at the handle calls what launches groups.
  if (which == AddedFunction::kEitherBuffer) AddFunction(module, AddedFunction::kGroup, original, user);
  if (which == AddedFunction::kEitherKernel) AddFunction(module, AddedFunction::kGroupOfKernel, original, user);
  const std::string source = std::string(kModuleHead) + With(text.text, "ORIGINAL", original.name);
  DiagnosticSink sink;
  const auto parsed = ptx::ParseModule(source, sink);
  GL_CHECK(!sink.has_errors(), FormatDiagnostics(sink, "text of a pass", source).c_str());
  Function* const function = parsed->FindFunction(text.name);
  GL_CHECK(function != nullptr, text.name.c_str());
  if (function->body != nullptr) {
    ptx::VisitOperands(*function->body, [&](ptx::Operand& operand) {
      if (operand.function == nullptr) return;
      operand.function = module.FindFunction(operand.function->name);
      GL_CHECK(operand.function != nullptr, text.name.c_str());
    });
  }
  module.strings.Absorb(std::move(parsed->strings));
  return Insert(module, std::move(*function), user);
}

}  // namespace gridloom::passes
