// nvJitLink, the toolkit's linker: what it makes is machine code, which nothing here runs. So its inputs are kept
// beside it, and who asks for the linked cubin gets their PTX, linked as cuLink* does. LTO-IR becomes PTX by nvJitLink
// itself (`-lto -ptx`). Seen by those who look its functions up with dlsym (Python's cuda-bindings, and so Numba), and
// by programs and libraries linked with it: the shim comes first, and its names have no version of their own, which the
// loader takes for any version.
#include "interpose/hooks/jit_link.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api_exports.h"
#include "interpose/hooks/lto_keeper.h"
#include "interpose/objects/context.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/link_job.h"
#include "interpose/objects/process.h"
#include "interpose/objects/ptx_sources.h"
#include "interpose/real/driver.h"
#include "rewriter/support/whole_file.h"

namespace {

using namespace gridloom::cuda;
using gridloom::session::Device;
using gridloom::session::JitOptions;
using gridloom::session::LinkJob;

using Handle = void*;                 // nvJitLinkHandle
using Result = int;                   // nvJitLinkResult
constexpr Result kSuccess = 0;        // NVJITLINK_SUCCESS
constexpr Result kInternalError = 6;  // NVJITLINK_ERROR_INTERNAL

/// nvJitLinkInputType.
enum InputType : int { kCubin = 1, kPtx, kLtoIr, kFatbin, kObject, kLibrary, kIndex, kAny = 10 };

using CreateFn = Result(Handle*, std::uint32_t, const char**);
using DestroyFn = Result(Handle*);
using AddDataFn = Result(Handle, InputType, const void*, std::size_t, const char*);
using AddFileFn = Result(Handle, InputType, const char*);
using CompleteFn = Result(Handle);
using GetSizeFn = Result(Handle, std::size_t*);
using GetFn = Result(Handle, char*);

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(gridloom::hooks::LoadedFunction("libnvJitLink.so", name));
}

struct Input {
  InputType type;
  std::string bytes;
  std::string name;
};

struct Link {
  std::vector<std::string> options;
  std::vector<Input> inputs;
  std::optional<std::string> image;  ///< the linked PTX; empty: there is none, and the real cubin is handed out
};

/// The links that are open, by handle. Locked by whoever uses it.
struct Links {
  std::mutex mutex;
  std::unordered_map<Handle, Link> open;
};

Links& OpenLinks() {
  static Links links;
  return links;
}

/// What follows "-arch=" in the options.
std::string_view ArchitectureOf(const Link& link) {
  constexpr std::string_view kArch = "-arch=";
  for (const std::string& option : link.options)
    if (option.starts_with(kArch)) return std::string_view(option).substr(kArch.size());
  return "sm_75";  // nvJitLink links for nothing without it
}

/// The PTX of the inputs that are LTO-IR, by a second link of them alone; empty when that fails. It has these names, if
/// they do.
std::string PtxOfLtoIr(const Link& link, const gridloom::hooks::UndefinedNames& wanted_names) {
  std::vector<const char*> options;
  for (const std::string& option : link.options) options.push_back(option.c_str());
  for (const char* wanted : {"-lto", "-ptx"}) {
    if (std::find(link.options.begin(), link.options.end(), wanted) == link.options.end()) options.push_back(wanted);
  }
  Handle handle = nullptr;
  if (Real<CreateFn>("nvJitLinkCreate")(&handle, static_cast<std::uint32_t>(options.size()), options.data()) !=
      kSuccess)
    return {};
  bool good = true;
  for (const Input& input : link.inputs) {
    if (input.type == kLtoIr)
      good = good && Real<AddDataFn>("nvJitLinkAddData")(handle, kLtoIr, input.bytes.data(), input.bytes.size(),
                                                         input.name.c_str()) == kSuccess;
  }
  const std::string keeper =
      wanted_names.empty() ? "" : gridloom::hooks::CompileKeeper(wanted_names, ArchitectureOf(link));
  if (good && !keeper.empty())
    good = Real<AddDataFn>("nvJitLinkAddData")(handle, kLtoIr, keeper.data(), keeper.size(), "keeper") == kSuccess;
  std::string ptx;
  std::size_t size = 0;
  if (good && Real<CompleteFn>("nvJitLinkComplete")(handle) == kSuccess &&
      Real<GetSizeFn>("nvJitLinkGetLinkedPtxSize")(handle, &size) == kSuccess) {
    ptx.resize(size);
    if (Real<GetFn>("nvJitLinkGetLinkedPtx")(handle, ptx.data()) != kSuccess) ptx.clear();
  }
  Real<DestroyFn>("nvJitLinkDestroy")(&handle);
  ptx.resize(std::strlen(ptx.c_str()));
  return keeper.empty() ? ptx : gridloom::hooks::RemoveKeeper(std::move(ptx), wanted_names);
}

