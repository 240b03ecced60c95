// Matrix products of any bits: infinities, what is no number, subnormals, products beyond the range of f32. Each
// element against a chain of fused multiply-adds, and every instruction set with the same bits.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "sim/exec/runtime/half.h"
#include "sim/exec/simd.h"
#include "sim/exec/tensor/elements.h"
#include "sim/exec/tensor/group_multiply.h"
#include "sim/exec/tensor/multiply.h"

using namespace gridloom::exec;

namespace {

using M = MatrixType;
using Register = std::vector<std::uint32_t>;

constexpr SimdLevel kLevels[] = {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512};

struct AtTheEnd {
  ~AtTheEnd() { LimitSimd(SimdLevel::kAvx512); }
};

/// Any bits; every third word ones that matter: zeros, subnormals, infinities, no numbers, the largest.
Register RandomRegister(std::mt19937& random) {
  constexpr std::uint32_t kLandmarks[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00001, 0x7f800001,
                                          0x7f7fffff, 0x00000001, 0x007fffff, 0x7c00fc00, 0x7c01fe00, 0x00018001,
                                          0x7f7f7fff, 0x7b7fffff, 0x00ff7f80, 0x3c003c00};
  Register words(32);
  for (std::uint32_t& word : words)
    word = random() % 3 ? static_cast<std::uint32_t>(random()) : kLandmarks[random() % std::size(kLandmarks)];
  return words;
}

std::vector<Register> RandomRegisters(std::mt19937& random, unsigned count) {
  std::vector<Register> registers;
  for (unsigned i = 0; i < count; ++i) registers.push_back(RandomRegister(random));
  return registers;
}

std::vector<void*> Pointers(std::vector<Register>& registers) {
  std::vector<void*> pointers;
  for (Register& words : registers) pointers.push_back(words.data());
  return pointers;
}

/// Element `i` of 16 bytes.
float ElementOf(M type, const void* line, unsigned i) {
  const auto* const bytes = static_cast<const std::uint8_t*>(line);
  std::uint16_t half = 0;
  std::uint32_t word = 0;
  if (BitsOf(type) == 16) std::memcpy(&half, bytes + i * 2, 2);
  if (BitsOf(type) == 32) std::memcpy(&word, bytes + i * 4, 4);
  switch (type) {
    case M::kF16: return HalfToFloat(half);
    case M::kBF16: return BfloatToFloat(half);
    case M::kTF32: return std::bit_cast<float>(word & 0xffffe000u);
    default: return SmallFloatTable(type)[bytes[i]];
  }
}

std::uint32_t CanonicalBits(float value) {
  return std::isnan(value) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(value);
}

struct Shape {
  M a, b, c, d;
  unsigned m, n, k;
};

/// An element of an accumulator: registers go down the rows, then along the columns.
struct Place {
  unsigned block, lane;
  bool odd;
};
Place PlaceOf(const Shape& shape, unsigned row, unsigned column) {
  return {column / 8 * (shape.m / 8) + row / 8, row % 8 * 4 + column % 8 / 2, column % 2 != 0};
}
float ReadAccumulator(M type, const std::vector<Register>& registers, const Place& place) {
  if (type == M::kF32) return std::bit_cast<float>(registers[place.block * 2 + place.odd][place.lane]);
  return HalfToFloat(static_cast<std::uint16_t>(registers[place.block][place.lane] >> (place.odd ? 16 : 0)));
}
std::uint32_t AccumulatorBits(M type, const std::vector<Register>& registers, const Place& place) {
  if (type == M::kF32) return registers[place.block * 2 + place.odd][place.lane];
  return registers[place.block][place.lane] >> (place.odd ? 16 : 0) & 0xffff;
}

void CheckBits(const Shape& shape, std::mt19937& random) {
  const auto pair = [](M low, M high) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(low) | static_cast<unsigned>(high) << 4);
  };
  const MmaImm imm{.m = static_cast<std::uint8_t>(shape.m),
                   .n = static_cast<std::uint8_t>(shape.n),
                   .k = static_cast<std::uint16_t>(shape.k),
                   .types = pair(shape.a, shape.b),
                   .accumulators = pair(shape.c, shape.d)};
  std::vector<Register> a = RandomRegisters(random, RegistersOfA(imm)), b = RandomRegisters(random, RegistersOfB(imm)),
                        c = RandomRegisters(random, AccumulatorRegisters(imm, shape.c)), first;
  for (SimdLevel level : kLevels) {
    LimitSimd(level);
    std::vector<Register> d(AccumulatorRegisters(imm, shape.d), Register(32));
    MultiplyFragments(imm, Pointers(a).data(), Pointers(b).data(), Pointers(c).data(), nullptr, Pointers(d).data());
    if (first.empty()) first = d;
    CHECK(d == first);
  }
  const unsigned per_line = 128 / BitsOf(shape.a), chunks = shape.k / per_line;
  unsigned wrong = 0;
  for (unsigned row = 0; row < shape.m; ++row) {
    for (unsigned column = 0; column < shape.n; ++column) {
      const Place place = PlaceOf(shape, row, column);
      float sum = ReadAccumulator(shape.c, c, place);
      for (unsigned k = 0; k < shape.k; ++k) {
        const std::uint32_t* const line_a = a[k / per_line * (shape.m / 8) + row / 8].data() + row % 8 * 4;
        const std::uint32_t* const line_b = b[column / 8 * chunks + k / per_line].data() + column % 8 * 4;
        sum = std::fma(ElementOf(shape.a, line_a, k % per_line), ElementOf(shape.b, line_b, k % per_line), sum);
      }
      const std::uint32_t expected = shape.d == M::kF32 ? CanonicalBits(sum) : FloatToHalf(sum);
      wrong += AccumulatorBits(shape.d, first, place) != expected;
    }
  }
  INFO("types " << int(shape.a) << " " << int(shape.b) << ", " << shape.m << " x " << shape.n << " x " << shape.k);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("Mma_AnyBits_RoundEachSumOnce") {
  const AtTheEnd restore;
  std::mt19937 random(31);
  for (int round = 0; round < 20; ++round) {
    for (M type : {M::kF16, M::kBF16, M::kTF32}) {
      const unsigned k = type == M::kTF32 ? 8 : 16;
      CheckBits({type, type, M::kF32, M::kF32, 16, 8, k}, random);
      CheckBits({type, type, M::kF32, M::kF32, 16, 8, k / 2}, random);
      CheckBits({type, type, M::kF32, M::kF32, 16, 16, k}, random);
    }
    for (M type : {M::kF16, M::kBF16}) {
      CheckBits({type, type, M::kF32, M::kF32, 32, 8, 16}, random);
      CheckBits({type, type, M::kF32, M::kF32, 8, 32, 16}, random);
    }
    for (M c : {M::kF16, M::kF32}) {
      for (M d : {M::kF16, M::kF32}) {
        CheckBits({M::kF16, M::kF16, c, d, 16, 8, 16}, random);
        CheckBits({M::kF16, M::kF16, c, d, 8, 32, 16}, random);
      }
    }
    for (M a : {M::kE4M3, M::kE5M2, M::kE3M2, M::kE2M3, M::kE2M1}) {
      for (M b : {M::kE4M3, M::kE5M2, M::kE3M2, M::kE2M3, M::kE2M1})
        CheckBits({a, b, M::kF32, M::kF32, 16, 8, 32}, random);
      CheckBits({a, a, M::kF16, M::kF16, 16, 8, 16}, random);
    }
  }
}

