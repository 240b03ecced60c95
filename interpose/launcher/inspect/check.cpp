#include "interpose/launcher/inspect/check.h"

#include <dlfcn.h>

#include "interpose/launcher/installation.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/verifier.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/runtime/compiler_loader.h"

namespace gridloom::launcher {
namespace {

Result<exec::CompileFn> LoadCompiler() {
  const auto file = FindLibrary(kCompiler);
  if (!file)
    return Error{"cannot find " + std::string(kCompiler) + " beside " + ToolDirectory().string() +
                 "; build it with scripts/build"};
  GL_TRY(library, exec::OpenCompiler(file->string()));
  const auto compile = reinterpret_cast<exec::CompileFn>(dlsym(library, "gridloom_compile"));
  if (compile == nullptr) return Error{file->string() + " is not Gridloom's compiler"};
  return compile;
}

void CheckContainer(exec::CompileFn compile, const ptx::Module& module, ContainerReport& container) {
  for (KernelReport& kernel : container.kernels) {
    exec::CompiledKernel compiled;
    const exec::CompileOptions options;
    compile(&module, kernel.name.c_str(), &options, &compiled);
    kernel.refused = !compiled.error.empty();
    kernel.check = kernel.refused ? compiled.error : "compiles";
    if (compiled.error_line != 0) kernel.check = "line " + std::to_string(compiled.error_line) + ": " + kernel.check;
  }
}

/// Links the parts of a separately compiled program; what only the system can define stays open and is the compiler's
/// to judge.
Result<std::unique_ptr<ptx::Module>> LinkParts(InspectReport& report) {
  std::vector<ptx::LinkInput> inputs;
  for (ContainerReport& container : report.containers) {
    if (!container.relocatable || container.module == nullptr) continue;
    inputs.push_back(
        {"container " + std::to_string(&container - report.containers.data() + 1), std::move(container.module)});
  }
  return ptx::LinkModules(std::move(inputs), [](std::string_view) { return true; });
}

}  // namespace

Status CheckKernels(InspectReport& report) {
  GL_TRY(compile, LoadCompiler());
  bool has_parts = false;
  for (ContainerReport& container : report.containers) {
    if (container.module == nullptr) continue;
    DiagnosticSink sink;
    ptx::VerifyModule(*container.module, sink);
    AddDiagnostics(sink, container);
    if (container.relocatable) has_parts = true;
    else CheckContainer(compile, *container.module, container);
  }
  if (!has_parts) return {};
  GL_TRY(linked, LinkParts(report));
  for (ContainerReport& container : report.containers) {
    if (container.relocatable) CheckContainer(compile, *linked, container);
  }
  return {};
}

}  // namespace gridloom::launcher
