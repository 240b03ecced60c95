// Kernels on a real GPU, and their forms that run in slices (docs/broker.md, "A real GPU"). Of an image with PTX the
// program's module stays as the driver loaded it. Beside it, per kernel and context, stands a module of ours: the
// kernel as the slice pass leaves it, made from the PTX, compiled by the driver, working on the variables of the
// program's module (rewriter/passes/extract.h). Of an image without PTX the form is in the program's own module
// (machine_forms.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/ptx_sources.h"
#include "interpose/real/machine_forms.h"
#include "interpose/real/slice_counts.h"
#include "rewriter/passes/extract.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/slice_range.h"
#include "rewriter/support/result.h"

namespace gridloom::api {

/// What an image that the program gives the driver has for slices: PTX, or forms of machine code.
class RealImage {
 public:
  /// What cuModuleLoadData and its like take; read at once, as the program may free it. Never null: an image with
  /// nothing has a reason.
  static std::shared_ptr<RealImage> OfPointer(const void* image);
  static std::shared_ptr<RealImage> OfFile(const char* path);

  /// The kernel's module with all kernels sliced, made when it is first asked for; an error says why there is none.
  Result<const passes::Rewritten*> Sliced();

  /// Of an image without PTX that the driver has loaded, or is to load; null when there are none.
  const MachineForms* forms() const { return forms_.get(); }
  /// The driver does not load them: the kernels run whole.
  void DropForms(const std::string& why);

 private:
  static std::shared_ptr<RealImage> Of(const Result<image::ImageSet>& images, const char* file);
  void MakeForms(const image::ImageSet& images, ComputeCapability device, const char* file);
  Result<passes::Rewritten> Slice();

  std::vector<session::PtxSource> sources_;
  std::unique_ptr<MachineForms> forms_;
  std::string why_;  ///< not empty: there is no PTX
  std::mutex mutex_;
  std::unique_ptr<Result<passes::Rewritten>> sliced_;
};

/// A kernel's sliced form in one context.
struct SlicedFunction {
  std::string why_whole;            ///< not empty: there is none
  cuda::CUmodule module = nullptr;  ///< ours; null when the form is in the program's
  cuda::CUfunction function = nullptr;
  cuda::CUfunction original = nullptr;  ///< the program's
  std::vector<passes::HiddenParam> hidden = {};
  std::size_t own_params = 0;     ///< parameters that the program passes
  std::uint32_t own_bytes = 0;    ///< of them, up to the last one's end
  std::uint32_t param_bytes = 0;  ///< of all parameters
  std::uint32_t max_threads = 0;  ///< of a CTA
  bool counts = false;            ///< it counts threads that end (slice_counts.h)

  /// Whether the program may launch it with so much dynamic shared memory, and without clusters; then the sliced form
  /// may, too.
  bool Allows(std::uint32_t threads, std::uint32_t dynamic_shared_bytes) const;
};

/// Where a program found a kernel: in a module of one context, or in a library.
struct KernelHome {
  cuda::CUmodule module = nullptr;
  cuda::CUlibrary library = nullptr;
  cuda::CUkernel kernel = nullptr;  ///< of a library
};

class RealKernel {
 public:
  RealKernel(std::shared_ptr<RealImage> image, KernelHome home, std::string name)
      : image_(std::move(image)), home_(home), name_(std::move(name)) {}
  RealKernel(const RealKernel&) = delete;

  const std::string& name() const { return name_; }

  /// The kernel's sliced form in the current context, whose number is given; made the first time. Null when the kernel
  /// runs whole; the reason is logged once.
  std::shared_ptr<const SlicedFunction> SlicedIn(std::uint64_t context);
  /// The sliced form did not work: the kernel runs whole from now on.
  void GiveUp(const std::string& why);
  /// The program unloads it in the context with this number, which is current. What is in other contexts goes with
  /// them.
  void Unload(std::uint64_t context);

 private:
  Result<SlicedFunction> Make() const;
  Result<SlicedFunction> MakeOfText() const;
  Result<SlicedFunction> MakeOfCode(const MachineForms& forms) const;
  Result<passes::VariableAddresses> Addresses(const ptx::Module& module) const;
  Status CheckSameCode(const SlicedFunction& sliced) const;
  cuda::CUfunction FunctionNamed(const std::string& name) const;
  void TellWhole(const std::string& why);

  const std::shared_ptr<RealImage> image_;
  const KernelHome home_;
  const std::string name_;
  std::once_flag told_whole_;
  std::mutex mutex_;  ///< guards what follows, and is held while the form is made
  bool given_up_ = false;
  std::map<std::uint64_t, std::shared_ptr<SlicedFunction>> sliced_;  ///< by context
};

/// The pointers or the buffer that launch CTAs `first`… of a grid, from what the program passes. Valid as long as it
/// and they are.
class SliceParams {
 public:
  SliceParams(const SlicedFunction& sliced, const passes::GridShape& grid, std::uint64_t grid_id, void** params,
              void** extra);
  SliceParams(const SliceParams&) = delete;
  /// False when what the program passes makes no sense: it is for the driver to say so.
  bool valid() const { return valid_; }
  void SetFirst(std::uint64_t first);
  /// For the next SetFirst: where the form counts the threads that end.
  void SetCounts(CountTable::Place place) { counts_ = place; }
  void** params() { return extra_.empty() ? pointers_.data() : nullptr; }
  void** extra() { return extra_.empty() ? nullptr : extra_.data(); }

 private:
  bool Copy(void** extra);
  std::uint64_t ValueOf(passes::HiddenRole role, std::uint64_t first) const;

  const SlicedFunction& sliced_;
  const passes::GridShape grid_;
  const std::uint64_t grid_id_;
  bool valid_ = false;
  CountTable::Place counts_{};
  std::vector<std::uint64_t> values_;  ///< of the hidden parameters
  std::vector<void*> pointers_;
  std::vector<std::byte> buffer_;
  std::size_t buffer_bytes_ = 0;
  std::vector<void*> extra_;
};

}  // namespace gridloom::api
