// Matrix products of a warp: every shape and type, fragments distributed by the formulas of the PTX ISA (9.7.14.5),
// against a triple loop, with every instruction set.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "sim/exec/runtime/half.h"
#include "sim/exec/simd.h"
#include "sim/exec/tensor/elements.h"
#include "sim/exec/tensor/multiply.h"

using namespace gridloom::exec;

namespace {

struct Matrix {
  unsigned rows, columns;
  std::vector<double> value;
  Matrix(unsigned r, unsigned c) : rows(r), columns(c), value(r * c) {}
  double& at(unsigned r, unsigned c) { return value[r * columns + c]; }
};

struct Position {
  unsigned row, column;
};

// The ISA's formulas: lane and element number -> position. groupID = lane >> 2, threadID_in_group = lane % 4.
Position PositionInA(unsigned m, unsigned per_register, unsigned lane, unsigned i) {
  const unsigned g = lane >> 2, t = lane % 4, reg = i / per_register;
  if (m == 8) return {g, t * per_register + i % per_register};
  return {reg % 2 == 0 ? g : g + 8, t * per_register + i % per_register + reg / 2 * 4 * per_register};
}
Position PositionInB(unsigned per_register, unsigned lane, unsigned i) {
  return {lane % 4 * per_register + i % per_register + i / per_register * 4 * per_register, lane >> 2};
}
Position PositionInC(unsigned lane, unsigned i) { return {(lane >> 2) + i / 2 * 8, lane % 4 * 2 + (i & 1)}; }

/// A fragment of all lanes: elements of `bits` bits packed into registers of 32 bits, or one of 64 each.
class Fragment {
 public:
  Fragment(MatrixType type, unsigned elements_per_lane) : bits_(BitsOf(type)) {
    const unsigned per_register = PerRegister();
    for (unsigned i = 0; i < elements_per_lane / per_register; ++i) registers_.emplace_back(32 * (bits_ == 64 ? 8 : 4));
    for (auto& reg : registers_) pointers_.push_back(reg.data());
  }
  unsigned PerRegister() const { return bits_ == 64 ? 1 : 32 / bits_; }
  void Set(unsigned lane, unsigned i, std::uint64_t bits) {
    std::uint64_t word = Word(lane, i);
    const unsigned shift = i % PerRegister() * bits_;
    const std::uint64_t mask = bits_ == 64 ? ~std::uint64_t{0} : ((std::uint64_t{1} << bits_) - 1) << shift;
    word = (word & ~mask) | (bits << shift & mask);
    std::memcpy(registers_[i / PerRegister()].data() + lane * Bytes(), &word, Bytes());
  }
  std::uint64_t Get(unsigned lane, unsigned i) const {
    const std::uint64_t word = Word(lane, i) >> i % PerRegister() * bits_;
    return bits_ == 64 ? word : word & ((std::uint64_t{1} << bits_) - 1);
  }
  const FragmentRegister* registers() const { return pointers_.data(); }
  bool operator==(const Fragment& other) const { return registers_ == other.registers_; }

