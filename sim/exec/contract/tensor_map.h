// Tensor maps: the 128 opaque bytes that cuTensorMapEncodeTiled fills and tensor copies (cp.async.bulk.tensor, PTX
// ISA 9.7.9.27) follow. The layout is ours. Kernels can write to a map (tensormap.replace, or any store), so it is
// checked whenever it is used.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace gridloom::exec {

inline constexpr unsigned kMostTensorAxes = 5;
/// A row of a box: at most 256 elements of 8 bytes.
inline constexpr unsigned kMostTensorRowBytes = 2048;
/// Alignment of the destination or source in shared memory.
inline constexpr unsigned kTensorSharedAlign = 128;

/// Numbered as tensormap.replace's .elemtype (PTX ISA, 9.7.9.30); what follows there is packed and not supported.
enum class TensorElement : std::uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF32Ftz,
  kF64,
  kBF16,
  kTF32,
  kTF32Ftz,
  kCount
};
std::uint32_t BytesOf(TensorElement element);
bool IsFloat(TensorElement element);

/// 16-byte chunks of shared memory change places within spans of that many bytes.
enum class TensorSwizzle : std::uint8_t { kNone, k32, k64, k128, kCount };
enum class TensorFill : std::uint8_t { kZeros, kNan, kCount };

/// The fields are those of tensormap.replace, which stores to them by offset. All fields come from memory: trust none
/// but after Problem.
struct alignas(8) TensorMap {
  static constexpr std::uint32_t kMagic = 0x4d544c47;  // "GLTM"
  static constexpr std::uint8_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint8_t version = kVersion;
  std::uint8_t rank = 1;  ///< axes, 1 to 5; the innermost is number 0
  TensorElement element = TensorElement::kU8;
  TensorSwizzle swizzle = TensorSwizzle::kNone;
  TensorFill fill = TensorFill::kZeros;
  std::uint8_t interleave = 0;                           ///< must be 0: no interleaved layouts
  std::uint8_t step[kMostTensorAxes] = {1, 1, 1, 1, 1};  ///< of the traversal, elements; axis 0 has none
  std::uint8_t unused = 0;
  std::uint64_t address = 0;                              ///< of element (0, 0, …)
  std::uint64_t stride[kMostTensorAxes - 1] = {};         ///< bytes from one element to the next along axis 1, 2, …
  std::uint32_t size[kMostTensorAxes] = {1, 1, 1, 1, 1};  ///< elements along each axis; 0: 2^32
  std::uint32_t box[kMostTensorAxes] = {1, 1, 1, 1, 1};   ///< elements traversed along each axis, 1 to 256
  std::uint8_t rest[32] = {};

  /// What is wrong with the map, null when nothing is: a text that goes on after "tensor map".
  const char* Problem() const;

  std::uint64_t extent(unsigned axis) const { return size[axis] == 0 ? std::uint64_t{1} << 32 : size[axis]; }
  /// Elements that a copy moves along an axis.
  std::uint32_t count(unsigned axis) const { return axis == 0 ? box[0] : (box[axis] + step[axis] - 1u) / step[axis]; }
  std::uint32_t row_bytes() const { return box[0] * BytesOf(element); }
  std::uint32_t rows() const { return static_cast<std::uint32_t>(all_rows()); }
  /// Bytes of a whole box in shared memory, elements outside of the tensor included.
  std::uint32_t box_bytes() const { return row_bytes() * rows(); }

 private:
  std::uint64_t all_rows() const;
};
static_assert(sizeof(TensorMap) == 128);

/// Where the byte at this offset of shared memory lies under a swizzle: bits 7 to 9 are added (xor) to bits 4 to 6, as
/// many of them as the span has chunks (CUDA C++ Programming Guide, "TMA Swizzle").
constexpr std::uint32_t Swizzled(TensorSwizzle swizzle, std::uint32_t offset) {
  const std::uint32_t chunks = (1u << static_cast<unsigned>(swizzle)) - 1;
  return offset ^ ((offset >> 7 & chunks) << 4);
}

/// A row of the box along axis 0: which of its elements lie in the tensor, and where the first of those is.
struct TensorRow {
  std::uint32_t number = 0;   ///< in the box, axis 1 fastest
  std::uint32_t before = 0;   ///< elements before the tensor's edge
  std::uint32_t inside = 0;   ///< elements in the tensor that follow them; what is left lies behind the other edge
  std::uint64_t address = 0;  ///< of the first one inside
};
/// Row `number` of the box at these coordinates. The map has no Problem.
TensorRow RowOf(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t number);

/// One element of axis 0 as a fill.
std::uint64_t FillBits(const TensorMap& map);

/// What loads do to elements on their way: .f32.ftz and .tf32 types flush or round; all others stay as they are.
bool ConvertsElements(TensorElement element);
void ConvertElements(TensorElement element, std::uint8_t* elements, std::uint32_t count);

}  // namespace gridloom::exec
