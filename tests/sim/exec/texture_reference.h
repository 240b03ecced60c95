// Texture fetches as the CUDA C++ Programming Guide's appendix writes them, one texel at a time: what the sampler is
// tested against.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/exec/texture.h"

namespace gridloom::test {

/// Memory of an image with rows and slices of odd strides, filled with random texels.
class TestImage {
 public:
  struct Shape {
    exec::ChannelType type = exec::ChannelType::kFloat;
    unsigned channels = 1, dims = 2;
    std::uint32_t width = 1, height = 1, depth = 1;
    bool layered = false, cubemap = false;
    unsigned levels = 1;
  };
  TestImage(const Shape& shape, unsigned seed);
  const exec::ImageResource& resource() const { return resource_; }

 private:
  std::vector<std::vector<std::uint8_t>> memory_;
  exec::ImageResource resource_;
};

using Texel = std::array<double, 4>;

/// One texel as the kernel sees it (integers that are not normalised as their value).
Texel StoredTexel(const exec::TextureObject& texture, const exec::ImageLevel& level, std::int64_t x, std::int64_t y,
                  std::int64_t z);
bool ReadsFloat(const exec::TextureObject& texture);

/// tex(x, y, z) of one level. `slice` < 0: the third coordinate is z (or there is none).
Texel ReferenceFetch(const exec::TextureObject& texture, unsigned level, const std::array<float, 3>& coordinate,
                     const std::array<int, 3>& offset, unsigned axes, std::int64_t slice);
/// The same by integer coordinates.
Texel ReferenceFetchInteger(const exec::TextureObject& texture, unsigned level,
                            const std::array<std::int32_t, 3>& index, const std::array<int, 3>& offset, unsigned axes,
                            std::int64_t slice);

}  // namespace gridloom::test
