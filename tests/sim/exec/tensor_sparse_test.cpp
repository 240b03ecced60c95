// mma.sp of every type, shape and selector, from PTX text to registers: fragments and metadata distributed by the
// formulas and figures of the PTX ISA (9.7.14.6), against a triple loop over the matrix without zeros left out.
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/exec/runtime/half.h"
#include "sim/exec/tensor/elements.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

struct Kind {
  const char* shape;
  const char *a, *b, *d;  ///< d: of C, too
  MatrixType type_a, type_b;
  unsigned k;
  unsigned threads;  ///< of a quad that give metadata
  const char* extra = "";
};
const Kind kKinds[] = {
    {"m16n8k16", "f16", "f16", "f32", MatrixType::kF16, MatrixType::kF16, 16, 1},
    {"m16n8k32", "f16", "f16", "f32", MatrixType::kF16, MatrixType::kF16, 32, 2},
    {"m16n8k16", "bf16", "bf16", "f32", MatrixType::kBF16, MatrixType::kBF16, 16, 1},
    {"m16n8k32", "bf16", "bf16", "f32", MatrixType::kBF16, MatrixType::kBF16, 32, 2},
    {"m16n8k8", "tf32", "tf32", "f32", MatrixType::kTF32, MatrixType::kTF32, 8, 1},
    {"m16n8k16", "tf32", "tf32", "f32", MatrixType::kTF32, MatrixType::kTF32, 16, 2},
    {"m16n8k64", "e4m3", "e5m2", "f32", MatrixType::kE4M3, MatrixType::kE5M2, 64, 4},
    {"m16n8k32", "s8", "u8", "s32", MatrixType::kS8, MatrixType::kU8, 32, 2},
    {"m16n8k64", "u8", "s8", "s32", MatrixType::kU8, MatrixType::kS8, 64, 4},
    {"m16n8k64", "s4", "s4", "s32", MatrixType::kS4, MatrixType::kS4, 64, 2},
    {"m16n8k128", "u4", "s4", "s32", MatrixType::kU4, MatrixType::kS4, 128, 4},
};

struct Element {
  double value;
  std::uint32_t bits;
};
Element RandomElement(MatrixType type, std::mt19937& random) {
  const int small = static_cast<int>(random() % 9) - 4;
  switch (type) {
    case MatrixType::kF16: return {small / 2.0, DoubleToHalf(small / 2.0)};
    case MatrixType::kBF16: return {small / 2.0, DoubleToBfloat(small / 2.0)};
    case MatrixType::kTF32: return {small / 2.0, std::bit_cast<std::uint32_t>(static_cast<float>(small / 2.0))};
    case MatrixType::kS8:
      return {static_cast<double>(static_cast<std::int8_t>(small * 31)), static_cast<std::uint8_t>(small * 31)};
    case MatrixType::kU8:
      return {static_cast<double>(static_cast<std::uint8_t>(small * 31)), static_cast<std::uint8_t>(small * 31)};
    case MatrixType::kS4: return {static_cast<double>(small), static_cast<std::uint32_t>(small) & 15};
    case MatrixType::kU4: return {static_cast<double>(small & 15), static_cast<std::uint32_t>(small) & 15};
    default: {
      const auto byte = static_cast<std::uint8_t>(0x30 + random() % 0x18 + random() % 2 * 0x80);
      return {static_cast<double>(SmallFloatTable(type)[byte]), byte};
    }
  }
}

/// Registers of all lanes, `count` each: [lane][register].
struct Registers {
  unsigned count;
  std::vector<std::uint32_t> words;
  explicit Registers(unsigned n) : count(n), words(32 * n) {}
  void Put(unsigned lane, unsigned element, unsigned bits, std::uint32_t value) {
    words[lane * count + element * bits / 32] |= (bits == 32 ? value : value & ((1u << bits) - 1))
                                                 << element * bits % 32;
  }
};

/// row and column (of the stored elements) of element i in lane's fragment of A; k and column of B's. 9.7.14.5's
/// formulas.
void PutA(Registers& to, unsigned row, unsigned column, unsigned bits, std::uint32_t value) {
  const unsigned per_register = 32 / bits, block = column / (4 * per_register),
                 t = column % (4 * per_register) / per_register;
  const unsigned reg = block * 2 + row / 8;
  to.Put(row % 8 * 4 + t, reg * per_register + column % per_register, bits, value);
}
void PutB(Registers& to, unsigned k, unsigned column, unsigned bits, std::uint32_t value) {
  const unsigned per_register = 32 / bits;
  to.Put(column * 4 + k % (4 * per_register) / per_register, k / (4 * per_register) * per_register + k % per_register,
         bits, value);
}