TEST_CASE("GroupMma_AnyBits_AreThoseOfMma") {
  const AtTheEnd restore;
  std::mt19937 random(32);
  for (M type : {M::kF16, M::kBF16, M::kTF32, M::kE4M3, M::kE5M2, M::kS8, M::kU8}) {
    for (unsigned groups : {1u, 2u, 3u, 32u}) {
      const M accumulator = IsIntegerMatrix(type) ? M::kS32 : M::kF32;
      const auto types = static_cast<std::uint8_t>(static_cast<unsigned>(type) * 17);
      std::vector<Register> a = RandomRegisters(random, 4), b = RandomRegisters(random, groups * 2),
                            c = RandomRegisters(random, groups * 4);
      const std::vector<void*> pointers_a = Pointers(a), pointers_b = Pointers(b);
      GroupOperands operands;
      for (unsigned r = 0; r < 4; ++r) operands.a[r % 2].chunk[r / 2] = static_cast<const std::uint8_t*>(pointers_a[r]);
      for (unsigned r = 0; r < groups * 2; ++r)
        operands.b[r / 2].chunk[r % 2] = static_cast<const std::uint8_t*>(pointers_b[r]);
      const MmaImm mma{.m = 16,
                       .n = 8,
                       .k = static_cast<std::uint16_t>(256 / BitsOf(type)),
                       .types = types,
                       .accumulators = static_cast<std::uint8_t>(static_cast<unsigned>(accumulator) * 17)};
      std::vector<Register> expected(groups * 4, Register(32));
      LimitSimd(SimdLevel::kBaseline);
      for (unsigned group = 0; group < groups; ++group) {
        MultiplyFragments(mma, pointers_a.data(), pointers_b.data() + group * 2, Pointers(c).data() + group * 4,
                          nullptr, Pointers(expected).data() + group * 4);
      }
      for (SimdLevel level : kLevels) {
        LimitSimd(level);
        std::vector<Register> d = c;
        MultiplyGroup({.columns8 = static_cast<std::uint8_t>(groups), .types = types, .accumulator = accumulator},
                      operands, true, Pointers(d).data());
        INFO("type " << int(type) << ", " << groups << " groups, level " << int(level));
        CHECK(d == expected);
      }
    }
  }
}