 private:
  unsigned Bytes() const { return bits_ == 64 ? 8 : 4; }
  std::uint64_t Word(unsigned lane, unsigned i) const {
    std::uint64_t word = 0;
    std::memcpy(&word, registers_[i / PerRegister()].data() + lane * Bytes(), Bytes());
    return word;
  }
  unsigned bits_;
  std::vector<std::vector<std::uint8_t>> registers_;
  std::vector<FragmentRegister> pointers_;
};

std::uint64_t Encode(MatrixType type, double value) {
  switch (type) {
    case MatrixType::kF16: return DoubleToHalf(value);
    case MatrixType::kBF16: return DoubleToBfloat(value);
    case MatrixType::kTF32:
    case MatrixType::kF32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case MatrixType::kF64: return std::bit_cast<std::uint64_t>(value);
    case MatrixType::kE4M3:
    case MatrixType::kE5M2:
    case MatrixType::kE3M2:
    case MatrixType::kE2M3:
    case MatrixType::kE2M1:
      for (unsigned byte = 0; byte < 256; ++byte) {
        if (static_cast<double>(SmallFloatTable(type)[byte]) == value) return byte;
      }
      FAIL("no such value");
      return 0;
    default: return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

double Decode(MatrixType type, std::uint64_t bits) {
  switch (type) {
    case MatrixType::kF16: return static_cast<double>(HalfToFloat(static_cast<std::uint16_t>(bits)));
    case MatrixType::kF32: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case MatrixType::kF64: return std::bit_cast<double>(bits);
    default: return static_cast<std::int32_t>(bits);
  }
}

double RandomElement(MatrixType type, std::mt19937& random, bool small) {
  switch (type) {
    case MatrixType::kS8: return static_cast<int>(random() % 256) - 128;
    case MatrixType::kU8: return random() % 256;
    case MatrixType::kS4: return static_cast<int>(random() % 16) - 8;
    case MatrixType::kU4: return random() % 16;
    case MatrixType::kB1: return random() % 2;
    case MatrixType::kS32: return static_cast<int>(random());
    case MatrixType::kE4M3:
    case MatrixType::kE5M2:
    case MatrixType::kE3M2:
    case MatrixType::kE2M3:
    case MatrixType::kE2M1: return (static_cast<int>(random() % 3) - 1) * (random() % 2 ? 1.0 : 0.5);
    default: break;
  }
  if (small) return static_cast<int>(random() % 9) - 4;
  return static_cast<double>(static_cast<float>(static_cast<int>(random() % 2048) - 1024) / 256.0f);
}

struct Case {
  MatrixType a, b, c, d;
  unsigned m, k;
};

void CheckProduct(const Case& test, std::mt19937& random, std::uint8_t flags = 0, bool small = true) {
  const MmaImm imm{
      .m = static_cast<std::uint8_t>(test.m),
      .n = 8,
      .k = static_cast<std::uint16_t>(test.k),
      .types = static_cast<std::uint8_t>(static_cast<unsigned>(test.a) | static_cast<unsigned>(test.b) << 4),
      .accumulators = static_cast<std::uint8_t>(static_cast<unsigned>(test.c) | static_cast<unsigned>(test.d) << 4),
      .flags = flags};
  Matrix a(test.m, test.k), b(test.k, 8), c(test.m, 8);
  Fragment fa(test.a, test.m * test.k / 32), fb(test.b, 8 * test.k / 32), fc(test.c, test.m * 8 / 32);
  REQUIRE(RegistersOfA(imm) * fa.PerRegister() == test.m * test.k / 32);
  REQUIRE(RegistersOfB(imm) * fb.PerRegister() == 8 * test.k / 32);
  for (double& x : a.value) x = RandomElement(test.a, random, small);
  for (double& x : b.value) x = RandomElement(test.b, random, small);
  for (double& x : c.value) x = RandomElement(test.c, random, small);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < test.m * test.k / 32; ++i) {
      const Position p = PositionInA(test.m, fa.PerRegister(), lane, i);
      fa.Set(lane, i, Encode(test.a, a.at(p.row, p.column)));
    }
    for (unsigned i = 0; i < 8 * test.k / 32; ++i) {
      const Position p = PositionInB(fb.PerRegister(), lane, i);
      fb.Set(lane, i, Encode(test.b, b.at(p.row, p.column)));
    }
    for (unsigned i = 0; i < test.m * 8 / 32; ++i)
      fc.Set(lane, i, Encode(test.c, c.at(PositionInC(lane, i).row, PositionInC(lane, i).column)));
  }
  std::vector<Fragment> results;
  for (SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    LimitSimd(level);
    results.emplace_back(test.d, test.m * 8 / 32);
    MultiplyFragments(imm, fa.registers(), fb.registers(), fc.registers(), nullptr, results.back().registers());
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < test.m * 8 / 32; ++i) {
      const Position p = PositionInC(lane, i);
      double expected = c.at(p.row, p.column);
      for (unsigned k = 0; k < test.k; ++k) {
        const double x = a.at(p.row, k), y = b.at(k, p.column);
        if (test.a == MatrixType::kB1) expected += flags & MmaImm::kAndPopc ? x * y : (x != y);
        else expected += x * y;
      }
      if (IsIntegerMatrix(test.a)) {
        if (flags & MmaImm::kSaturate) expected = std::fmin(std::fmax(expected, -2147483648.0), 2147483647.0);
        else expected = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(expected)));
      }
      INFO("m " << test.m << " k " << test.k << " type " << int(test.a) << " lane " << lane << " element " << i);
      const double got = Decode(test.d, results[0].Get(lane, i));
      if (small || IsIntegerMatrix(test.a)) CHECK(got == expected);
      else CHECK(got == Approx(expected).epsilon(test.d == MatrixType::kF16 ? 1e-3 : 1e-5).margin(1e-4));
    }
  }
}

constexpr MatrixType kF16 = MatrixType::kF16, kBF16 = MatrixType::kBF16, kTF32 = MatrixType::kTF32,
                     kF32 = MatrixType::kF32, kF64 = MatrixType::kF64, kS8 = MatrixType::kS8, kU8 = MatrixType::kU8,
                     kS4 = MatrixType::kS4, kU4 = MatrixType::kU4, kB1 = MatrixType::kB1, kS32 = MatrixType::kS32;

}  // namespace

