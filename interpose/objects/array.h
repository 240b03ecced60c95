// CUDA arrays and mipmapped arrays. They are plain rows in device memory (sim/exec/texture.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "sim/exec/texture.h"

namespace gridloom::session {

class Context;

struct TexelFormat {
  exec::ChannelType type = exec::ChannelType::kFloat;
  unsigned channels = 0;    ///< 0: the descriptor says
  bool normalized = false;  ///< UNORM and SNORM formats always read as floats
};
/// Nothing for formats that are refused (block compressed, planar).
std::optional<TexelFormat> FormatOf(cuda::CUarray_format format);
/// Whether the value is a format at all, be it refused.
bool IsFormat(cuda::CUarray_format format);

class Array {
 public:
  /// INVALID_VALUE for a descriptor that makes no sense, OUT_OF_MEMORY, NOT_SUPPORTED for a format we do not have.
  static cuda::CUresult Create(Context& context, const cuda::CUDA_ARRAY3D_DESCRIPTOR& descriptor,
                               std::shared_ptr<Array>* array);
  ~Array();

  Context& context() const { return context_; }
  const cuda::CUDA_ARRAY3D_DESCRIPTOR& descriptor() const { return descriptor_; }
  const exec::ImageLevel& level() const { return level_; }
  std::uint32_t texel_bytes() const { return texel_bytes_; }
  /// For surface references. Surface objects are made of any array, as slang-rhi makes them. The driver lets surfaces
  /// write a level of a mipmapped array that was not made for them; programs build their mipmaps so.
  bool surface_access() const { return mipmap_level_ || (descriptor_.flags & cuda::kArray3DSurfaceLdst) != 0; }
  cuda::CUarray handle() { return reinterpret_cast<cuda::CUarray>(this); }
  /// The array as a texture or surface resource of one level.
  exec::ImageResource Resource() const;

 private:
  friend class MipmappedArray;
  explicit Array(Context& context) : context_(context) {}
  Context& context_;
  cuda::CUDA_ARRAY3D_DESCRIPTOR descriptor_{};
  exec::ImageLevel level_;
  std::uint32_t texel_bytes_ = 0;
  bool owns_memory_ = true;
  bool mipmap_level_ = false;
};

class MipmappedArray {
 public:
  static cuda::CUresult Create(Context& context, const cuda::CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                               std::shared_ptr<MipmappedArray>* mipmap);
  Context& context() const { return levels_.front()->context(); }
  const std::vector<std::shared_ptr<Array>>& levels() const { return levels_; }
  exec::ImageResource Resource() const;

 private:
  std::vector<std::shared_ptr<Array>> levels_;
};

}  // namespace gridloom::session
