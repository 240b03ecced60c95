// Entry points of libgridloom-compiler.so.
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <mutex>

#include "sim/exec/compiler/bytecode.h"
#include "sim/exec/compiler/bytecode_expand.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/debug_lines.h"
#include "sim/exec/compiler/deep_stack.h"
#include "sim/exec/compiler/find_line.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/pipeline.h"
#include "sim/exec/compiler/vectorizer.h"
#include "sim/exec/contract/abi.h"

namespace gridloom::exec {
namespace {

/// Raised whenever generated code changes, so that objects in the disk cache made by an older compiler are not used.
constexpr const char* kCompilerVersion = "62";

/// Generated code calls helpers by their place in helpers.def: a number for that list.
constexpr std::uint64_t HelpersHash() {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::string_view name : {
#define GL_HELPER(name, convergent, reads, writes) std::string_view(#name),
#include "sim/exec/contract/helpers.def"
#undef GL_HELPER
       }) {
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ ',') * 0x100000001b3;
  }
  return hash;
}

std::string Print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

/// A module that does not verify is our own bug: it is reported as a compile error, never run.
bool Verifies(const llvm::Module& module, const char* stage, CompiledKernel& out) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (!llvm::verifyModule(module, &stream)) return true;
  out.error = std::string("internal error: the ") + stage + " does not verify: " + problem.substr(0, 400);
  return false;
}

/// False, and nothing of use in `out`: the warps were to take turns, but their frames would be too large.
bool CompileAs(const ptx::Module& module, const ptx::Function& function, const CompileOptions& options, bool with_lines,
               bool may_take_turns, CompiledKernel& out) {
  llvm::LLVMContext context;
  std::string error;
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(options.cpu, error);
  if (!machine) {
    out.error = "no code generator for this host: " + error;
    return true;
  }
  SpmdModule spmd(context, function.name);
  spmd.ir().setDataLayout(machine->createDataLayout());
  LiftedKernel lifted = LiftKernel(module, function, options, spmd);
  if (!lifted.error.empty()) {
    out.error = lifted.error;
    out.error_line = lifted.error_line;
    return true;
  }
  if (!with_lines && !options.memcheck) llvm::StripDebugInfo(spmd.ir());
  SetTarget(spmd.ir(), *machine);
  if (options.keep_ir) out.ir += "; ---- SPMD form as lifted\n" + Print(spmd.ir());
  if (!Verifies(spmd.ir(), "lifted kernel", out)) return true;
  OptimizeSpmd(spmd, lifted.address_taken, options, *machine);  // memcheck needs the lines
  if (!with_lines) llvm::StripDebugInfo(spmd.ir());
  if (options.keep_ir) out.ir += "; ---- SPMD form, optimised\n" + Print(spmd.ir());
  out.facts() = lifted.facts;
  if (const Status done = Vectorize(spmd, lifted.kernel, lifted.address_taken, options, out, may_take_turns);
      !done.ok()) {
    out.error = done.error().message;
    return true;
  }
  if (options.keep_ir) out.ir += "; ---- warp form\n" + Print(spmd.ir());
  if (!Verifies(spmd.ir(), "warp form", out)) return true;
  if (!OptimizeWarp(spmd.ir(), options, out.turns, *machine)) return false;
  if (options.keep_ir) out.ir += "; ---- warp form, optimised\n" + Print(spmd.ir());
  if (with_lines) GiveLinesOfLoads(spmd.ir());
  out.object = EmitObject(spmd.ir(), *machine, out.error);
  out.frame_bytes = FrameBytes(out.object);
  return true;
}

void Compile(const ptx::Module& module, const char* name, const CompileOptions& options, bool with_lines,
             CompiledKernel& out) {
  const ptx::Function* function = module.FindFunction(name);
  if (!function || !function->is_entry || !function->body) {
    out.error = std::string("no kernel named '") + name + "' in the module";
    return;
  }
  if (CompileAs(module, *function, options, with_lines, true, out)) return;
  out = {};
  CompileAs(module, *function, options, with_lines, false, out);
}

void Interpret(const ptx::Module& module, const char* name, const CompileOptions& options, InterpretedKernel& out) {
  if (options.record != Recording::kNone) {
    out.refuses = "records";
    return;
  }
  const ptx::Function* function = module.FindFunction(name);
  if (!function || !function->is_entry || !function->body) {
    out.error = std::string("no kernel named '") + name + "' in the module";
    return;
  }
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(options.cpu, out.error);
  if (!machine) return;
  SpmdModule spmd(context, name);
  spmd.ir().setDataLayout(machine->createDataLayout());
  LiftedKernel lifted = LiftKernel(module, *function, options, spmd);
  out.error = lifted.error;
  if (!out.error.empty()) return;
  if (!options.memcheck) llvm::StripDebugInfo(spmd.ir());
  SetTarget(spmd.ir(), *machine);
  OptimizeSpmd(spmd, lifted.address_taken, options, *machine);
  llvm::StripDebugInfo(spmd.ir());
  ExpandForBytecode(spmd.ir());
  BytecodeResult made = MakeBytecode(spmd, lifted.kernel, lifted.address_taken, options);
  out.refuses = std::move(made.error);
  out.code = std::move(made.code);
  out.facts() = lifted.facts;
  out.needs_fiber = made.needs_fiber;
}

}  // namespace

extern "C" void gridloom_compile(const ptx::Module* module, const char* kernel, const CompileOptions* options,
                                 CompiledKernel* out) {
  *out = {};
  OnDeepStack([&] { Compile(*module, kernel, *options, false, *out); });
}

extern "C" void gridloom_interpret(const ptx::Module* module, const char* kernel, const CompileOptions* options,
                                   InterpretedKernel* out) {
  *out = {};
  OnDeepStack([&] { Interpret(*module, kernel, *options, *out); });
}

extern "C" std::uint32_t gridloom_find_line(const ptx::Module* module, const char* kernel,
                                            const CompileOptions* options, std::uint64_t text_offset,
                                            std::uint64_t text_bytes) {
  CompiledKernel compiled;
  OnDeepStack([&] { Compile(*module, kernel, *options, true, compiled); });
  return compiled.error.empty() ? LineAt(compiled.object, text_offset, text_bytes) : 0;
}

extern "C" const char* gridloom_compiler_id(const char* cpu) {
  static std::mutex mutex;
  static auto* ids = new std::map<std::string, std::string>;  // never destroyed: callers keep the pointer
  const std::lock_guard lock(mutex);
  std::string& id = (*ids)[cpu ? cpu : ""];
  if (id.empty()) {
    id = std::string("gridloom-compiler ") + kCompilerVersion + " abi " + std::to_string(kAbiVersion) + " helpers " +
         std::to_string(HelpersHash()) + " llvm " LLVM_VERSION_STRING " cpu ";
    if (cpu && *cpu) {
      id += cpu;
    } else {
      id += llvm::sys::getHostCPUName().str();
      for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
        if (feature.getValue()) id += "+" + feature.getKey().str();
      }
    }
  }
  return id.c_str();
}

}  // namespace gridloom::exec