TEST_CASE("Mma_FloatShapes_MultiplyExactlyForSmallNumbers") {
  std::mt19937 random(1);
  for (bool small : {true, false}) {
    for (unsigned k : {8u, 16u}) {
      CheckProduct({kF16, kF16, kF32, kF32, 16, k}, random, 0, small);
      CheckProduct({kF16, kF16, kF16, kF16, 16, k}, random, 0, small);
      CheckProduct({kF16, kF16, kF16, kF32, 16, k}, random, 0, small);
      CheckProduct({kF16, kF16, kF32, kF16, 16, k}, random, 0, small);
      CheckProduct({kBF16, kBF16, kF32, kF32, 16, k}, random, 0, true);
    }
    CheckProduct({kTF32, kTF32, kF32, kF32, 16, 4}, random, 0, small);
    CheckProduct({kTF32, kTF32, kF32, kF32, 16, 8}, random, 0, small);
    CheckProduct({kF64, kF64, kF64, kF64, 8, 4}, random, 0, small);
    for (unsigned k : {4u, 8u, 16u}) CheckProduct({kF64, kF64, kF64, kF64, 16, k}, random, 0, small);
  }
}

TEST_CASE("Mma_SmallFloats_MixFormats") {
  std::mt19937 random(2);
  constexpr MatrixType kTypes[] = {MatrixType::kE4M3, MatrixType::kE5M2, MatrixType::kE3M2, MatrixType::kE2M3,
                                   MatrixType::kE2M1};
  for (MatrixType a : kTypes) {
    for (MatrixType b : kTypes) {
      CheckProduct({a, b, kF32, kF32, 16, 16}, random);
      CheckProduct({a, b, kF32, kF32, 16, 32}, random);
      CheckProduct({a, b, kF16, kF16, 16, 32}, random);
    }
  }
}

TEST_CASE("Mma_Integers_WrapOrSaturate") {
  std::mt19937 random(3);
  for (std::uint8_t flags : {std::uint8_t{0}, MmaImm::kSaturate}) {
    for (MatrixType a : {kS8, kU8}) {
      for (MatrixType b : {kS8, kU8}) {
        CheckProduct({a, b, kS32, kS32, 8, 16}, random, flags);
        CheckProduct({a, b, kS32, kS32, 16, 16}, random, flags);
        CheckProduct({a, b, kS32, kS32, 16, 32}, random, flags);
      }
    }
    for (MatrixType a : {kS4, kU4}) {
      for (MatrixType b : {kS4, kU4}) {
        CheckProduct({a, b, kS32, kS32, 8, 32}, random, flags);
        CheckProduct({a, b, kS32, kS32, 16, 32}, random, flags);
        CheckProduct({a, b, kS32, kS32, 16, 64}, random, flags);
      }
    }
  }
}

TEST_CASE("Mma_Bits_CountXorOrAnd") {
  std::mt19937 random(4);
  for (std::uint8_t flags : {std::uint8_t{0}, MmaImm::kAndPopc}) {
    CheckProduct({kB1, kB1, kS32, kS32, 8, 128}, random, flags);
    CheckProduct({kB1, kB1, kS32, kS32, 16, 128}, random, flags);
    CheckProduct({kB1, kB1, kS32, kS32, 16, 256}, random, flags);
  }
}

TEST_CASE("Mma_Doubles_RoundAsAsked") {
  // 1 + 2^-60: rounded up to the next double, otherwise 1.
  const auto multiply = [](MatrixRounding rounding) {
    const MmaImm imm{.m = 8,
                     .n = 8,
                     .k = 4,
                     .types = static_cast<std::uint8_t>(static_cast<unsigned>(kF64) * 17),
                     .accumulators = static_cast<std::uint8_t>(static_cast<unsigned>(kF64) * 17),
                     .rounding = rounding};
    Fragment a(kF64, 1), b(kF64, 1), c(kF64, 2), d(kF64, 2);
    a.Set(0, 0, Encode(kF64, 0x1p-30));
    b.Set(0, 0, Encode(kF64, 0x1p-30));
    c.Set(0, 0, Encode(kF64, 1.0));
    MultiplyFragments(imm, a.registers(), b.registers(), c.registers(), nullptr, d.registers());
    return Decode(kF64, d.Get(0, 0));
  };
  CHECK(multiply(MatrixRounding::kNearest) == 1.0);
  CHECK(multiply(MatrixRounding::kZero) == 1.0);
  CHECK(multiply(MatrixRounding::kDown) == 1.0);
  CHECK(multiply(MatrixRounding::kUp) == std::nextafter(1.0, 2.0));
}

