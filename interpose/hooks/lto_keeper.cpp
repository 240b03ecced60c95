#include "interpose/hooks/lto_keeper.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <variant>

#include "interpose/hooks/answer.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::hooks {
namespace {

constexpr std::string_view kKeeper = "gridloom_keep";

using Program = void*;       // nvrtcProgram
using Result = int;          // nvrtcResult
constexpr Result kGood = 0;  // NVRTC_SUCCESS

template <typename Function>
Function* Nvrtc(const char* name) {
  return reinterpret_cast<Function*>(LoadedFunction("libnvrtc.so", name));
}

/// A function's type does not matter: its address is taken.
std::string KeeperSource(const UndefinedNames& names) {
  std::string declarations, uses;
  const auto add = [&](const std::string& name, const char* before, const char* after) {
    declarations += "extern \"C\" __device__ " + std::string(before) + name + after + ";\n";
    uses += "  *to++ = (const void*)&" + name + ";\n";
  };
  for (const std::string& name : names.functions) add(name, "void ", "()");
  for (const std::string& name : names.variables) add(name, "char ", "[]");
  return declarations + "extern \"C\" __global__ void " + std::string(kKeeper) + "(const void** to) {\n" + uses + "}\n";
}

std::string LtoIrOf(Program program) {
  const auto get_size = Nvrtc<Result(Program, std::size_t*)>("nvrtcGetLTOIRSize");
  const auto get = Nvrtc<Result(Program, char*)>("nvrtcGetLTOIR");
  std::size_t size = 0;
  if (get_size == nullptr || get == nullptr || get_size(program, &size) != kGood) return {};
  std::string code(size, '\0');
  return get(program, code.data()) == kGood ? code : std::string();
}

}  // namespace

UndefinedNames FindUndefined(const std::vector<session::PtxSource>& sources) {
  std::set<std::string> defined, functions, variables;
  for (const session::PtxSource& source : sources) {
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(source.text, sink);
    if (sink.has_errors()) continue;
    for (const ptx::Function& function : module->functions) {
      if (function.body != nullptr) defined.emplace(function.name);
      else if (function.linkage == ptx::Linkage::kExtern) functions.emplace(function.name);
    }
    for (const ptx::Variable& variable : module->variables)
      (variable.linkage == ptx::Linkage::kExtern ? variables : defined).emplace(variable.name);
  }
  UndefinedNames names;
  const auto is_missing = [&](const std::string& name) {
    return !defined.contains(name) && !session::IsProvided(name);
  };
  std::ranges::copy_if(functions, std::back_inserter(names.functions), is_missing);
  std::ranges::copy_if(variables, std::back_inserter(names.variables), is_missing);
  return names;
}

std::string CompileKeeper(const UndefinedNames& names, std::string_view architecture) {
  using Create = Result(Program*, const char*, const char*, int, const char* const*, const char* const*);
  const auto create = Nvrtc<Create>("nvrtcCreateProgram");
  const auto compile = Nvrtc<Result(Program, int, const char* const*)>("nvrtcCompileProgram");
  const auto destroy = Nvrtc<Result(Program*)>("nvrtcDestroyProgram");
  if (create == nullptr || compile == nullptr || destroy == nullptr) return {};
  const std::string number(architecture.substr(std::min(architecture.find('_'), architecture.size() - 1) + 1));
  const std::string source = KeeperSource(names), target = "-arch=compute_" + number;
  const char* const options[] = {target.c_str(), "-dlto", "-rdc=true"};
  Program program = nullptr;
  if (create(&program, source.c_str(), "keeper.cu", 0, nullptr, nullptr) != kGood) return {};
  std::string code = compile(program, 3, options) == kGood ? LtoIrOf(program) : std::string();
  destroy(&program);
  return code;
}

std::string RemoveKeeper(std::string ptx, const UndefinedNames& names) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  if (sink.has_errors()) return ptx;
  for (const std::string& name : names.functions) {
    ptx::Function* const function = module->FindFunction(name);
    if (function != nullptr && function->body != nullptr && function->linkage == ptx::Linkage::kInternal)
      function->linkage = ptx::Linkage::kVisible;
  }
  for (const std::string& name : names.variables) {
    ptx::Variable* const variable = module->FindVariable(name);
    if (variable != nullptr && variable->linkage == ptx::Linkage::kInternal) variable->linkage = ptx::Linkage::kVisible;
  }
  std::erase_if(module->items, [](const ptx::ModuleItem& item) {
    const auto* const function = std::get_if<ptx::Function*>(&item);
    return function != nullptr && (*function)->name == kKeeper;
  });
  return ptx::PrintModule(*module);
}

}  // namespace gridloom::hooks
