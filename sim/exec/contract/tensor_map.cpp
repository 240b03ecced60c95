#include "sim/exec/contract/tensor_map.h"

#include <algorithm>
#include <bit>

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kMostBox = 256;
constexpr unsigned kMostStep = 8;
constexpr std::uint64_t kMostBoxBytes = 1 << 20;  // more than any shared memory
constexpr std::uint64_t kStrideAlign = 16, kStrideEnd = std::uint64_t{1} << 40;

std::uint32_t FlushSubnormal(std::uint32_t bits) { return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits; }

/// To the nearest tf32, ties to even; infinities and NaN stay what they are.
std::uint32_t RoundToTf32(std::uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u) return (bits & 0x7fffffu) == 0 ? bits : bits | 0x400000u;
  return (bits + 0xfffu + (bits >> 13 & 1)) & 0xffffe000u;
}

bool IsFlushed(TensorElement element) {
  return element == TensorElement::kF32Ftz || element == TensorElement::kTF32Ftz;
}
bool IsTf32(TensorElement element) { return element == TensorElement::kTF32 || element == TensorElement::kTF32Ftz; }

}  // namespace

std::uint32_t BytesOf(TensorElement element) {
  switch (element) {
    case TensorElement::kU8: return 1;
    case TensorElement::kU16:
    case TensorElement::kF16:
    case TensorElement::kBF16: return 2;
    case TensorElement::kU64:
    case TensorElement::kS64:
    case TensorElement::kF64: return 8;
    default: return 4;
  }
}

bool IsFloat(TensorElement element) { return element >= TensorElement::kF16; }

std::uint64_t TensorMap::all_rows() const {
  std::uint64_t rows = 1;
  for (unsigned axis = 1; axis < rank; ++axis) rows *= count(axis);
  return rows;
}

// What cuTensorMapEncodeTiled and tensormap.replace ask of the fields.
const char* TensorMap::Problem() const {
  if (magic != kMagic || version != kVersion)
    return "was not made by cuTensorMapEncodeTiled of this driver, or was overwritten";
  if (rank == 0 || rank > kMostTensorAxes) return "has no rank of 1 to 5";
  if (element >= TensorElement::kCount) return "has elements of a packed or unknown type, which is not supported";
  if (swizzle >= TensorSwizzle::kCount) return "has an unknown or unsupported swizzle mode";
  if (interleave != 0) return "has an interleaved layout, which is not supported";
  if (fill >= TensorFill::kCount) return "has an unknown fill mode";
  if (fill == TensorFill::kNan && !IsFloat(element)) return "fills integers with NaN";
  if (address % kStrideAlign != 0) return "has an address that is no multiple of 16";
  for (unsigned axis = 0; axis < rank; ++axis) {
    if (box[axis] == 0 || box[axis] > kMostBox) return "has a box of more than 256 elements along an axis, or of none";
    if (axis == 0) continue;
    if (step[axis] == 0 || step[axis] > kMostStep) return "has an element stride beyond 1 to 8";
    if (stride[axis - 1] % kStrideAlign != 0 || stride[axis - 1] >= kStrideEnd)
      return "has a stride that is no multiple of 16, or beyond 2^40";
  }
  if (row_bytes() % kStrideAlign != 0) return "has a box whose rows are no multiple of 16 bytes";
  if (all_rows() * row_bytes() > kMostBoxBytes) return "has a box larger than shared memory";
  if (swizzle != TensorSwizzle::kNone && row_bytes() > 16u << static_cast<unsigned>(swizzle))
    return "has a box wider than its swizzle span";
  return nullptr;
}

TensorRow RowOf(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t number) {
  TensorRow row{.number = number};
  bool outside = false;
  std::uint64_t address = map.address;
  for (unsigned axis = 1; axis < map.rank; ++axis) {
    const std::uint32_t count = map.count(axis);
    const std::int64_t at = coordinates[axis] + std::int64_t{number % count} * map.step[axis];
    number /= count;
    outside |= at < 0 || static_cast<std::uint64_t>(at) >= map.extent(axis);
    address += static_cast<std::uint64_t>(at) * map.stride[axis - 1];
  }
  const std::int64_t first = coordinates[0], end = first + map.box[0];
  const std::int64_t low = std::clamp<std::int64_t>(0, first, end);
  const std::int64_t high = std::clamp<std::int64_t>(static_cast<std::int64_t>(map.extent(0)), low, end);
  if (outside) {
    row.before = map.box[0];
    return row;
  }
  row.before = static_cast<std::uint32_t>(low - first);
  row.inside = static_cast<std::uint32_t>(high - low);
  row.address = address + static_cast<std::uint64_t>(low) * BytesOf(map.element);
  return row;
}

// The quiet NaN with all bits set: "NAN_REQUEST_ZERO_FMA" is a NaN that the driver API leaves unnamed.
std::uint64_t FillBits(const TensorMap& map) {
  if (map.fill == TensorFill::kZeros) return 0;
  switch (map.element) {
    case TensorElement::kF16:
    case TensorElement::kBF16: return 0x7fff;
    case TensorElement::kF64: return 0x7fffffffffffffff;
    default: return 0x7fffffff;
  }
}

bool ConvertsElements(TensorElement element) { return IsFlushed(element) || IsTf32(element); }

namespace {

template <typename Convert>
void ForEachElement(std::uint8_t* elements, std::uint32_t count, Convert&& convert) {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, elements + std::size_t{i} * 4, sizeof bits);
    bits = convert(bits);
    std::memcpy(elements + std::size_t{i} * 4, &bits, sizeof bits);
  }
}

}  // namespace

// One loop for each conversion, so that compilers make vector code of it.
void ConvertElements(TensorElement element, std::uint8_t* elements, std::uint32_t count) {
  if (IsFlushed(element)) ForEachElement(elements, count, FlushSubnormal);
  if (IsTf32(element)) ForEachElement(elements, count, RoundToTf32);
}

}  // namespace gridloom::exec
