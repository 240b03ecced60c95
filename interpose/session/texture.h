// From the driver interface's texture descriptions to the objects kernels sample from; texture references of old programs.
#pragma once

#include <memory>
#include <mutex>

#include "interpose/api/cuda_types.h"
#include "interpose/session/array.h"
#include "sim/exec/texture.h"

namespace gridloom::session {

class Context;

/// What cuTexObjectCreate was given, kept for the getters, and what keeps its memory alive.
struct TextureRecord {
  cuda::CUDA_RESOURCE_DESC resource{};
  cuda::CUDA_TEXTURE_DESC texture{};
  cuda::CUDA_RESOURCE_VIEW_DESC view{};
  bool has_view = false;
  std::shared_ptr<Array> array;
  std::shared_ptr<MipmappedArray> mipmap;
};

/// Fills `record` and makes the object; the handle goes to `object`.
cuda::CUresult CreateTexture(const cuda::CUDA_RESOURCE_DESC& resource, const cuda::CUDA_TEXTURE_DESC& texture,
                             const cuda::CUDA_RESOURCE_VIEW_DESC* view, std::uint64_t* object);
cuda::CUresult DestroyTexture(std::uint64_t object);
cuda::CUresult FindTexture(std::uint64_t object, TextureRecord* record);
cuda::CUresult CreateSurface(const cuda::CUDA_RESOURCE_DESC& resource, std::uint64_t* object);
cuda::CUresult DestroySurface(std::uint64_t object);
cuda::CUresult FindSurface(std::uint64_t object, TextureRecord* record);

/// A module-scope texture or surface variable of old programs. The kernel reads the handle of the bound object from the
/// variable's eight bytes; binding writes it there.
class TextureReference {
 public:
  std::uint64_t address = 0;  ///< of the variable; 0 for a reference made by cuTexRefCreate
  std::mutex mutex;
  cuda::CUDA_RESOURCE_DESC resource{};
  cuda::CUDA_TEXTURE_DESC texture{};
  cuda::CUarray_format format = cuda::CU_AD_FORMAT_FLOAT;
  unsigned channels = 1;
  bool bound = false;
  std::uint64_t object = 0;  ///< made from the above
  /// Makes the object anew after a change and writes its handle. The mutex is held by the caller.
  cuda::CUresult Rebind();
  cuda::CUresult BindSurface(cuda::CUarray array);
};

}  // namespace gridloom::session
