#include "interpose/objects/module.h"

#include <algorithm>
#include <cstring>

#include "interpose/base/log.h"
#include "interpose/base/refusals.h"
#include "interpose/base/rewrites.h"
#include "interpose/objects/errors.h"
#include "interpose/objects/launch_passes.h"
#include "interpose/objects/process.h"
#include "interpose/objects/refused_code.h"
#include "interpose/objects/texture.h"
#include "rewriter/image/fatbin.h"
#include "rewriter/image/image_set.h"
#include "rewriter/ptx/printer.h"
#include "sim/exec/slices/slices.h"

namespace gridloom::session {

using namespace cuda;

namespace {

constexpr std::uint32_t kElfMagic = 0x464C457F;  // "\x7f" "ELF"

std::uint32_t MagicOf(const CodeImage& image) {
  std::uint32_t magic = 0;
  const std::size_t readable = std::min(image.bytes.value_or(sizeof magic), sizeof magic);
  std::memcpy(&magic, image.data, strnlen(static_cast<const char*>(image.data), readable));  // text may end before
  return magic;
}

Result<image::ImageSet> ReadImage(const CodeImage& image) {
  if (!image.bytes) return image::ReadImagePointer(image.data);
  const image::Bytes bytes(static_cast<const std::byte*>(image.data), *image.bytes);
  // One container, as behind a pointer, whatever follows it in the file.
  const std::uint64_t container = image::ContainerSize(bytes).value_or(bytes.size());
  return image::ReadImages(bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(container, bytes.size()))));
}

/// For a kernel that its program does not give: the log has what is wrong with it.
CUresult WhyNoKernel(const exec::Program& program, std::string_view name) {
  const std::string problem = program.ProblemOf(name);
  if (problem.empty()) return CUDA_ERROR_NOT_FOUND;
  NoteRefused(RefusedKind::kKernel, name, problem);
  LogFormat(LogLevel::kError, "the PTX of kernel %s has errors:\n%s", std::string(name).c_str(), problem.c_str());
  return CUDA_ERROR_INVALID_PTX;
}

bool SameShape(const exec::Dim3& a, const exec::Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

}  // namespace

// ---- Kernel

std::size_t Kernel::Bound::own_params() const {
  return info->param_bytes.size() - (sliced_already ? sliced->hidden.size() : 0);
}

std::uint32_t Kernel::Bound::own_param_bytes() const {
  const std::size_t count = own_params();
  if (count == info->param_bytes.size()) return info->params.bytes;
  return count == 0 ? 0 : info->params.offsets[count - 1] + info->param_bytes[count - 1];
}

