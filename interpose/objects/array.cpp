#include "interpose/objects/array.h"

#include <algorithm>
#include <bit>

#include "interpose/objects/device.h"
#include "sim/exec/extent.h"

namespace gridloom::session {

using namespace cuda;
using exec::ChannelType;

std::optional<TexelFormat> FormatOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: return TexelFormat{ChannelType::kUnsigned8, 0, false};
    case CU_AD_FORMAT_UNSIGNED_INT16: return TexelFormat{ChannelType::kUnsigned16, 0, false};
    case CU_AD_FORMAT_UNSIGNED_INT32: return TexelFormat{ChannelType::kUnsigned32, 0, false};
    case CU_AD_FORMAT_SIGNED_INT8: return TexelFormat{ChannelType::kSigned8, 0, false};
    case CU_AD_FORMAT_SIGNED_INT16: return TexelFormat{ChannelType::kSigned16, 0, false};
    case CU_AD_FORMAT_SIGNED_INT32: return TexelFormat{ChannelType::kSigned32, 0, false};
    case CU_AD_FORMAT_HALF: return TexelFormat{ChannelType::kHalf, 0, false};
    case CU_AD_FORMAT_FLOAT: return TexelFormat{ChannelType::kFloat, 0, false};
    case CU_AD_FORMAT_UNORM_INT8X1: return TexelFormat{ChannelType::kUnsigned8, 1, true};
    case CU_AD_FORMAT_UNORM_INT8X2: return TexelFormat{ChannelType::kUnsigned8, 2, true};
    case CU_AD_FORMAT_UNORM_INT8X4: return TexelFormat{ChannelType::kUnsigned8, 4, true};
    case CU_AD_FORMAT_UNORM_INT16X1: return TexelFormat{ChannelType::kUnsigned16, 1, true};
    case CU_AD_FORMAT_UNORM_INT16X2: return TexelFormat{ChannelType::kUnsigned16, 2, true};
    case CU_AD_FORMAT_UNORM_INT16X4: return TexelFormat{ChannelType::kUnsigned16, 4, true};
    case CU_AD_FORMAT_SNORM_INT8X1: return TexelFormat{ChannelType::kSigned8, 1, true};
    case CU_AD_FORMAT_SNORM_INT8X2: return TexelFormat{ChannelType::kSigned8, 2, true};
    case CU_AD_FORMAT_SNORM_INT8X4: return TexelFormat{ChannelType::kSigned8, 4, true};
    case CU_AD_FORMAT_SNORM_INT16X1: return TexelFormat{ChannelType::kSigned16, 1, true};
    case CU_AD_FORMAT_SNORM_INT16X2: return TexelFormat{ChannelType::kSigned16, 2, true};
    case CU_AD_FORMAT_SNORM_INT16X4: return TexelFormat{ChannelType::kSigned16, 4, true};
    default: return std::nullopt;
  }
}

bool IsFormat(CUarray_format format) {
  struct Range {
    CUarray_format first, last;
  };
  constexpr Range kRefused[] = {{CU_AD_FORMAT_UNORM_INT_101010_2, CU_AD_FORMAT_UNORM_INT_101010_2},
                                {CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_P010},
                                {CU_AD_FORMAT_P016, CU_AD_FORMAT_Y410},
                                {CU_AD_FORMAT_NV12, CU_AD_FORMAT_YUV444_16bit_SemiPlanar}};
  return FormatOf(format) || std::ranges::any_of(kRefused, [format](const Range& range) {
           return format >= range.first && format <= range.last;
         });
}

