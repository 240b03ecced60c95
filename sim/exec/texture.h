// Texture and surface objects as kernels see them. The driver shim fills these structs and enters them in the table;
// the texture and surface instructions look them up by the 64-bit handle that the program passes around and sample from
// them.
//
// Texels lie as plain rows in device memory: no tiling. Texel (x, y, z) of a level is at
//   base + z * slice_bytes + y * row_bytes + x * texel_bytes
// where z is the depth of a 3D image, the layer of a layered one, or 6 * layer + face of a cubemap (face order +X -X +Y
// -Y +Z -Z, CUDA C++ Programming Guide, "Cubemap Textures").
#pragma once

#include <cstdint>
#include <memory>

namespace gridloom::exec {

enum class ChannelType : std::uint8_t {
  kUnsigned8,
  kUnsigned16,
  kUnsigned32,
  kSigned8,
  kSigned16,
  kSigned32,
  kHalf,
  kFloat
};
constexpr std::uint32_t BytesOf(ChannelType type) {
  switch (type) {
    case ChannelType::kUnsigned8:
    case ChannelType::kSigned8: return 1;
    case ChannelType::kUnsigned16:
    case ChannelType::kSigned16:
    case ChannelType::kHalf: return 2;
    default: return 4;
  }
}

enum class AddressMode : std::uint8_t { kWrap, kClamp, kMirror, kBorder };
enum class FilterMode : std::uint8_t { kPoint, kLinear };

/// One mipmap level, or the whole of an image without mipmaps. Unused dimensions are 1.
struct ImageLevel {
  std::uint64_t base = 0;
  std::uint32_t width = 1, height = 1, depth = 1;  ///< texels; depth counts slices: depth, layers, or 6 * layers
  std::uint64_t row_bytes = 0, slice_bytes = 0;
};

/// What a texture or surface object refers to.
struct ImageResource {
  static constexpr unsigned kMaxLevels = 17;
  enum class Kind : std::uint8_t { kArray, kLinear, kPitch2D };
  Kind kind = Kind::kArray;  ///< kLinear: 1D memory, fetched by integer index only
  ChannelType type = ChannelType::kFloat;
  std::uint8_t channels = 1;  ///< 1, 2 or 4; absent ones read as 0, 0 and 1 (alpha)
  std::uint8_t dims = 2;      ///< 1, 2 or 3, layers not counted; a cubemap has 2
  bool layered = false;
  bool cubemap = false;
  std::uint8_t level_count = 1;
  ImageLevel levels[kMaxLevels];

  std::uint32_t texel_bytes() const { return BytesOf(type) * channels; }
};

struct TextureObject {
  ImageResource image;
  AddressMode address[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  FilterMode filter = FilterMode::kPoint;
  FilterMode mip_filter = FilterMode::kPoint;
  /// Integer texels arrive as they are; otherwise 8- and 16-bit ones become [0, 1] or [-1, 1] floats.
  bool read_as_integer = false;
  bool normalized_coordinates = false;
  bool srgb = false;  ///< 8-bit unsigned colours go through the sRGB curve
  bool seamless_cubemap = false;
  float lod_bias = 0, min_lod = 0, max_lod = 0;  ///< levels
  std::uint32_t max_anisotropy = 0;
  float border[4] = {0, 0, 0, 0};
};

struct SurfaceObject {
  ImageResource image;  ///< level 0 is the one that is read and written
};

/// All live objects of the process. Handles are small numbers and never 0. Find is lock-free and may be called by
/// running kernels; removing an object that a kernel still uses is the program's error: its memory is kept for a while
/// and then another object's.
class ImageTable {
 public:
  static ImageTable& Get();
  std::uint64_t Add(const TextureObject& texture);
  std::uint64_t Add(const SurfaceObject& surface);
  bool RemoveTexture(std::uint64_t handle);
  bool RemoveSurface(std::uint64_t handle);
  /// Null for a handle that is none, or belongs to the other kind.
  const TextureObject* FindTexture(std::uint64_t handle) const;
  const SurfaceObject* FindSurface(std::uint64_t handle) const;

 private:
  ImageTable();
  ~ImageTable() = delete;
  struct Slots;
  Slots* slots_;
};

}  // namespace gridloom::exec
