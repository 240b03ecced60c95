#include "interpose/real/kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "interpose/base/log.h"
#include "interpose/objects/errors.h"
#include "interpose/real/call.h"
#include "rewriter/image/select.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::api {

using namespace cuda;
using session::Log;
using session::LogLevel;

namespace {

std::string NameOf(CUresult status) {
  const char* const name = session::NameOf(status);
  return name != nullptr ? name : std::to_string(static_cast<int>(status));
}

Result<ComputeCapability> CapabilityOf(CUdevice device) {
  int major = 0, minor = 0;
  for (const auto& [attribute, value] : {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                                         std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}}) {
    if (const CUresult status = Real<Fn::cuDeviceGetAttribute>(value, attribute, device); status != CUDA_SUCCESS)
      return Error{"the driver does not tell the device's compute capability (" + NameOf(status) + ")"};
  }
  return ComputeCapability{static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)};
}

/// The capability of the thread's device, or of the first one: libraries are loaded before there are contexts.
Result<ComputeCapability> CapabilityOfDevice() {
  CUdevice device = 0;
  if (Real<Fn::cuCtxGetDevice>(&device) != CUDA_SUCCESS) device = 0;
  return CapabilityOf(device);
}

/// Of libraries every device takes its own code.
bool AllDevicesAre(ComputeCapability capability) {
  int count = 0;
  if (Real<Fn::cuDeviceGetCount>(&count) != CUDA_SUCCESS) return false;
  for (CUdevice device = 0; device < count; ++device) {
    const auto own = CapabilityOf(device);
    if (!own.ok() || *own != capability) return false;
  }
  return true;
}

int AttributeOf(CUfunction function, CUfunction_attribute attribute) {
  int value = -1;
  return Real<Fn::cuFuncGetAttribute>(&value, attribute, function) == CUDA_SUCCESS ? value : -1;
}

/// Compiled and loaded by the driver into the current context.
Result<CUmodule> Load(const std::string& text) {
  constexpr std::size_t kLogBytes = 4096;
  std::array<char, kLogBytes> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUmodule module = nullptr;
  const CUresult status = Real<Fn::cuModuleLoadDataEx>(&module, static_cast<const void*>(text.c_str()), 2u, &options[0],
                                                       static_cast<void**>(values));
  if (status == CUDA_SUCCESS) return module;
  return Error{"the driver does not load its sliced form (" + NameOf(status) + (log[0] != '\0' ? ": " : "") +
               log.data() + ")"};
}

}  // namespace

// ---- RealImage

std::shared_ptr<RealImage> RealImage::Of(const Result<image::ImageSet>& images, const char* file) {
  auto made = std::make_shared<RealImage>();
  const auto capability = CapabilityOfDevice();
  if (!images.ok()) made->why_ = "its image cannot be read: " + images.error().message;
  else if (!capability.ok()) made->why_ = capability.error().message;
  else if (session::SelectSources(*images, *capability, &made->sources_, &made->why_) == CUDA_SUCCESS &&
           made->sources_.empty())
    made->why_ = "its image is empty";
  if (WantsMachineForms() && images.ok() && capability.ok() && !image::HasPtxFor(*images, *capability))
    made->MakeForms(*images, *capability, file);
  return made;
}

void RealImage::MakeForms(const image::ImageSet& images, ComputeCapability device, const char* file) {
  Status status = CheckOrigin(file);
  if (status.ok() && !AllDevicesAre(device)) status = Error{"the machine's GPUs are of several kinds"};
  auto forms = status.ok() ? MakeMachineForms(images, device) : Result<MachineForms>(status.error());
  if (forms.ok()) forms_ = std::make_unique<MachineForms>(std::move(forms).value());
  else why_ = forms.error().message;
}

void RealImage::DropForms(const std::string& why) {
  forms_ = nullptr;
  why_ = why;
}

