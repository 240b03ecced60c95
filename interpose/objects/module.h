// Device code a program loaded: the PTX chosen for the device, its program per context, its kernels.
// CUmodule and CUlibrary are two views of it; CUfunction and CUkernel are the same object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/device.h"
#include "interpose/objects/ptx_sources.h"
#include "sim/exec/engine.h"
#include "sim/exec/program.h"

namespace gridloom::exec {
class SlicedProgram;
struct SlicedKernel;
}  // namespace gridloom::exec

namespace gridloom::session {

class Code;
class RefusedCode;
class TextureReference;

class Kernel {
 public:
  Kernel(std::weak_ptr<Code> code, Context* owner, std::string name)
      : code_(std::move(code)), owner_(owner), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  std::shared_ptr<Code> code() const { return code_.lock(); }
  /// The context of the module that it is of, the only one it can run in; null: a library's, which runs in all.
  Context* owner() const { return owner_; }
  cuda::CUkernel kernel_handle() { return reinterpret_cast<cuda::CUkernel>(this); }
  cuda::CUfunction function_handle() { return reinterpret_cast<cuda::CUfunction>(this); }

  struct Bound {
    std::shared_ptr<exec::Program> program;
    const exec::KernelInfo* info = nullptr;
    /// Null: grids run whole (launch/slicing.h), or no context was named.
    std::shared_ptr<const exec::SlicedKernel> sliced;
    /// The file has it sliced: `sliced` is it, and the program does not know of its last parameters.
    bool sliced_already = false;

    /// How many parameters the program passes, and their bytes.
    std::size_t own_params() const;
    std::uint32_t own_param_bytes() const;
  };
  /// The kernel as loaded in a context (null: wherever it is loaded, loading it without a context if need be).
  cuda::CUresult Bind(Context* context, Bound* bound);
  /// Adds the kernel's sliced form, made on first use, to what Bind gave.
  void BindSliced(Context& context, Bound* bound);
  /// Compiles the kernel, or its sliced form, for a block shape unless that was done; the sentence of a refusal goes to
  /// the log.
  cuda::CUresult Prepare(Context& context, const std::shared_ptr<exec::Program>& program, const exec::KernelInfo& info,
                         exec::Dim3 block);

  void ForgetContext(Context& context);

  /// What the host does in place of the grid, from its parameters; false: it is for the grid to do. Null: there is
  /// nothing.
  using HostForm = bool (*)(std::span<const std::byte> params, const exec::DeviceMemory& memory, unsigned threads);
  std::atomic<HostForm> host_form{nullptr};
  std::once_flag told_whole;                ///< why its grids run whole although they were to be sliced
  std::atomic<int> max_dynamic_shared{-1};  ///< -1: what a block gets without opting in
  std::atomic<int> shared_carveout{-1};
  std::atomic<int> nonportable_cluster{0};
  std::atomic<int> required_cluster[3]{0, 0, 0};
  std::atomic<int> cluster_policy{0};
  std::atomic<cuda::CUfunc_cache> cache_config{cuda::CU_FUNC_CACHE_PREFER_NONE};

  /// State of the launch interface of CUDA 3 (cuFuncSetBlockShape, cuParamSet*, cuLaunchGrid).
  struct LegacyLaunch {
    std::uint32_t block[3] = {1, 1, 1};
    std::uint32_t shared_bytes = 0;
    std::vector<std::byte> params;
  };
  std::mutex legacy_mutex;
  LegacyLaunch legacy;

 private:
  struct Prepared {
    const exec::KernelInfo* info;  ///< the kernel itself or its sliced form
    exec::Dim3 block;
  };
  struct Instance {
    Context* context;
    Bound bound;
    std::vector<Prepared> prepared;
  };
  const std::weak_ptr<Code> code_;
  Context* const owner_;
  const std::string name_;
  std::mutex mutex_;
  std::vector<Instance> instances_;
};

/// Device code in memory. What a program points at is as long as its own headers say; what was read from a file ends
/// with the file.
struct CodeImage {
  const void* data;
  std::optional<std::size_t> bytes{};
};

class Code : public std::enable_shared_from_this<Code> {
 public:
  /// Reads an image (wrapper, container, cubin, PTX), keeps the PTX that suits the device. Nothing is parsed yet. An
  /// image without such PTX is no error: see `refused`. `max_registers` per thread for PTX that says nothing of it, 0:
  /// no limit.
  static cuda::CUresult Load(const CodeImage& image, Device& device, std::uint32_t max_registers, JitLog* log,
                             std::shared_ptr<Code>* code);
  ~Code();