std::string Kernel(const Kind& kind, const char* variant, unsigned selector, unsigned count_a, unsigned count_b) {
  const auto list = [](const char* name, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
    return text + "}";
  };
  const auto load = [](const char* name, unsigned count) {
    std::string text = "  ld.param.u64 %at, [" + std::string(name) + "];\n  mul.wide.u32 %off, %t, " +
                       std::to_string(4 * count) + ";\n  add.u64 %at, %at, %off;\n";
    for (unsigned i = 0; i < count; ++i)
      text += "  ld.global.b32 %" + std::string(name) + std::to_string(i) + ", [%at+" + std::to_string(4 * i) + "];\n";
    return text;
  };
  return ".version 8.7\n.target sm_120a\n.address_size 64\n"
         ".visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 e)\n{\n"
         "  .reg .b64 %at, %off;\n  .reg .b32 %t, %a<8>, %b<8>, %c<8>, %e<8>;\n  mov.u32 %t, %tid.x;\n" +
         load("a", count_a) + load("b", count_b) + load("e", 1) + load("c", 4) + "  mma." + variant + ".sync.aligned." +
         kind.shape + ".row.col" + kind.extra + "." + kind.d + "." + kind.a + "." + kind.b + "." + kind.d + " " +
         list("c", 4) + ", " + list("a", count_a) + ", " + list("b", count_b) + ", " + list("c", 4) + ", %e0, " +
         std::to_string(selector) +
         ";\n  st.global.b32 [%at], %c0;\n  st.global.b32 [%at+4], %c1;\n  st.global.b32 [%at+8], %c2;\n  "
         "st.global.b32 [%at+12], %c3;\n"
         "  ret;\n}\n";
}

void Check(const Kind& kind, const char* variant, unsigned selector, std::mt19937& random, test::Executor& executor) {
  const unsigned bits = BitsOf(kind.type_a), group = bits == 32 ? 2 : bits == 4 ? 8 : 4, unit = bits == 4 ? 2 : 1;
  const bool floats = !IsIntegerMatrix(kind.type_a);
  Registers a(16 * kind.k / 2 * bits / 1024), b(kind.k * 8 * bits / 1024), c(4), e(1);
  for (std::uint32_t& word : e.words) word = static_cast<std::uint32_t>(random());  // of threads that give none, too
  std::vector<std::vector<double>> dense(16, std::vector<double>(kind.k));
  std::vector<std::vector<bool>> stored(16, std::vector<bool>(kind.k));
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned n = 0; n < kind.k / group; ++n) {
      // Two different places of four; one of two for tf32, whose codes are 0100 and 1110.
      unsigned first = random() % 3, second = first + 1 + random() % (3 - first);
      if (group == 2) first = random() % 2 * 2, second = first + 1;
      const std::uint32_t code = first | second << 2;
      // Threads of a quad: 16 bits of row g, then of row g + 8, and the next thread for what follows along k; or 32
      // bits of each row.
      const unsigned bit = n * 4;
      const unsigned thread = selector * kind.threads + (bits >= 16 ? bit / 16 : bit / 32 * 2 + row / 8);
      const unsigned shift = bits >= 16 ? bit % 16 + row / 8 * 16 : bit % 32;
      std::uint32_t& word = e.words[row % 8 * 4 + thread];
      word = (word & ~(15u << shift)) | code << shift;
      const unsigned places[] = {first, second};
      for (unsigned i = 0; i < group / 2; ++i) {
        const Element element = RandomElement(kind.type_a, random);
        const unsigned k = n * group + (group == 2 ? first / 2 : places[i / unit] * unit + i % unit);
        dense[row][k] = element.value;
        stored[row][k] = true;
        PutA(a, row, n * group / 2 + i, bits, element.bits);
      }
    }
  }
  std::vector<std::vector<double>> factor(kind.k, std::vector<double>(8));
  for (unsigned k = 0; k < kind.k; ++k) {
    for (unsigned column = 0; column < 8; ++column) {
      const Element element = RandomElement(kind.type_b, random);
      factor[k][column] = element.value;
      PutB(b, k, column, bits, element.bits);
    }
  }
  std::vector<double> want(16 * 8);
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      double sum = static_cast<int>(random() % 33) - 16;
      const std::uint32_t word = floats ? std::bit_cast<std::uint32_t>(static_cast<float>(sum))
                                        : static_cast<std::uint32_t>(static_cast<int>(sum));
      c.words[(row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2] = word;
      for (unsigned k = 0; k < kind.k; ++k) sum += stored[row][k] ? dense[row][k] * factor[k][column] : 0;
      want[row * 8 + column] = sum;
    }
  }
  const std::uint64_t at_a = executor.Upload(a.words), at_b = executor.Upload(b.words), at_c = executor.Upload(c.words),
                      at_e = executor.Upload(e.words);
  const LaunchFault fault = executor.Launch(Kernel(kind, variant, selector, a.count, b.count), "kernel", {1, 1, 1},
                                            {32, 1, 1}, test::ParamBlock().Add(at_a).Add(at_b).Add(at_c).Add(at_e));
  INFO(kind.shape << " " << kind.a << " selector " << selector << ": " << fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(at_c, c.words);
  long bad = 0;
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      const std::uint32_t word = c.words[(row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2];
      const double got = floats ? static_cast<double>(std::bit_cast<float>(word)) : static_cast<std::int32_t>(word);
      bad += got != want[row * 8 + column];
    }
  }
  CHECK(bad == 0);
}

}  // namespace