std::shared_ptr<RealImage> RealImage::OfPointer(const void* image) {
  return Of(image::ReadImagePointer(image), FileOf(image));
}
std::shared_ptr<RealImage> RealImage::OfFile(const char* path) { return Of(image::ReadImageFile(path), path); }

Result<passes::Rewritten> RealImage::Slice() {
  std::unique_ptr<ptx::Module> module;
  session::JitLog log;
  std::string why;
  if (session::ParseSources(sources_, ptx::PtxOrigin::kCompiled, &module, &log, &why) != CUDA_SUCCESS)
    return Error{why};
  std::vector<session::PtxSource>().swap(sources_);
  GL_TRY(pipeline, passes::Pipeline::Parse("slice"));
  passes::Rewritten rewritten;
  rewritten.module = std::move(module);
  GL_TRY_STATUS(passes::RunInPlace(pipeline, rewritten));
  return rewritten;
}

Result<const passes::Rewritten*> RealImage::Sliced() {
  if (!why_.empty()) return Error{why_};
  const std::lock_guard lock(mutex_);
  if (sliced_ == nullptr) sliced_ = std::make_unique<Result<passes::Rewritten>>(Slice());
  if (!sliced_->ok()) return sliced_->error();
  return &**sliced_;
}

// ---- SlicedFunction

bool SlicedFunction::Allows(std::uint32_t threads, std::uint32_t dynamic_shared_bytes) const {
  if (threads == 0 || threads > max_threads)
    return false;  // for the driver to refuse, or more registers than the original's
  if (AttributeOf(original, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) > 0) return false;
  const auto bytes = static_cast<int>(std::min(dynamic_shared_bytes, 1u << 30));
  if (bytes == 0 || bytes <= AttributeOf(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)) return true;
  return bytes <= AttributeOf(original, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) &&
         Real<Fn::cuFuncSetAttribute>(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes) == CUDA_SUCCESS;
}

// ---- RealKernel

/// In the current context; null when the program's module has none of that name.
CUfunction RealKernel::FunctionNamed(const std::string& name) const {
  CUfunction function = nullptr;
  CUkernel kernel = nullptr;
  CUresult status = CUDA_SUCCESS;
  if (home_.library == nullptr) {
    status = Real<Fn::cuModuleGetFunction>(&function, home_.module, name.c_str());
  } else {
    status = Real<Fn::cuLibraryGetKernel>(&kernel, home_.library, name.c_str());
    if (status == CUDA_SUCCESS) status = Real<Fn::cuKernelGetFunction>(&function, kernel);
  }
  return status == CUDA_SUCCESS ? function : nullptr;
}

/// Addresses of the variables that the kernel uses, as the program's module has them in the current context.
Result<passes::VariableAddresses> RealKernel::Addresses(const ptx::Module& module) const {
  GL_TRY(names, passes::VariablesOf(module, name_));
  passes::VariableAddresses addresses;
  for (const std::string& name : names) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    CUresult status = CUDA_ERROR_NOT_FOUND;
    if (home_.library != nullptr) {
      status = Real<Fn::cuLibraryGetGlobal>(&address, &bytes, home_.library, name.c_str());
      if (status != CUDA_SUCCESS) status = Real<Fn::cuLibraryGetManaged>(&address, &bytes, home_.library, name.c_str());
    } else {
      status = Real<Fn::cuModuleGetGlobal_v2>(&address, &bytes, home_.module, name.c_str());
    }
    if (status != CUDA_SUCCESS)
      return Error{"the driver does not tell the address of its variable " + name + " (" + NameOf(status) + ")"};
    addresses[name] = address;
  }
  return addresses;
}