  Device& device() const { return device_; }
  /// Not null: it has no PTX for the device, and whatever needs its program gives NO_BINARY_FOR_GPU.
  const RefusedCode* refused() const { return refused_.get(); }
  /// Whether the code came in the wrapper in which the CUDA runtime registers a program's own code.
  bool from_runtime() const { return from_runtime_; }
  /// File name of the program or shared object whose memory the image lay in; empty for what was made or read at run
  /// time.
  const std::string& library() const { return library_; }
  /// The code is a module's: its kernels run in that context alone. To be called before anybody asks for a kernel.
  void BindTo(Context& owner) { owner_ = &owner; }
  /// The program in a context, parsed and placed on first use. Null context: any, or one that the first context adopts.
  cuda::CUresult ProgramFor(Context* context, std::shared_ptr<exec::Program>* program, JitLog* log = nullptr);
  /// NOT_FOUND when there is no such kernel. One of refused code is found, too.
  cuda::CUresult FindKernel(std::string_view name, Context* context, std::shared_ptr<Kernel>* kernel);
  cuda::CUresult AllKernels(Context* context, std::vector<std::shared_ptr<Kernel>>* kernels);
  /// The kernel's form that runs in slices, or why there is none; of a program that ProgramFor gave.
  std::shared_ptr<const exec::SlicedKernel> FindSliced(const std::string& name,
                                                       const std::shared_ptr<exec::Program>& program);
  cuda::CUresult FindGlobal(std::string_view name, Context* context, const exec::GlobalInfo** global);
  /// Waits for the work of the contexts it was placed in, which may use its kernels and variables.
  void WaitForUsers();
  /// Takes its kernels out of the handle table.
  void Unload();
  void ForgetContext(Context& context);
  /// The context that the program was loaded in; null when it is not this code's, or no context has asked for it yet.
  Context* ContextOf(const exec::Program& program);
  std::shared_ptr<TextureReference> FindTextureReference(std::string_view name, Context* context);

 private:
  Code(Device& device, std::vector<PtxSource> sources, bool from_runtime, std::string library,
       std::unique_ptr<const RefusedCode> refused);
  cuda::CUresult Parse(std::unique_ptr<ptx::Module>* module, std::string* text, JitLog* log) const;
  std::shared_ptr<Kernel> KernelNamed(std::string_view name);

  Device& device_;
  const std::vector<PtxSource> sources_;
  const bool from_runtime_;
  const std::string library_;
  const std::unique_ptr<const RefusedCode> refused_;
  Context* owner_ = nullptr;
  std::mutex load_mutex_;  ///< one thread at a time parses
  std::mutex mutex_;
  struct Instance {
    Context* context;
    std::shared_ptr<exec::Program> program;
    std::shared_ptr<exec::SlicedProgram> sliced = nullptr;  ///< null until a kernel of it is to be sliced
  };
  std::vector<Instance> instances_;
  cuda::CUresult failed_ = cuda::CUDA_SUCCESS;  ///< a parse error is found once
  JitLog failed_log_;
  std::unordered_map<std::string, std::shared_ptr<Kernel>> kernels_;
  std::unordered_map<std::string, std::shared_ptr<TextureReference>> texrefs_;
};

class Module {
 public:
  Module(std::shared_ptr<Code> code, Context& context, bool owns_code)
      : code_(std::move(code)), context_(context), owns_code_(owns_code) {}
  Code& code() const { return *code_; }
  Context& context() const { return context_; }
  bool owns_code() const { return owns_code_; }  ///< false: a library's module in one context

 private:
  const std::shared_ptr<Code> code_;
  Context& context_;
  const bool owns_code_;
};

class Library {
 public:
  explicit Library(std::shared_ptr<Code> code) : code_(std::move(code)) {}
  Code& code() const { return *code_; }
  /// The module of this library in a context; always the same handle.
  std::shared_ptr<Module> ModuleIn(Context& context);
  std::vector<std::shared_ptr<Module>> TakeModules();
  /// The context is destroyed: its module and program go.
  void ForgetContext(Context& context);

 private:
  const std::shared_ptr<Code> code_;
  std::mutex mutex_;
  std::unordered_map<Context*, std::shared_ptr<Module>> modules_;
};

}  // namespace gridloom::session