TEST_CASE("SparseMma_EveryTypeShapeAndSelector_MatchesTheDenseProduct") {
  std::mt19937 random(1);
  test::Executor executor;
  for (const Kind& kind : kKinds) {
    for (unsigned selector = 0; selector < 4 / kind.threads; ++selector) {
      Check(kind, (selector + kind.k / 16) % 2 ? "sp" : "sp::ordered_metadata", selector, random, executor);
    }
  }
}

namespace {

/// The accumulators of ones in A times B, of whose rows k all elements are `rows[k % 4]`; of each four elements of A
/// the first two are stored.
std::vector<std::uint32_t> OnesTimes(const std::array<std::uint16_t, 4>& rows) {
  test::Executor executor;
  const Kind kind = kKinds[0];
  Registers a(2), b(2), c(4), e(1);
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned i = 0; i < 8; ++i) PutA(a, row, i, 16, 0x3c00);
  }
  for (std::uint32_t& word : e.words) word = 0x44444444;
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned column = 0; column < 8; ++column) PutB(b, k, column, 16, rows[k % 4]);
  }
  const std::uint64_t at_a = executor.Upload(a.words), at_b = executor.Upload(b.words), at_c = executor.Upload(c.words),
                      at_e = executor.Upload(e.words);
  const LaunchFault fault = executor.Launch(Kernel(kind, "sp", 0, 2, 2), "kernel", {1, 1, 1}, {32, 1, 1},
                                            test::ParamBlock().Add(at_a).Add(at_b).Add(at_c).Add(at_e));
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(at_c, c.words);
  return {c.words.begin(), c.words.end()};
}

}  // namespace

TEST_CASE("SparseMma_WhatIsNotStored_DoesNotMeetInfinities") {
  for (const std::uint32_t word : OnesTimes({0x3c00, 0x3c00, 0x7c00, 0x7c00}))
    CHECK(std::bit_cast<float>(word) == 8.0f);
}

TEST_CASE("SparseMma_WhatIsNoNumber_HasTheBitsOfAGpu") {
  for (const std::uint32_t word : OnesTimes({0x7c00, 0xfc00, 0, 0})) CHECK(word == 0x7fffffff);
  for (const std::uint32_t word : OnesTimes({0xfe12, 0x3c00, 0, 0})) CHECK(word == 0x7fffffff);
}

TEST_CASE("SparseMma_SelectorBeyondTheQuad_IsRefused") {
  test::Executor executor;
  const std::uint64_t memory = executor.Upload(std::vector<std::uint32_t>(1024));
  const LaunchFault fault = executor.Launch(Kernel(kKinds[1], "sp", 2, 4, 4), "kernel", {1, 1, 1}, {32, 1, 1},
                                            test::ParamBlock().Add(memory).Add(memory).Add(memory).Add(memory));
  CHECK(fault.kind == FaultKind::kCompile);
  CHECK(fault.text.find("selector") != std::string::npos);
}
