#include "interpose/session/module.h"

#include <algorithm>
#include <cstring>

#include "interpose/session/errors.h"
#include "interpose/session/log.h"
#include "interpose/session/process.h"
#include "interpose/session/slicing.h"
#include "interpose/session/texture.h"
#include "rewriter/image/fatbin.h"
#include "rewriter/image/image_set.h"
#include "rewriter/image/select.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "sim/exec/slices.h"

namespace gridloom::session {

using namespace cuda;

namespace {

constexpr std::uint32_t kElfMagic = 0x464C457F;  // "\x7f" "ELF"

bool SameShape(const exec::Dim3& a, const exec::Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

/// `verify`: for text that people and programs wrote; what nvcc put into a binary has been through ptxas.
CUresult ParseSources(const std::vector<PtxSource>& sources, bool verify, std::vector<std::unique_ptr<ptx::Module>>* parts, JitLog* log) {
  std::string complaints;
  for (const PtxSource& source : sources) {
    DiagnosticSink sink;
    parts->push_back(ptx::ParseModule(source.text, sink));
    if (verify && !sink.has_errors()) ptx::VerifyModule(*parts->back(), sink);
    if (sink.diagnostics().empty()) continue;
    (sink.has_errors() ? complaints : log->info) += FormatDiagnostics(sink, source.name, source.text);
  }
  if (complaints.empty()) return CUDA_SUCCESS;
  log->error += complaints;
  LogFormat(LogLevel::kError, "PTX has errors:\n%s", complaints.c_str());
  return CUDA_ERROR_INVALID_PTX;
}

/// Functions that device code calls and nobody defines: the device's own library, and what passes call (docs/ranges.md).
bool IsProvided(std::string_view name) {
  return name == "vprintf" || name == "malloc" || name == "free" || name == "__assertfail" || name.starts_with("cuda") ||
         name.starts_with("__cuda") || name.starts_with("__nv_") || name.starts_with("cnp") || name.starts_with("gridloom_");
}

CUresult LinkParts(const std::vector<PtxSource>& sources, std::vector<std::unique_ptr<ptx::Module>> parts,
                   std::unique_ptr<ptx::Module>* module, JitLog* log) {
  std::vector<ptx::LinkInput> inputs;
  for (std::size_t i = 0; i < parts.size(); ++i) inputs.push_back({sources[i].name, std::move(parts[i])});
  auto linked = ptx::LinkModules(std::move(inputs), IsProvided);
  if (!linked.ok()) {
    log->error += linked.error().message + "\n";
    LogFormat(LogLevel::kError, "the parts of a program do not link: %s", linked.error().message.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = std::move(linked).value();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult LinkTexts(const std::vector<PtxSource>& sources, std::string* image, JitLog* log) {
  std::vector<std::unique_ptr<ptx::Module>> parts;
  if (const auto status = ParseSources(sources, true, &parts, log); status != CUDA_SUCCESS) return status;
  std::unique_ptr<ptx::Module> module;
  if (const auto status = LinkParts(sources, std::move(parts), &module, log); status != CUDA_SUCCESS) return status;
  *image = ptx::PrintModule(*module);
  return CUDA_SUCCESS;
}

// ---- Kernel -------------------------------------------------------------------------------------------------------------

std::size_t Kernel::Bound::own_params() const { return info->param_bytes.size() - (sliced_already ? sliced->hidden.size() : 0); }

std::uint32_t Kernel::Bound::own_param_bytes() const {
  const std::size_t count = own_params();
  if (count == info->param_bytes.size()) return info->params.bytes;
  return count == 0 ? 0 : info->params.offsets[count - 1] + info->param_bytes[count - 1];
}

CUresult Kernel::Bind(Context* context, Bound* bound) {
  {
    const std::lock_guard lock(mutex_);
    for (const Instance& instance : instances_) {
      if (instance.context == context || context == nullptr) {
        *bound = instance.bound;
        return CUDA_SUCCESS;
      }
    }
  }
  const auto code = code_.lock();
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Bound made;
  if (const auto status = code->ProgramFor(context, &made.program); status != CUDA_SUCCESS) return status;
  made.info = made.program->FindKernel(name_);
  if (made.info == nullptr) return CUDA_ERROR_NOT_FOUND;
  made.sliced = exec::FindSlicedAlready(made.program, *made.info);
  made.sliced_already = made.sliced != nullptr;
  *bound = made;
  if (context == nullptr) return CUDA_SUCCESS;  // the first context that asks adopts the program
  const std::lock_guard lock(mutex_);
  instances_.push_back({context, std::move(made), {}});
  return CUDA_SUCCESS;
}

void Kernel::BindSliced(Context& context, Bound* bound) {
  if (bound->sliced != nullptr) return;
  const auto code = code_.lock();
  if (code == nullptr) return;
  bound->sliced = code->FindSliced(name_, bound->program);
  const std::lock_guard lock(mutex_);
  for (Instance& instance : instances_) {
    if (instance.context == &context && instance.bound.program == bound->program) instance.bound.sliced = bound->sliced;
  }
}

CUresult Kernel::Prepare(Context& context, const std::shared_ptr<exec::Program>& program, const exec::KernelInfo& info, exec::Dim3 block) {
  {
    const std::lock_guard lock(mutex_);
    for (const Instance& instance : instances_) {
      if (instance.context != &context) continue;
      for (const Prepared& prepared : instance.prepared) {
        if (prepared.info == &info && SameShape(prepared.block, block)) return CUDA_SUCCESS;
      }
    }
  }
  const Status status = context.device().engine().Prepare(program, info, block);
  if (!status.ok()) {
    LogFormat(LogLevel::kError, "kernel %s cannot run: %s", name_.c_str(), status.error().message.c_str());
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const std::lock_guard lock(mutex_);
  for (Instance& instance : instances_) {
    if (instance.context != &context) continue;
    if (instance.prepared.size() >= 16) instance.prepared.erase(instance.prepared.begin());
    instance.prepared.push_back({&info, block});
  }
  return CUDA_SUCCESS;
}

void Kernel::ForgetContext(Context& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(instances_, [&](const Instance& instance) { return instance.context == &context; });
}

// ---- Code ---------------------------------------------------------------------------------------------------------------

Code::Code(Device& device, std::vector<PtxSource> sources, bool from_runtime)
    : device_(device), sources_(std::move(sources)), from_runtime_(from_runtime) {}

Code::~Code() = default;

CUresult Code::Load(const void* image, Device& device, JitLog* log, std::shared_ptr<Code>* code) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  const bool from_runtime = magic == image::kWrapperMagic;

  const auto refuse = [log](const std::string& message, CUresult status) {
    LogFormat(LogLevel::kError, "%s", message.c_str());
    if (log != nullptr) log->error += message + "\n";
    return status;
  };
  const auto images = image::ReadImagePointer(image);
  // What is neither an ELF file nor a fat binary can only be meant as PTX.
  const bool text = magic != image::kWrapperMagic && magic != image::kContainerMagic && magic != kElfMagic;
  if (!images.ok() && text) return refuse("this is not PTX: " + images.error().message, CUDA_ERROR_INVALID_PTX);
  if (!images.ok()) return refuse("device code cannot be read: " + images.error().message, CUDA_ERROR_INVALID_IMAGE);
  std::vector<PtxSource> sources;
  if (!images->containers.empty()) {
    const auto entries = image::SelectPtx(*images, device.compute_capability());
    if (!entries.ok()) return refuse(entries.error().message, CUDA_ERROR_NO_BINARY_FOR_GPU);
    for (const image::Entry* entry : *entries) {
      auto text = entry->Read();
      if (!text.ok()) return refuse("PTX cannot be read: " + text.error().message, CUDA_ERROR_INVALID_IMAGE);
      std::string name = entry->source_name.empty() ? Format("part %zu", sources.size() + 1) : std::string(entry->source_name);
      sources.push_back({entries->size() == 1 && entry->source_name.empty() ? "ptx" : std::move(name), std::move(text).value()});
    }
  }
  *code = std::shared_ptr<Code>(new Code(device, std::move(sources), from_runtime));
  return CUDA_SUCCESS;
}

CUresult Code::Parse(std::unique_ptr<ptx::Module>* module, std::string* text, JitLog* log) const {
  std::vector<std::unique_ptr<ptx::Module>> parts;
  if (const auto status = ParseSources(sources_, !from_runtime_, &parts, log); status != CUDA_SUCCESS) return status;
  if (!sources_.empty()) *text = sources_.front().text;
  if (parts.empty()) {  // a container without entries: legal, and holds nothing
    *module = std::make_unique<ptx::Module>();
    return CUDA_SUCCESS;
  }
  if (parts.size() == 1) {
    *module = std::move(parts.front());
    return CUDA_SUCCESS;
  }
  const CUresult status = LinkParts(sources_, std::move(parts), module, log);
  if (status == CUDA_SUCCESS) *text = ptx::PrintModule(**module);
  return status;
}

CUresult Code::ProgramFor(Context* context, std::shared_ptr<exec::Program>* program, JitLog* log) {
  const auto lookup = [&] {
    const std::lock_guard lock(mutex_);
    for (Instance& instance : instances_) {
      if (instance.context == nullptr && context != nullptr) instance.context = context;  // adopt
      if (instance.context == context || context == nullptr) {
        *program = instance.program;
        return true;
      }
    }
    return false;
  };
  if (lookup()) return CUDA_SUCCESS;
  const std::lock_guard loading(load_mutex_);
  if (lookup()) return CUDA_SUCCESS;
  if (failed_ != CUDA_SUCCESS) {
    if (log != nullptr) *log = failed_log_;
    return failed_;
  }
  JitLog own_log;
  std::unique_ptr<ptx::Module> module;
  std::string text;
  CUresult status = Parse(&module, &text, &own_log);
  if (status == CUDA_SUCCESS) {
    Backend* const backend = device_.backend();
    if (backend == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
    auto loaded = backend->Load(std::move(module), std::move(text));
    if (loaded.ok()) {
      *program = std::move(loaded).value();
    } else {
      own_log.error += loaded.error().message + "\n";
      LogFormat(LogLevel::kError, "a module cannot be loaded: %s", loaded.error().message.c_str());
      status = CUDA_ERROR_INVALID_PTX;
    }
  }
  if (log != nullptr) *log = own_log;
  if (status != CUDA_SUCCESS) {
    failed_ = status;
    failed_log_ = std::move(own_log);
    return status;
  }
  const std::lock_guard lock(mutex_);
  instances_.push_back({context, *program});
  return CUDA_SUCCESS;
}

std::shared_ptr<Kernel> Code::KernelNamed(std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Kernel>& kernel = kernels_[std::string(name)];
  if (kernel == nullptr) {
    kernel = std::make_shared<Kernel>(weak_from_this(), std::string(name), from_runtime_);
    Process::Get().kernels.Add(kernel);
  }
  return kernel;
}

CUresult Code::FindKernel(std::string_view name, Context* context, std::shared_ptr<Kernel>* kernel) {
  std::shared_ptr<exec::Program> program;
  if (const auto status = ProgramFor(context, &program); status != CUDA_SUCCESS) return status;
  if (program->FindKernel(name) == nullptr) return CUDA_ERROR_NOT_FOUND;
  *kernel = KernelNamed(name);
  return CUDA_SUCCESS;
}

CUresult Code::AllKernels(Context* context, std::vector<std::shared_ptr<Kernel>>* kernels) {
  std::shared_ptr<exec::Program> program;
  if (const auto status = ProgramFor(context, &program); status != CUDA_SUCCESS) return status;
  for (const exec::KernelInfo& info : program->kernels()) kernels->push_back(KernelNamed(info.name));
  return CUDA_SUCCESS;
}

std::shared_ptr<const exec::SlicedKernel> Code::FindSliced(const std::string& name, const std::shared_ptr<exec::Program>& program) {
  std::shared_ptr<exec::SlicedProgram> sliced;
  {
    const std::lock_guard lock(mutex_);
    for (Instance& instance : instances_) {
      if (instance.program != program) continue;
      if (instance.sliced == nullptr)
        instance.sliced = std::make_shared<exec::SlicedProgram>(program, device_.backend()->memory(), TheRewrites());
      sliced = instance.sliced;
    }
  }
  return sliced != nullptr ? sliced->Find(name) : nullptr;
}

CUresult Code::FindGlobal(std::string_view name, Context* context, const exec::GlobalInfo** global) {
  std::shared_ptr<exec::Program> program;
  if (const auto status = ProgramFor(context, &program); status != CUDA_SUCCESS) return status;
  *global = program->FindGlobal(name);  // lives as long as the program, which this code keeps
  return *global != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

void Code::Unload() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, kernel] : kernels_) Process::Get().kernels.Remove(kernel->kernel_handle());
  for (const auto& [name, texref] : texrefs_) Process::Get().texrefs.Remove(reinterpret_cast<CUtexref>(texref.get()));
  kernels_.clear();
  texrefs_.clear();
  instances_.clear();
}

void Code::ForgetContext(Context& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(instances_, [&](const Instance& instance) { return instance.context == &context; });
  for (const auto& [name, kernel] : kernels_) kernel->ForgetContext(context);
}

std::shared_ptr<TextureReference> Code::FindTextureReference(std::string_view name, Context* context) {
  const exec::GlobalInfo* global = nullptr;
  if (FindGlobal(name, context, &global) != CUDA_SUCCESS) return nullptr;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<TextureReference>& texref = texrefs_[std::string(name)];
  if (texref == nullptr) {
    texref = std::make_shared<TextureReference>();
    texref->address = global->address;
    Process::Get().texrefs.Add(texref);
  }
  return texref;
}

// ---- Library ------------------------------------------------------------------------------------------------------------

std::shared_ptr<Module> Library::ModuleIn(Context& context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Module>& module = modules_[&context];
  if (module == nullptr) {
    module = std::make_shared<Module>(code_, context, false);
    Process::Get().modules.Add(module);
  }
  return module;
}

std::vector<std::shared_ptr<Module>> Library::TakeModules() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Module>> modules;
  for (auto& [context, module] : modules_) modules.push_back(std::move(module));
  modules_.clear();
  return modules;
}

}  // namespace gridloom::session