/// An image may have machine code for the device and PTX for an older one, compiled from other lines of the source.
/// Host code that chose the shape of a launch by the one would go wrong with the other.
Status RealKernel::CheckSameCode(const SlicedFunction& sliced) const {
  if (sliced.original == nullptr) return Error{"the driver does not find it in this context"};
  constexpr std::pair<CUfunction_attribute, const char*> kSame[] = {
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, "architecture it was compiled for"},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, "static shared memory"}};
  for (const auto& [attribute, what] : kSame) {
    const int theirs = AttributeOf(sliced.original, attribute), ours = AttributeOf(sliced.function, attribute);
    if (theirs != ours || theirs < 0)
      return Error{"its machine code and its PTX differ in the " + std::string(what) + " (" + std::to_string(theirs) +
                   ", " + std::to_string(ours) + ")"};
  }
  return {};
}

Result<SlicedFunction> RealKernel::MakeOfCode(const MachineForms& forms) const {
  const auto found = forms.kernels.find(name_);
  if (found == forms.kernels.end()) return Error{"its machine code does not have it"};
  const machine::SlicedKernel& kernel = found->second;
  if (!kernel.why_whole.empty()) return Error{kernel.why_whole};
  const OutsideCaptures outside;
  SlicedFunction sliced{.why_whole = {},
                        .function = FunctionNamed(machine::SlicedName(name_)),
                        .original = FunctionNamed(name_),
                        .hidden = kernel.hidden,
                        .own_params = kernel.own_params,
                        .own_bytes = kernel.own_bytes,
                        .param_bytes = kernel.own_bytes,
                        .counts = kernel.exits != 0};
  if (sliced.function == nullptr) return Error{"the driver does not find its sliced form"};
  for (const passes::HiddenParam& hidden : kernel.hidden)
    sliced.param_bytes = std::max(sliced.param_bytes, hidden.offset + passes::Info(hidden.role).bytes);
  GL_TRY_STATUS(CheckSameCode(sliced));
  return sliced;
}

