// From the driver interface's texture descriptions to the objects kernels sample from; texture references of old
// programs.
#pragma once

#include <memory>
#include <mutex>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/array.h"
#include "sim/exec/texture.h"

namespace gridloom::session {

class Context;
struct ProgramHandles;

/// What cuTexObjectCreate was given, kept for the getters, and what keeps its memory alive.
struct TextureRecord {
  cuda::CUDA_RESOURCE_DESC resource{};
  cuda::CUDA_TEXTURE_DESC texture{};
  cuda::CUDA_RESOURCE_VIEW_DESC view{};
  bool has_view = false;
  std::shared_ptr<Array> array;
  std::shared_ptr<MipmappedArray> mipmap;
  bool of_reference = false;  ///< made for a texture reference, not by the program
};

/// Fills `record` and makes the object; the handle goes to `object`. `handles`: where those are
/// that the description names.
cuda::CUresult CreateTexture(const ProgramHandles& handles, const cuda::CUDA_RESOURCE_DESC& resource,
                             const cuda::CUDA_TEXTURE_DESC& texture, const cuda::CUDA_RESOURCE_VIEW_DESC* view,
                             std::uint64_t* object);
cuda::CUresult DestroyTexture(std::uint64_t object);
cuda::CUresult FindTexture(std::uint64_t object, TextureRecord* record);
cuda::CUresult CreateSurface(const ProgramHandles& handles, const cuda::CUDA_RESOURCE_DESC& resource,
                             std::uint64_t* object);
cuda::CUresult DestroySurface(std::uint64_t object);
cuda::CUresult FindSurface(std::uint64_t object, TextureRecord* record);

/// How many have not been destroyed.
std::size_t LiveTextures();
std::size_t LiveSurfaces();

/// Whether a texture can be made of this memory.
cuda::CUresult CheckResource(const ProgramHandles& handles, const cuda::CUDA_RESOURCE_DESC& resource);

/// A module-scope texture or surface variable of programs before CUDA 12. The kernel reads the handle of the bound
/// object from the variable's eight bytes. A launch means the binding of the moment it was submitted, so that a change
/// is written only before the next launch, when those before it are done.
class TextureReference : public std::enable_shared_from_this<TextureReference> {
 public:
  std::uint64_t address = 0;  ///< of the variable; 0 for a reference made by cuTexRefCreate
  std::mutex mutex;           ///< guards what follows; held by callers of the functions
  cuda::CUDA_RESOURCE_DESC resource{};
  cuda::CUDA_TEXTURE_DESC texture{};
  cuda::CUarray_format format = cuda::CU_AD_FORMAT_FLOAT;
  unsigned channels = 1;
  bool bound = false;
  bool surface = false;
  /// Has the next launch see what was changed.
  void Changed();
  bool published() const { return object_ != 0; }
  /// Makes the object anew and writes its handle.
  cuda::CUresult Publish(const ProgramHandles& handles);

 private:
  std::uint64_t object_ = 0;  ///< whose handle is in the variable
};

/// Before a launch: publishes the references that were changed since the last one, after all work that may read them.
void PublishTextureReferences(Context& context);

}  // namespace gridloom::session