/// What cuLinkAddData calls an input of this kind; none: it has no name there.
std::optional<CUjitInputType> DriverType(InputType type) {
  switch (type) {
    case kPtx: return CU_JIT_INPUT_PTX;
    case kFatbin: return CU_JIT_INPUT_FATBINARY;
    case kObject: return CU_JIT_INPUT_OBJECT;
    case kLibrary: return CU_JIT_INPUT_LIBRARY;
    case kCubin: return CU_JIT_INPUT_CUBIN;
    default: return std::nullopt;
  }
}

CUresult AddInputs(LinkJob& job, const Link& link, Device& device) {
  bool has_lto = false;
  for (const Input& input : link.inputs) {
    if (input.type == kLtoIr) {
      has_lto = true;
      continue;
    }
    const auto type = DriverType(input.type);
    if (!type) return CUDA_ERROR_INVALID_VALUE;
    const CUresult added = job.Add(*type, input.bytes.data(), input.bytes.size(), input.name, device);
    if (added != CUDA_SUCCESS) return added;
  }
  if (!has_lto) return CUDA_SUCCESS;
  const std::string ptx = PtxOfLtoIr(link, gridloom::hooks::FindUndefined(job.sources));
  if (ptx.empty()) return CUDA_ERROR_INVALID_PTX;
  return job.Add(CU_JIT_INPUT_PTX, ptx.data(), ptx.size(), "LTO-IR", device);
}

/// The device to link for: the current context's or the first; null when there is none. A link is no work of a context,
/// and so goes well whatever has happened in it.
Device* DeviceToLinkFor() {
  if (const gridloom::session::Context* context = gridloom::session::CurrentContext()) return &context->device();
  return cuInit(0) == CUDA_SUCCESS ? gridloom::session::Process::Get().FindDevice(0) : nullptr;
}

std::string LinkedPtx(const Link& link) {
  Device* const device = DeviceToLinkFor();
  if (device == nullptr) return {};
  std::uintptr_t max_registers = 0;
  for (const std::string& option : link.options)
    max_registers = std::max<std::uintptr_t>(max_registers, gridloom::session::MaxRegisters(option));
  CUjit_option key = CU_JIT_MAX_REGISTERS;
  void* value = reinterpret_cast<void*>(max_registers);
  LinkJob job;
  if (JitOptions::Parse(1, &key, &value, &job.options) != CUDA_SUCCESS) return {};
  void* image = nullptr;
  std::size_t bytes = 0;
  if (AddInputs(job, link, *device) != CUDA_SUCCESS || job.Complete(*device, &image, &bytes) != CUDA_SUCCESS) return {};
  return {static_cast<const char*>(image), bytes};
}

/// The PTX to hand out in place of the link's cubin; null: the cubin itself.
const std::string* ImageOf(Handle handle) {
  if (gridloom::api::CurrentMode() == gridloom::api::Mode::kReal) return nullptr;
  Links& links = OpenLinks();
  const auto at = links.open.find(handle);
  if (at == links.open.end()) return nullptr;
  if (!at->second.image) at->second.image = LinkedPtx(at->second);
  return at->second.image->empty() ? nullptr : &*at->second.image;
}

