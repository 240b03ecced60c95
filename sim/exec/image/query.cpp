// txq and suq. Enumerations are OpenCL's where the ISA refers to the source language (PTX ISA, 5.3 and 9.7.10.5):
// OpenCL is the only one that defines them.
#include <algorithm>

#include "sim/exec/image/sample.h"
#include "sim/exec/image/surface.h"

namespace gridloom::exec {
namespace {

std::uint32_t DataTypeOf(const ImageResource& image, bool normalized) {
  switch (image.type) {
    case ChannelType::kSigned8: return normalized ? 0x10d0 : 0x10d7;  // CL_SNORM_INT8, CL_SIGNED_INT8
    case ChannelType::kSigned16: return normalized ? 0x10d1 : 0x10d8;
    case ChannelType::kUnsigned8: return normalized ? 0x10d2 : 0x10da;  // CL_UNORM_INT8, CL_UNSIGNED_INT8
    case ChannelType::kUnsigned16: return normalized ? 0x10d3 : 0x10db;
    case ChannelType::kSigned32: return 0x10d9;
    case ChannelType::kUnsigned32: return 0x10dc;
    case ChannelType::kHalf: return 0x10dd;
    case ChannelType::kFloat: return 0x10de;
  }
  return 0;
}

std::uint32_t ChannelOrderOf(const ImageResource& image) {
  return image.channels == 1 ? 0x10b0 : image.channels == 2 ? 0x10b2 : 0x10b5;  // CL_R, CL_RG, CL_RGBA
}

std::uint32_t ArraySizeOf(const ImageResource& image) {
  if (!image.layered) return 0;
  return image.cubemap ? image.levels[0].depth / 6 : image.levels[0].depth;
}

std::uint32_t AddressModeOf(AddressMode mode) {
  switch (mode) {
    case AddressMode::kWrap: return 0;
    case AddressMode::kMirror: return 1;
    case AddressMode::kClamp: return 3;  // to the edge
    case AddressMode::kBorder: return 4;
  }
  return 0;
}

std::uint32_t QueryImage(const ImageResource& image, ImageQuery query, std::uint32_t number, bool normalized) {
  const ImageLevel& level = image.levels[std::min<std::uint32_t>(number, image.level_count - 1u)];
  switch (query) {
    case ImageQuery::kWidth: return level.width;
    case ImageQuery::kHeight: return image.dims > 1 ? level.height : 0;
    case ImageQuery::kDepth: return image.dims > 2 ? level.depth : 0;
    case ImageQuery::kChannelDataType: return DataTypeOf(image, normalized);
    case ImageQuery::kChannelOrder: return ChannelOrderOf(image);
    case ImageQuery::kArraySize: return ArraySizeOf(image);
    case ImageQuery::kMipmapLevels: return image.level_count > 1 ? image.level_count : 0;
    case ImageQuery::kMemoryLayout: return image.kind == ImageResource::Kind::kArray ? 0 : 1;  // 1: linear
    default: return 0;
  }
}

}  // namespace

std::uint32_t QueryTexture(const TextureObject& texture, const Sampler& sampler, ImageQuery query,
                           std::uint32_t level) {
  switch (query) {
    case ImageQuery::kNormalizedCoords: return sampler.normalized;
    case ImageQuery::kForceUnnormalizedCoords: return !sampler.normalized;
    case ImageQuery::kFilterMode: return sampler.filter == FilterMode::kLinear;
    case ImageQuery::kAddressMode0: return AddressModeOf(sampler.address[0]);
    case ImageQuery::kAddressMode1: return AddressModeOf(sampler.address[1]);
    case ImageQuery::kAddressMode2: return AddressModeOf(sampler.address[2]);
    default: return QueryImage(texture.image, query, level, FormatOf(texture).normalized);
  }
}

std::uint32_t QuerySurface(const SurfaceObject& surface, ImageQuery query) {
  return QueryImage(surface.image, query, 0, false);
}

}  // namespace gridloom::exec