CUresult Kernel::Bind(Context* context, Bound* bound) {
  if (owner_ != nullptr) context = owner_;
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
  if (code->refused() != nullptr) code->refused()->Tell(name_);
  Bound made;
  if (const auto status = code->ProgramFor(context, &made.program); status != CUDA_SUCCESS) return status;
  made.info = made.program->FindKernel(name_);
  if (made.info == nullptr) return WhyNoKernel(*made.program, name_);
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

CUresult Kernel::Prepare(Context& context, const std::shared_ptr<exec::Program>& program, const exec::KernelInfo& info,
                         exec::Dim3 block) {
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
    NoteRefused(RefusedKind::kKernel, name_, status.error().message);
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

// ---- Code

Code::Code(Device& device, std::vector<PtxSource> sources, bool from_runtime, std::string library,
           std::unique_ptr<const RefusedCode> refused)
    : device_(device),
      sources_(std::move(sources)),
      from_runtime_(from_runtime),
      library_(std::move(library)),
      refused_(std::move(refused)) {}

Code::~Code() = default;

CUresult Code::Load(const CodeImage& image, Device& device, std::uint32_t max_registers, JitLog* log,
                    std::shared_ptr<Code>* code) {
  const std::uint32_t magic = MagicOf(image);
  const bool from_runtime = magic == image::kWrapperMagic;

  const auto refuse = [&](const std::string& message, CUresult status) {
    LogFormat(LogLevel::kError, "%s", message.c_str());
    NoteRefused(RefusedKind::kModule, FileOf(image.data), message);
    if (log != nullptr) log->error += message + "\n";
    return status;
  };
  const auto images = ReadImage(image);
  // What is neither an ELF file nor a fat binary can only be meant as PTX.
  const bool text = magic != image::kWrapperMagic && magic != image::kContainerMagic && magic != kElfMagic;
  if (!images.ok() && text) return refuse("this is not PTX: " + images.error().message, CUDA_ERROR_INVALID_PTX);
  if (!images.ok()) return refuse("device code cannot be read: " + images.error().message, CUDA_ERROR_INVALID_IMAGE);
  std::vector<PtxSource> sources;
  std::string why;
  std::unique_ptr<const RefusedCode> refused;
  const CUresult status = SelectSources(*images, device.compute_capability(), &sources, &why);
  if (status == CUDA_ERROR_NO_BINARY_FOR_GPU)
    refused = std::make_unique<const RefusedCode>(image.data, *images, device.compute_capability(), std::move(why));
  else if (status != CUDA_SUCCESS) return refuse(why, status);
  for (PtxSource& source : sources)
    if (source.max_registers == 0) source.max_registers = max_registers;
  *code =
      std::shared_ptr<Code>(new Code(device, std::move(sources), from_runtime, FileOf(image.data), std::move(refused)));
  return CUDA_SUCCESS;
}

CUresult Code::Parse(std::unique_ptr<ptx::Module>* module, std::string* text, JitLog* log) const {
  std::string why;
  const CUresult status =
      ParseSources(sources_, from_runtime_ ? ptx::PtxOrigin::kCompiled : ptx::PtxOrigin::kWritten, module, log, &why);
  if (status != CUDA_SUCCESS) {
    LogFormat(LogLevel::kError, "%s", why.c_str());
    NoteRefused(RefusedKind::kModule, library_, why);
  } else if (sources_.size() > 1) *text = ptx::PrintModule(**module);
  else if (!sources_.empty()) *text = sources_.front().text;
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
  if (refused_ != nullptr) {
    refused_->Tell({});
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
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
    RewriteLaunches(module, text, device_.process().summary());
    auto loaded = backend->Load(std::move(module), std::move(text));
    if (loaded.ok()) {
      *program = std::move(loaded).value();
    } else {
      own_log.error += loaded.error().message + "\n";
      LogFormat(LogLevel::kError, "a module cannot be loaded: %s", loaded.error().message.c_str());
      NoteRefused(RefusedKind::kModule, library_, loaded.error().message);
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
    kernel = std::make_shared<Kernel>(weak_from_this(), owner_, std::string(name));
    device_.process().handles.kernels.Add(kernel);
  }
  return kernel;
}

CUresult Code::FindKernel(std::string_view name, Context* context, std::shared_ptr<Kernel>* kernel) {
  if (refused_ != nullptr && !refused_->kernels().empty()) {
    if (std::ranges::find(refused_->kernels(), name) == refused_->kernels().end()) return CUDA_ERROR_NOT_FOUND;
    *kernel = KernelNamed(name);
    return CUDA_SUCCESS;
  }
  std::shared_ptr<exec::Program> program;
  if (const auto status = ProgramFor(context, &program); status != CUDA_SUCCESS) return status;
  if (program->FindKernel(name) == nullptr) return WhyNoKernel(*program, name);
  *kernel = KernelNamed(name);
  return CUDA_SUCCESS;
}

CUresult Code::AllKernels(Context* context, std::vector<std::shared_ptr<Kernel>>* kernels) {
  if (refused_ != nullptr) {
    for (const std::string& name : refused_->kernels()) kernels->push_back(KernelNamed(name));
    return CUDA_SUCCESS;
  }
  std::shared_ptr<exec::Program> program;
  if (const auto status = ProgramFor(context, &program); status != CUDA_SUCCESS) return status;
  for (const std::string_view name : program->kernel_names()) kernels->push_back(KernelNamed(name));
  return CUDA_SUCCESS;
}

std::shared_ptr<const exec::SlicedKernel> Code::FindSliced(const std::string& name,
                                                           const std::shared_ptr<exec::Program>& program) {
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

void Code::WaitForUsers() {
  std::vector<Context*> contexts;
  {
    const std::lock_guard lock(mutex_);
    for (const Instance& instance : instances_) {
      if (instance.context != nullptr) contexts.push_back(instance.context);
    }
  }
  for (Context* const context : contexts) context->WaitForTasks();
}

void Code::Unload() {
  const std::lock_guard lock(mutex_);
  Process& process = device_.process();
  for (const auto& [name, kernel] : kernels_) process.handles.kernels.Remove(kernel->kernel_handle());
  for (const auto& [name, texref] : texrefs_) process.handles.texrefs.Remove(reinterpret_cast<CUtexref>(texref.get()));
  kernels_.clear();
  texrefs_.clear();
  instances_.clear();
}

void Code::ForgetContext(Context& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(instances_, [&](const Instance& instance) { return instance.context == &context; });
  for (const auto& [name, kernel] : kernels_) kernel->ForgetContext(context);
}

Context* Code::ContextOf(const exec::Program& program) {
  const std::lock_guard lock(mutex_);
  for (const Instance& instance : instances_) {
    if (instance.program.get() == &program) return instance.context;
  }
  return nullptr;
}

std::shared_ptr<TextureReference> Code::FindTextureReference(std::string_view name, Context* context) {
  const exec::GlobalInfo* global = nullptr;
  if (FindGlobal(name, context, &global) != CUDA_SUCCESS) return nullptr;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<TextureReference>& texref = texrefs_[std::string(name)];
  if (texref == nullptr) {
    texref = std::make_shared<TextureReference>();
    texref->address = global->address;
    device_.process().handles.texrefs.Add(texref);
  }
  return texref;
}

// ---- Library

std::shared_ptr<Module> Library::ModuleIn(Context& context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Module>& module = modules_[&context];
  if (module == nullptr) {
    module = std::make_shared<Module>(code_, context, false);
    context.process().handles.modules.Add(module);
  }
  return module;
}

void Library::ForgetContext(Context& context) {
  code_->ForgetContext(context);
  const std::lock_guard lock(mutex_);
  modules_.erase(&context);
}

std::vector<std::shared_ptr<Module>> Library::TakeModules() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Module>> modules;
  for (auto& [context, module] : modules_) modules.push_back(std::move(module));
  modules_.clear();
  return modules;
}

}  // namespace gridloom::session