void Keep(Handle handle, Input input) {
  Links& links = OpenLinks();
  const std::lock_guard lock(links.mutex);
  const auto at = links.open.find(handle);
  if (at != links.open.end()) at->second.inputs.push_back(std::move(input));
}

}  // namespace

GL_EXPORT Result nvJitLinkCreate(Handle* handle, std::uint32_t count, const char** options) {
  const auto real = Real<CreateFn>("nvJitLinkCreate");
  if (real == nullptr) return kInternalError;
  const Result result = real(handle, count, options);
  if (result != kSuccess) return result;
  Links& links = OpenLinks();
  const std::lock_guard lock(links.mutex);
  links.open[*handle] = Link{.options = {options, options + count}, .inputs = {}, .image = {}};
  return result;
}

GL_EXPORT Result nvJitLinkDestroy(Handle* handle) {
  const auto real = Real<DestroyFn>("nvJitLinkDestroy");
  if (real == nullptr) return kInternalError;
  if (handle != nullptr) {
    Links& links = OpenLinks();
    const std::lock_guard lock(links.mutex);
    links.open.erase(*handle);
  }
  return real(handle);
}

GL_EXPORT Result nvJitLinkAddData(Handle handle, InputType type, const void* data, std::size_t size, const char* name) {
  const auto real = Real<AddDataFn>("nvJitLinkAddData");
  if (real == nullptr) return kInternalError;
  const Result result = real(handle, type, data, size, name);
  if (result == kSuccess)
    Keep(handle, {type, {static_cast<const char*>(data), size}, name != nullptr ? name : "input"});
  return result;
}

GL_EXPORT Result nvJitLinkAddFile(Handle handle, InputType type, const char* path) {
  const auto real = Real<AddFileFn>("nvJitLinkAddFile");
  if (real == nullptr) return kInternalError;
  const Result result = real(handle, type, path);
  if (result != kSuccess) return result;
  auto bytes = gridloom::ReadWholeFile(path);
  if (bytes.ok()) Keep(handle, {type, *std::move(bytes), path});  // the linker has just read it
  return result;
}

GL_EXPORT Result nvJitLinkGetLinkedCubinSize(Handle handle, std::size_t* size) {
  const auto real = Real<GetSizeFn>("nvJitLinkGetLinkedCubinSize");
  if (real == nullptr) return kInternalError;
  const std::lock_guard lock(OpenLinks().mutex);
  const Result result = real(handle, size);
  const std::string* image = result == kSuccess ? ImageOf(handle) : nullptr;
  if (image != nullptr) *size = image->size();
  return result;
}

GL_EXPORT Result nvJitLinkGetLinkedCubin(Handle handle, char* cubin) {
  const auto real = Real<GetFn>("nvJitLinkGetLinkedCubin");
  if (real == nullptr) return kInternalError;
  const std::lock_guard lock(OpenLinks().mutex);
  const std::string* image = ImageOf(handle);
  if (image == nullptr) return real(handle, cubin);
  std::memcpy(cubin, image->data(), image->size());
  return kSuccess;
}

// nvJitLink.h calls each function by a name with its toolkit's version.
#define GL_NAME(function, name) GL_EXPORT decltype(function) name __attribute__((alias(#function)));
#include "jit_link_names.inc"
#undef GL_NAME

std::span<const gridloom::hooks::Answer> gridloom::hooks::JitLinkAnswers() {
  static const Answer kAnswers[] = {
      {"nvJitLinkCreate", reinterpret_cast<void*>(&nvJitLinkCreate)},
      {"nvJitLinkDestroy", reinterpret_cast<void*>(&nvJitLinkDestroy)},
      {"nvJitLinkAddData", reinterpret_cast<void*>(&nvJitLinkAddData)},
      {"nvJitLinkAddFile", reinterpret_cast<void*>(&nvJitLinkAddFile)},
      {"nvJitLinkGetLinkedCubinSize", reinterpret_cast<void*>(&nvJitLinkGetLinkedCubinSize)},
      {"nvJitLinkGetLinkedCubin", reinterpret_cast<void*>(&nvJitLinkGetLinkedCubin)}};
  return kAnswers;
}