namespace {

/// Checks a descriptor against the device and gives the size of one texel.
CUresult Check(const Device& device, const CUDA_ARRAY3D_DESCRIPTOR& d, std::uint32_t* texel_bytes) {
  constexpr unsigned kKnown = kArray3DLayered | kArray3DSurfaceLdst | kArray3DCubemap | kArray3DTextureGather;
  if ((d.flags & ~kKnown) != 0) {
    return (d.flags & (kArray3DSparse | kArray3DDeferredMapping)) != 0 ? CUDA_ERROR_NOT_SUPPORTED
                                                                       : CUDA_ERROR_INVALID_VALUE;
  }
  const auto format = FormatOf(d.format);
  if (!format) return IsFormat(d.format) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  if (d.num_channels != 1 && d.num_channels != 2 && d.num_channels != 4) return CUDA_ERROR_INVALID_VALUE;
  if (format->channels != 0 && format->channels != d.num_channels) return CUDA_ERROR_INVALID_VALUE;
  *texel_bytes = exec::BytesOf(format->type) * d.num_channels;
  if (d.width == 0 || (d.height == 0 && d.depth != 0 && (d.flags & kArray3DLayered) == 0))
    return CUDA_ERROR_INVALID_VALUE;
  const auto& t = device.spec().texture;
  const bool layered = (d.flags & kArray3DLayered) != 0;
  if ((d.flags & kArray3DCubemap) != 0) {
    if (d.width != d.height || d.depth % 6 != 0 || d.depth == 0 || (!layered && d.depth != 6))
      return CUDA_ERROR_INVALID_VALUE;
    const bool fits =
        layered ? d.width <= t.max_cubemap_layered && d.depth <= t.max_cubemap_layers : d.width <= t.max_cubemap;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (layered) {
    if (d.depth == 0) return CUDA_ERROR_INVALID_VALUE;
    const bool fits = d.height == 0 ? d.width <= t.max_1d_layered && d.depth <= t.max_1d_layers
                                    : d.width <= t.max_2d_layered_width && d.height <= t.max_2d_layered_height &&
                                          d.depth <= t.max_2d_layers;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (d.depth != 0) {
    const bool fits = (d.width <= t.max_3d_width && d.height <= t.max_3d_height && d.depth <= t.max_3d_depth) ||
                      (d.width <= t.max_3d_alternate_width && d.height <= t.max_3d_alternate_height &&
                       d.depth <= t.max_3d_alternate_depth);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const bool fits = d.height == 0 ? d.width <= t.max_1d : d.width <= t.max_2d_width && d.height <= t.max_2d_height;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult Array::Create(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::shared_ptr<Array>* array) {
  std::shared_ptr<Array> made(new Array(context));
  made->owns_memory_ = false;
  if (const auto status = Check(context.device(), descriptor, &made->texel_bytes_); status != CUDA_SUCCESS)
    return status;
  made->descriptor_ = descriptor;
  exec::ImageLevel& level = made->level_;
  level.width = static_cast<std::uint32_t>(descriptor.width);
  level.height = static_cast<std::uint32_t>(std::max<std::size_t>(descriptor.height, 1));
  level.depth = static_cast<std::uint32_t>(std::max<std::size_t>(descriptor.depth, 1));
  const exec::Extent row = (exec::Extent(level.width) * made->texel_bytes_).RoundedUp(32), slice = row * level.height;
  const exec::Extent all = slice * level.depth;
  if (!all.fits()) return CUDA_ERROR_INVALID_VALUE;
  level.row_bytes = row.value();
  level.slice_bytes = slice.value();
  level.base = context.device().memory().Allocate(all.value(), 512, exec::MemoryKind::kDevice, &context);
  if (level.base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  made->owns_memory_ = true;
  *array = std::move(made);
  return CUDA_SUCCESS;
}

Array::~Array() {
  if (owns_memory_) context_.device().memory().Free(level_.base);
}

exec::ImageResource Array::Resource() const {
  exec::ImageResource resource;
  const TexelFormat format = *FormatOf(descriptor_.format);
  resource.type = format.type;
  resource.channels = static_cast<std::uint8_t>(descriptor_.num_channels);
  resource.layered = (descriptor_.flags & kArray3DLayered) != 0;
  resource.cubemap = (descriptor_.flags & kArray3DCubemap) != 0;
  resource.dims =
      descriptor_.height == 0 ? 1 : (descriptor_.depth == 0 || resource.layered || resource.cubemap ? 2 : 3);
  resource.levels[0] = level_;
  return resource;
}

CUresult MipmappedArray::Create(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                                std::shared_ptr<MipmappedArray>* mipmap) {
  std::size_t longest = std::max(descriptor.width, descriptor.height);
  if ((descriptor.flags & (kArray3DLayered | kArray3DCubemap)) == 0) longest = std::max(longest, descriptor.depth);
  const auto most = static_cast<unsigned>(std::bit_width(longest));
  levels = std::clamp(levels, 1u, std::clamp(most, 1u, exec::ImageResource::kMaxLevels));
  auto made = std::make_shared<MipmappedArray>();
  CUDA_ARRAY3D_DESCRIPTOR level = descriptor;
  for (unsigned i = 0; i < levels; ++i) {
    std::shared_ptr<Array> array;
    if (const auto status = Array::Create(context, level, &array); status != CUDA_SUCCESS) return status;
    array->mipmap_level_ = true;
    made->levels_.push_back(std::move(array));
    const auto halve = [](std::size_t& extent) { extent = extent == 0 ? 0 : std::max<std::size_t>(extent / 2, 1); };
    halve(level.width);
    halve(level.height);
    if ((level.flags & (kArray3DLayered | kArray3DCubemap)) == 0) halve(level.depth);
  }
  *mipmap = std::move(made);
  return CUDA_SUCCESS;
}

exec::ImageResource MipmappedArray::Resource() const {
  exec::ImageResource resource = levels_.front()->Resource();
  resource.level_count = static_cast<std::uint8_t>(levels_.size());
  for (std::size_t i = 0; i < levels_.size(); ++i) resource.levels[i] = levels_[i]->level();
  return resource;
}

}  // namespace gridloom::session