TEST_CASE("Mma_QuadPairs_MultiplyFourMatrices") {
  std::mt19937 random(5);
  for (unsigned layouts = 0; layouts < 4; ++layouts) {
    for (MatrixType accumulator : {kF16, kF32}) {
      const MmaImm imm{
          .m = 8,
          .n = 8,
          .k = 4,
          .types = 0,
          .accumulators = static_cast<std::uint8_t>(static_cast<unsigned>(accumulator) * 17),
          .flags = static_cast<std::uint8_t>((layouts & 1 ? MmaImm::kColumnA : 0) | (layouts & 2 ? MmaImm::kRowB : 0))};
      Fragment a(kF16, 4), b(kF16, 4), c(accumulator, 8), d(accumulator, 8);
      std::vector<Matrix> ma(4, Matrix(8, 4)), mb(4, Matrix(4, 8)), mc(4, Matrix(8, 8));
      for (auto* matrices : {&ma, &mb, &mc}) {
        for (Matrix& matrix : *matrices) {
          for (double& x : matrix.value) x = RandomElement(kF16, random, true);
        }
      }
      // 9.7.14.5.1: thread pairs of quads; row and column of each element.
      const auto in_c = [&](unsigned lane, unsigned i) -> Position {
        if (accumulator == kF16) return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
        const unsigned x = (lane & 1) + (i & 2);
        return {lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
      };
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned pair = lane % 16 / 4;
        for (unsigned i = 0; i < 4; ++i) {
          const unsigned high = lane < 16 ? 0 : 4;
          a.Set(lane, i,
                Encode(kF16, layouts & 1 ? ma[pair].at(i % 4 + high, lane % 4) : ma[pair].at(lane % 4 + high, i)));
          b.Set(lane, i, Encode(kF16, layouts & 2 ? mb[pair].at(lane % 4, i + high) : mb[pair].at(i, lane % 4 + high)));
        }
        for (unsigned i = 0; i < 8; ++i)
          c.Set(lane, i, Encode(accumulator, mc[pair].at(in_c(lane, i).row, in_c(lane, i).column)));
      }
      MultiplyFragments(imm, a.registers(), b.registers(), c.registers(), nullptr, d.registers());
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned pair = lane % 16 / 4;
        for (unsigned i = 0; i < 8; ++i) {
          const Position p = in_c(lane, i);
          double expected = mc[pair].at(p.row, p.column);
          for (unsigned k = 0; k < 4; ++k) expected += ma[pair].at(p.row, k) * mb[pair].at(k, p.column);
          CHECK(Decode(accumulator, d.Get(lane, i)) == expected);
        }
      }
    }
  }
}

TEST_CASE("Mma_QuadPairsWhatIsNoNumber_HasTheBitsOfAGpu") {
  const MmaImm imm{
      .m = 8, .n = 8, .k = 4, .types = 0, .accumulators = static_cast<std::uint8_t>(static_cast<unsigned>(kF32) * 17)};
  for (const std::uint16_t factor : {0x7c00, 0xfe12}) {  // infinity times zero, and a NaN
    Fragment a(kF16, 4), b(kF16, 4), c(kF32, 8), d(kF32, 8);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i) a.Set(lane, i, factor);
    MultiplyFragments(imm, a.registers(), b.registers(), c.registers(), nullptr, d.registers());
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 8; ++i) CHECK(d.Get(lane, i) == 0x7fffffff);
  }
}

TEST_CASE("SmallFloatTable_HasTheFormatsLandmarks") {
  CHECK(SmallFloatTable(MatrixType::kE4M3)[0x7e] == 448.0f);
  CHECK(std::isnan(SmallFloatTable(MatrixType::kE4M3)[0xff]));
  CHECK(SmallFloatTable(MatrixType::kE4M3)[0x01] == 0x1p-9f);
  CHECK(SmallFloatTable(MatrixType::kE5M2)[0x7b] == 57344.0f);
  CHECK(std::isinf(SmallFloatTable(MatrixType::kE5M2)[0xfc]));
  CHECK(SmallFloatTable(MatrixType::kE3M2)[0x1f] == 28.0f);
  CHECK(SmallFloatTable(MatrixType::kE2M3)[0x1f] == 7.5f);
  CHECK(SmallFloatTable(MatrixType::kE2M1)[0x7 << 2] == 6.0f);
  CHECK(SmallFloatTable(MatrixType::kE2M1)[0xf << 2] == -6.0f);
}
