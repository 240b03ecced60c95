// Modules and libraries: loading, and what is found in them.
#include "interpose/objects/module.h"

#include <cstring>

#include "hooks/support.h"
#include "interpose/base/task.h"
#include "interpose/launch/capture.h"
#include "interpose/objects/jit_options.h"
#include "interpose/objects/refused_code.h"
#include "interpose/objects/texture.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::hooks {

using session::Code;
using session::CodeImage;
using session::JitLog;
using session::JitOptions;
using session::Library;
using session::Module;

namespace {

/// Loads and, unless loading is lazy, parses and places. The log goes into the option buffers in any case.
CUresult LoadCode(const CodeImage& image, Device& device, Context* context, bool lazy, JitOptions& options,
                  std::shared_ptr<Code>* code) {
  const std::int64_t start = session::TaskPool::NowNs();
  JitLog log;
  CUresult status = Code::Load(image, device, options.max_registers(), &log, code);
  if (status == CUDA_SUCCESS && !lazy && (*code)->refused() == nullptr) {
    std::shared_ptr<exec::Program> program;
    JitLog parse_log;
    status = (*code)->ProgramFor(context, &program, &parse_log);
    log.info += parse_log.info;
    log.error += parse_log.error;
  }
  options.Store(log, static_cast<float>(session::TaskPool::NowNs() - start) * 1e-6f);
  return status;
}

/// A driver loads a module without PTX if it has machine code for the device. What the runtime registers it takes in
/// any case.
CUresult CheckMachineCode(const session::RefusedCode& code, bool from_runtime, JitOptions& options) {
  if (code.has_machine_code() || from_runtime) return CUDA_SUCCESS;
  code.Tell({});
  options.Store({.info = {}, .error = code.message() + "\n"}, 0);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult LoadModule(Process& process, const CodeImage& image, JitOptions& options, CUmodule* module) {
  Context& context = ThisContext();
  std::shared_ptr<Code> code;
  GL_CU_TRY(LoadCode(image, context.device(), &context, false, options, &code));
  if (const session::RefusedCode* const refused = code->refused())
    GL_CU_TRY(CheckMachineCode(*refused, code->from_runtime(), options));
  code->BindTo(context);
  *module = process.handles.modules.Add(std::make_shared<Module>(std::move(code), context, true));
  return CUDA_SUCCESS;
}

CUresult LoadLibrary(Process& process, const CodeImage& image, CUjit_option* keys, void** values, unsigned count,
                     CUlibrary* library) {
  JitOptions options;
  GL_CU_TRY(JitOptions::Parse(count, keys, values, &options));
  const bool lazy = !process.eager_loading() && !options.wants_logs();
  std::shared_ptr<Code> code;
  Context* const context = session::CurrentContext();
  Device& device = context != nullptr ? context->device() : process.first_device();
  GL_CU_TRY(LoadCode(image, device, nullptr, lazy, options, &code));
  *library = process.handles.libraries.Add(std::make_shared<Library>(std::move(code)));
  return CUDA_SUCCESS;
}

CUresult FindModule(Process& process, CUmodule handle, std::shared_ptr<Module>* module) {
  *module = process.handles.modules.Find(handle);
  return *module != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FindLibrary(Process& process, CUlibrary handle, std::shared_ptr<Library>* library) {
  *library = process.handles.libraries.Find(handle);
  return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuModuleLoadDataEx(Process& process, CUmodule* module, const void* image, unsigned count, CUjit_option* keys,
                            void** values) {
  GL_CU_REQUIRE(module != nullptr && image != nullptr);
  JitOptions options;  // allowed while a stream captures: drivers since 12.3 load modules then, too
  GL_CU_TRY(JitOptions::Parse(count, keys, values, &options));
  return LoadModule(process, {image}, options, module);
}

CUresult cuModuleLoadData(Process& process, CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(process, module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(Process& process, CUmodule* module, const char* file) {
  GL_CU_REQUIRE(module != nullptr && file != nullptr);
  const auto bytes = ReadWholeFile(file);
  if (!bytes.ok()) return CUDA_ERROR_FILE_NOT_FOUND;
  if (bytes->empty()) return CUDA_ERROR_INVALID_IMAGE;
  JitOptions options;
  return LoadModule(process, {bytes->data(), bytes->size()}, options, module);
}

CUresult cuModuleUnload(Process& process, CUmodule handle) {
  std::shared_ptr<Module> module;
  GL_CU_TRY(FindModule(process, handle, &module));
  if (!module->owns_code()) return CUDA_ERROR_NOT_PERMITTED;  // a library's: goes with cuLibraryUnload
  module->context().WaitAll();
  process.handles.modules.Remove(handle);
  module->code().Unload();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(Process& process, CUfunction* function, CUmodule handle, const char* name) {
  GL_CU_REQUIRE(function != nullptr && name != nullptr);
  std::shared_ptr<Module> module;
  GL_CU_TRY(FindModule(process, handle, &module));
  std::shared_ptr<session::Kernel> kernel;
  GL_CU_TRY(module->code().FindKernel(name, &module->context(), &kernel));
  *function = kernel->function_handle();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(Process& process, CUdeviceptr* pointer, std::size_t* bytes, CUmodule handle,
                              const char* name) {
  GL_CU_REQUIRE(name != nullptr);
  std::shared_ptr<Module> module;
  GL_CU_TRY(FindModule(process, handle, &module));
  const exec::GlobalInfo* global = nullptr;
  GL_CU_TRY(module->code().FindGlobal(name, &module->context(), &global));
  Store(pointer, global->address);
  Store(bytes, global->bytes);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(Process& process, unsigned* count, CUmodule handle) {
  GL_CU_REQUIRE(count != nullptr);
  std::shared_ptr<Module> module;
  GL_CU_TRY(FindModule(process, handle, &module));
  std::vector<std::shared_ptr<session::Kernel>> kernels;
  GL_CU_TRY(module->code().AllKernels(&module->context(), &kernels));
  *count = static_cast<unsigned>(kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(Process& process, CUfunction* functions, unsigned count, CUmodule handle) {
  GL_CU_REQUIRE(functions != nullptr || count == 0);
  std::shared_ptr<Module> module;
  GL_CU_TRY(FindModule(process, handle, &module));
  std::vector<std::shared_ptr<session::Kernel>> kernels;
  GL_CU_TRY(module->code().AllKernels(&module->context(), &kernels));
  for (std::size_t i = 0; i < kernels.size() && i < count; ++i) functions[i] = kernels[i]->function_handle();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetTexRef(Process& process, CUtexref* texref, CUmodule handle, const char* name) {
  GL_CU_REQUIRE(texref != nullptr && name != nullptr);
  std::shared_ptr<Module> module;
  GL_CU_TRY(FindModule(process, handle, &module));
  const auto found = module->code().FindTextureReference(name, &module->context());
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *texref = reinterpret_cast<CUtexref>(found.get());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetSurfRef(Process& process, CUsurfref* surfref, CUmodule handle, const char* name) {
  return cuModuleGetTexRef(process, reinterpret_cast<CUtexref*>(surfref), handle, name);
}

// ---- libraries: device code without a context

CUresult cuLibraryLoadData(Process& process, CUlibrary* library, const void* image, CUjit_option* jit_keys,
                           void** jit_values, unsigned jit_count, CUlibraryOption*, void**, unsigned) {
  GL_CU_REQUIRE(library != nullptr && image != nullptr);
  return LoadLibrary(process, {image}, jit_keys, jit_values, jit_count, library);
}

CUresult cuLibraryLoadFromFile(Process& process, CUlibrary* library, const char* file, CUjit_option* jit_keys,
                               void** jit_values, unsigned jit_count, CUlibraryOption*, void**, unsigned) {
  GL_CU_REQUIRE(library != nullptr && file != nullptr);
  const auto bytes = ReadWholeFile(file);
  if (!bytes.ok()) return CUDA_ERROR_FILE_NOT_FOUND;
  if (bytes->empty()) return CUDA_ERROR_INVALID_IMAGE;
  return LoadLibrary(process, {bytes->data(), bytes->size()}, jit_keys, jit_values, jit_count, library);
}

CUresult cuLibraryUnload(Process& process, CUlibrary handle) {
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  library->code().WaitForUsers();
  if (process.handles.libraries.Remove(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& module : library->TakeModules()) {
    process.handles.modules.Remove(reinterpret_cast<CUmodule>(module.get()));
  }
  library->code().Unload();
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(Process& process, CUkernel* kernel, CUlibrary handle, const char* name) {
  GL_CU_REQUIRE(kernel != nullptr && name != nullptr);
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  std::shared_ptr<session::Kernel> found;
  GL_CU_TRY(library->code().FindKernel(name, session::CurrentContext(), &found));
  *kernel = found->kernel_handle();
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(Process& process, CUmodule* module, CUlibrary handle) {
  GL_CU_REQUIRE(module != nullptr);
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  *module = reinterpret_cast<CUmodule>(library->ModuleIn(ThisContext()).get());
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(Process& process, CUdeviceptr* pointer, std::size_t* bytes, CUlibrary handle,
                            const char* name) {
  GL_CU_REQUIRE(name != nullptr);
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  const exec::GlobalInfo* global = nullptr;
  GL_CU_TRY(library->code().FindGlobal(name, &ThisContext(), &global));
  Store(pointer, global->address);
  Store(bytes, global->bytes);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetManaged(Process& process, CUdeviceptr* pointer, std::size_t* bytes, CUlibrary handle,
                             const char* name) {
  GL_CU_REQUIRE(name != nullptr);
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  const exec::GlobalInfo* global = nullptr;
  GL_CU_TRY(library->code().FindGlobal(name, nullptr, &global));
  if (!global->managed) return CUDA_ERROR_NOT_FOUND;
  Store(pointer, global->address);
  Store(bytes, global->bytes);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(Process& process, unsigned* count, CUlibrary handle) {
  GL_CU_REQUIRE(count != nullptr);
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  std::vector<std::shared_ptr<session::Kernel>> kernels;
  GL_CU_TRY(library->code().AllKernels(session::CurrentContext(), &kernels));
  *count = static_cast<unsigned>(kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(Process& process, CUkernel* kernels, unsigned count, CUlibrary handle) {
  GL_CU_REQUIRE(kernels != nullptr || count == 0);
  std::shared_ptr<Library> library;
  GL_CU_TRY(FindLibrary(process, handle, &library));
  std::vector<std::shared_ptr<session::Kernel>> found;
  GL_CU_TRY(library->code().AllKernels(session::CurrentContext(), &found));
  for (std::size_t i = 0; i < found.size() && i < count; ++i) kernels[i] = found[i]->kernel_handle();
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