Result<SlicedFunction> RealKernel::Make() const {
  const MachineForms* const forms = image_->forms();
  auto made = forms != nullptr ? MakeOfCode(*forms) : MakeOfText();
  if (!made.ok()) return made;
  made->max_threads =
      static_cast<std::uint32_t>(std::max(AttributeOf(made->function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 0));
  if (const int carveout = AttributeOf(made->original, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
      carveout >= 0)
    static_cast<void>(
        Real<Fn::cuFuncSetAttribute>(made->function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout));
  GL_LOG(kInfo, "kernel %s runs in slices, by its %s", name_.c_str(), forms != nullptr ? "machine code" : "PTX");
  return made;
}

Result<SlicedFunction> RealKernel::MakeOfText() const {
  GL_TRY(rewritten, image_->Sliced());
  const passes::KernelOutcome* const outcome = rewritten->Find(name_);
  if (outcome == nullptr) return Error{"its PTX does not have it"};
  if (outcome->status == passes::KernelStatus::kRefused)
    return Error{outcome->reason + (outcome->loc.line != 0 ? ", PTX line " + std::to_string(outcome->loc.line) : "")};
  const OutsideCaptures outside;
  GL_TRY(addresses, Addresses(*rewritten->module));
  GL_TRY(alone, passes::ExtractKernel(*rewritten->module, name_, addresses));
  const ptx::Function& kernel = *alone->FindFunction(name_);
  SlicedFunction sliced{
      .why_whole = {}, .hidden = outcome->hidden, .own_params = kernel.params.size() - outcome->hidden.size()};
  const ptx::ParamLayout layout = ptx::LayoutParams(kernel);
  sliced.param_bytes = layout.bytes;
  if (const std::size_t own = sliced.own_params; own != 0)
    sliced.own_bytes = layout.offsets[own - 1] + static_cast<std::uint32_t>(kernel.params[own - 1].bytes());
  GL_TRY(module, Load(ptx::PrintModule(*alone)));
  sliced.module = module;
  sliced.original = FunctionNamed(name_);
  Status status;
  if (const CUresult found = Real<Fn::cuModuleGetFunction>(&sliced.function, module, name_.c_str());
      found != CUDA_SUCCESS)
    status = Error{"the driver does not find it in its sliced form (" + NameOf(found) + ")"};
  if (status.ok()) status = CheckSameCode(sliced);
  if (!status.ok()) {
    static_cast<void>(Real<Fn::cuModuleUnload>(module));
    return status.error();
  }
  return sliced;
}

void RealKernel::TellWhole(const std::string& why) {
  std::call_once(told_whole_,
                 [&] { session::LogFormat(LogLevel::kInfo, "kernel %s runs whole: %s", name_.c_str(), why.c_str()); });
}

std::shared_ptr<const SlicedFunction> RealKernel::SlicedIn(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (given_up_) return nullptr;
  std::shared_ptr<SlicedFunction>& sliced = sliced_[context];
  if (sliced == nullptr) {
    auto made = Make();
    sliced = std::make_shared<SlicedFunction>(made.ok() ? std::move(made).value()
                                                        : SlicedFunction{.why_whole = made.error().message});
  }
  if (sliced->why_whole.empty()) return sliced;
  TellWhole(sliced->why_whole);
  return nullptr;
}

void RealKernel::GiveUp(const std::string& why) {
  TellWhole(why);
  const std::lock_guard lock(mutex_);
  given_up_ = true;
}

void RealKernel::Unload(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (const auto found = sliced_.find(context);
      found != sliced_.end() && found->second != nullptr && found->second->module != nullptr)
    static_cast<void>(Real<Fn::cuModuleUnload>(found->second->module));
  sliced_.clear();
  given_up_ = true;
}

// ---- SliceParams

SliceParams::SliceParams(const SlicedFunction& sliced, const passes::GridShape& grid, std::uint64_t grid_id,
                         void** params, void** extra)
    : sliced_(sliced), grid_(grid), grid_id_(grid_id), values_(sliced.hidden.size()) {
  if (extra != nullptr) {
    valid_ = params == nullptr && Copy(extra);
    return;
  }
  if (params == nullptr && sliced.own_params != 0) return;
  pointers_.assign(params, params + sliced.own_params);
  for (std::uint64_t& value : values_) pointers_.push_back(&value);  // little-endian: 32-bit ones are the first half
  valid_ = true;
}

/// CU_LAUNCH_PARAM_BUFFER_POINTER and its size: the program's block of parameters, longer.
bool SliceParams::Copy(void** extra) {
  const auto key = [](std::uintptr_t number) { return reinterpret_cast<void*>(number); };
  void* const end = key(kLaunchParamEnd);
  void* const pointer = key(kLaunchParamBufferPointer);
  void* const size = key(kLaunchParamBufferSize);
  const void* given = nullptr;
  std::size_t bytes = 0;
  for (void** item = extra; *item != end; item += 2) {
    if (item[0] == pointer) given = item[1];
    else if (item[0] == size) bytes = *static_cast<const std::size_t*>(item[1]);
    else return false;
  }
  if (bytes < sliced_.own_bytes || (given == nullptr && bytes != 0)) return false;
  buffer_.resize(sliced_.param_bytes);
  if (sliced_.own_bytes != 0) std::memcpy(buffer_.data(), given, sliced_.own_bytes);
  buffer_bytes_ = buffer_.size();
  extra_ = {pointer, buffer_.data(), size, &buffer_bytes_, end};
  return true;
}

std::uint64_t SliceParams::ValueOf(passes::HiddenRole role, std::uint64_t first) const {
  if (role == passes::HiddenRole::kEndedTable) return counts_.address;
  if (role == passes::HiddenRole::kEndedShift) return counts_.shift;
  return passes::HiddenValue(role, grid_, first, grid_id_);
}

void SliceParams::SetFirst(std::uint64_t first) {
  for (std::size_t i = 0; i < sliced_.hidden.size(); ++i) {
    const passes::HiddenParam& hidden = sliced_.hidden[i];
    values_[i] = ValueOf(hidden.role, first);
    if (!buffer_.empty()) std::memcpy(buffer_.data() + hidden.offset, &values_[i], passes::Info(hidden.role).bytes);
  }
}

}  // namespace gridloom::api
