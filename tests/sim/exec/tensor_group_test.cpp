// wgmma from PTX text to registers: types, widths, swizzles, majors, strides, signs, against a reference that goes
// element by element; warps that run ahead of their group.
#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/runtime/half.h"
#include "sim/exec/tensor/elements.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr std::uint32_t kSharedBytes = 48 << 10;

/// A matrix in shared memory: rows (of A) or columns (of B) are its lines, 32 bytes of k each.
struct Placed {
  std::uint32_t start = 0, leading = 0, stride = 0, chunks = 1;
  bool across = false;

  std::uint64_t descriptor() const {
    const std::uint64_t mode = chunks == 8 ? 1 : chunks == 4 ? 2 : chunks == 2 ? 3 : 0;
    return start >> 4 | std::uint64_t{leading >> 4} << 16 | std::uint64_t{stride >> 4} << 32 | mode << 62;
  }
  /// Where element k of a line lies, by the canonical layouts of the PTX ISA (9.7.15.5.1), in bytes.
  std::uint32_t At(unsigned line, unsigned k, unsigned bytes) const {
    std::uint32_t at = start;
    if (!across) {
      const unsigned byte = k * bytes;
      at += line / 8 * stride + line % 8 * (chunks * 16) + (chunks == 1 ? byte / 16 * leading : byte / 16 * 16) +
            byte % 16;
    } else {
      const unsigned wide = chunks * 8;  // halfwords of a span
      at += k % 8 * (chunks * 16) + line % wide * 2;
      at += chunks == 1 ? line / wide * stride + k / 8 * leading : line / wide * leading + k / 8 * stride;
    }
    const std::uint32_t row = at / 128 % chunks;
    return (at & ~std::uint32_t{0x70}) | (((at >> 4) ^ row) & 7) << 4;
  }
};

/// One with room for `lines` of them from `from` on, 1024 bytes aligned.
Placed Place(std::mt19937& random, std::uint32_t from, unsigned lines, bool across) {
  constexpr std::uint32_t kChunks[] = {1, 2, 4, 8};
  Placed p{.start = from, .chunks = kChunks[random() % 4], .across = across};
  const std::uint32_t atom = p.chunks * 128;
  if (!across) {
    const bool tall = random() % 2;
    p.stride = p.chunks > 1 ? atom * (1 + random() % 2) : tall ? 128 : 256;
    p.leading = p.chunks > 1 ? 16 : tall ? 128 * (lines / 8) : 128;
    if (p.chunks >= 4 && random() % 2) p.start += 32;  // the next k in the same span
  } else {
    const std::uint32_t spans = (lines + p.chunks * 8 - 1) / (p.chunks * 8);
    const bool depth_first = random() % 2;
    const std::uint32_t between_spans = depth_first ? 2 * atom : atom,
                        between_blocks = depth_first ? atom : spans * atom;
    p.leading = p.chunks == 1 ? between_blocks : between_spans;
    p.stride = p.chunks == 1 ? between_spans : between_blocks;
  }
  return p;
}

struct Kind {
  const char *a, *b, *d;
  MatrixType type_a, type_b, type_d;
};
const Kind kKinds[] = {
    {"f16", "f16", "f32", MatrixType::kF16, MatrixType::kF16, MatrixType::kF32},
    {"f16", "f16", "f16", MatrixType::kF16, MatrixType::kF16, MatrixType::kF16},
    {"bf16", "bf16", "f32", MatrixType::kBF16, MatrixType::kBF16, MatrixType::kF32},
    {"tf32", "tf32", "f32", MatrixType::kTF32, MatrixType::kTF32, MatrixType::kF32},
    {"e4m3", "e4m3", "f32", MatrixType::kE4M3, MatrixType::kE4M3, MatrixType::kF32},
    {"e4m3", "e5m2", "f16", MatrixType::kE4M3, MatrixType::kE5M2, MatrixType::kF16},
    {"e5m2", "e4m3", "f32", MatrixType::kE5M2, MatrixType::kE4M3, MatrixType::kF32},
    {"s8", "s8", "s32", MatrixType::kS8, MatrixType::kS8, MatrixType::kS32},
    {"u8", "s8", "s32", MatrixType::kU8, MatrixType::kS8, MatrixType::kS32},
    {"b1", "b1", "s32", MatrixType::kB1, MatrixType::kB1, MatrixType::kS32},
};

/// An element with a small exact value, and its bits.
struct Element {
  double value;
  std::uint32_t bits;
};
Element RandomElement(MatrixType type, std::mt19937& random) {
  const int small = static_cast<int>(random() % 9) - 4;
  switch (type) {
    case MatrixType::kF16: return {small / 2.0, DoubleToHalf(small / 2.0)};
    case MatrixType::kBF16: return {small / 2.0, DoubleToBfloat(small / 2.0)};
    case MatrixType::kTF32:
      return {small / 2.0, std::bit_cast<std::uint32_t>(static_cast<float>(small / 2.0)) | 0x1000u};  // too fine a bit
    case MatrixType::kS8:
      return {static_cast<double>(static_cast<std::int8_t>(small * 31)), static_cast<std::uint8_t>(small * 31)};
    case MatrixType::kU8:
      return {static_cast<double>(static_cast<std::uint8_t>(small * 31)), static_cast<std::uint8_t>(small * 31)};
    default: {
      const auto byte = static_cast<std::uint8_t>(0x30 + random() % 0x18 + random() % 2 * 0x80);
      return {static_cast<double>(SmallFloatTable(type)[byte]), byte};
    }
  }
}

struct Case {
  Kind kind;
  unsigned columns = 8;
  bool registers_a = false, negate_a = false, negate_b = false, accumulates = true, saturates = false;
  Placed a = {}, b = {};
  bool floats() const { return !IsIntegerMatrix(kind.type_a); }
  unsigned depth() const { return 256 / BitsOf(kind.type_a); }
  unsigned registers() const { return kind.type_d == MatrixType::kF16 ? columns / 4 : columns / 2; }
};

std::string Kernel(const Case& c, unsigned products = 1) {
  std::string d;
  for (unsigned i = 0; i < c.registers(); ++i) d += (i ? ", %d" : "%d") + std::to_string(i);
  const bool bits = c.kind.type_a == MatrixType::kB1;
  std::string instruction = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(c.columns) + "k" +
                            std::to_string(c.depth()) + (c.saturates ? ".satfinite." : ".") + c.kind.d + "." +
                            c.kind.a + "." + c.kind.b + (bits ? ".and.popc" : "") + " {" + d + "}, " +
                            (c.registers_a ? "{%a0, %a1, %a2, %a3}" : "%da") + ", %db, %scale";
  if (c.floats()) instruction += std::string(", ") + (c.negate_a ? "-1" : "1") + ", " + (c.negate_b ? "-1" : "1");
  if (BitsOf(c.kind.type_a) == 16) {
    if (!c.registers_a) instruction += c.a.across ? ", 1" : ", 0";
    instruction += c.b.across ? ", 1" : ", 0";
  }
  std::string text = R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 image, .param .u64 registers, .param .u64 out, .param .u64 da, .param .u64 db, .param .u32 scale)
{
  .reg .b64 %image, %registers, %out, %da, %db, %rd<4>;
  .reg .b32 %t, %at, %s, %a<4>, %d<128>, %r<4>;
  .reg .pred %p, %scale;
  ld.param.u64 %image, [image];
  ld.param.u64 %registers, [registers];
  ld.param.u64 %out, [out];
  ld.param.u64 %da, [da];
  ld.param.u64 %db, [db];
  ld.param.u32 %r0, [scale];
  setp.ne.u32 %scale, %r0, 0;
  mov.u32 %t, %tid.x;
  mul.lo.u32 %at, %t, 4;
  mov.u32 %s, tile;
IN:
  cvt.u64.u32 %rd0, %at;
  add.u64 %rd0, %rd0, %image;
  ld.global.b32 %r1, [%rd0];
  add.u32 %r2, %s, %at;
  st.shared.b32 [%r2], %r1;
  add.u32 %at, %at, 512;
  setp.lt.u32 %p, %at, 49152;
  @%p bra IN;
  fence.proxy.async;
  bar.sync 0;
  mul.wide.u32 %rd1, %t, 16;
  add.u64 %rd1, %rd1, %registers;
  ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%rd1];
)";
  text += "  mul.wide.u32 %rd2, %t, " + std::to_string(c.registers() * 4) + ";\n  add.u64 %rd2, %rd2, %out;\n";
  for (unsigned i = 0; i < c.registers(); ++i)
    text += "  ld.global.b32 %d" + std::to_string(i) + ", [%rd2+" + std::to_string(4 * i) + "];\n";
  text += "  wgmma.fence.sync.aligned;\n";
  for (unsigned i = 0; i < products; ++i) text += "  " + instruction + ";\n";
  text += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
  for (unsigned i = 0; i < c.registers(); ++i)
    text += "  st.global.b32 [%rd2+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

/// Register and part of it that hold row and column of D (PTX ISA, 9.7.15.5.1, "Register Fragments").
struct PlaceInD {
  unsigned thread, word, part;
};
PlaceInD PlaceOf(const Case& c, unsigned row, unsigned column) {
  const unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, block = column / 8, lower = row % 16 / 8;
  if (c.kind.type_d == MatrixType::kF16) return {thread, block * 2 + lower, column % 2};
  return {thread, block * 4 + lower * 2 + column % 2, 0};
}

void Check(const Case& c, std::mt19937& random, test::Executor& executor) {
  const unsigned depth = c.depth(), bits = BitsOf(c.kind.type_a), bytes = std::max(bits / 8, 1u);
  std::vector<std::uint8_t> image(kSharedBytes);
  for (std::uint8_t& byte : image) byte = static_cast<std::uint8_t>(random());
  std::vector<std::vector<double>> a(64, std::vector<double>(depth)), b(c.columns, std::vector<double>(depth));
  std::vector<std::uint32_t> registers(128 * 4);
  if (bits == 1) {  // eight elements a byte: what lies there
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned row = 0; row < 64; ++row) a[row][k] = image[c.a.At(row, k / 8, 1)] >> k % 8 & 1;
      for (unsigned column = 0; column < c.columns; ++column)
        b[column][k] = image[c.b.At(column, k / 8, 1)] >> k % 8 & 1;
    }
  } else {
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned row = 0; row < 64; ++row) {
        const Element element = RandomElement(c.kind.type_a, random);
        a[row][k] = element.value;
        std::memcpy(image.data() + c.a.At(row, k, bytes), &element.bits, bytes);
        // The fragment of mma.m16n8: four threads a row, 4 bytes each, then the next 16 bytes of k.
        const unsigned byte = k * bytes, thread = row / 16 * 32 + row % 8 * 4 + byte % 16 / 4,
                       word = byte / 16 * 2 + row % 16 / 8;
        std::memcpy(reinterpret_cast<std::uint8_t*>(&registers[thread * 4 + word]) + byte % 4, &element.bits, bytes);
      }
    }
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned column = 0; column < c.columns; ++column) {
        const Element element = RandomElement(c.kind.type_b, random);
        b[column][k] = element.value;
        std::memcpy(image.data() + c.b.At(column, k, bytes), &element.bits, bytes);
      }
    }
  }
  std::vector<std::uint32_t> d(128 * c.registers());
  std::vector<double> want(64 * c.columns);
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned column = 0; column < c.columns; ++column) {
      const PlaceInD place = PlaceOf(c, row, column);
      std::uint32_t& word = d[place.thread * c.registers() + place.word];
      double sum = static_cast<int>(random() % 33) - 16;
      if (c.kind.type_d == MatrixType::kF16) word |= std::uint32_t{DoubleToHalf(sum)} << place.part * 16;
      else if (c.kind.type_d == MatrixType::kF32) word = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
      else
        word = c.saturates ? static_cast<std::uint32_t>(sum = sum < 0 ? -2147483600.0 : 2147483600.0,
                                                        static_cast<std::int32_t>(sum))
                           : static_cast<std::uint32_t>(static_cast<int>(sum));
      if (!c.accumulates) sum = 0;
      for (unsigned k = 0; k < depth; ++k) sum += a[row][k] * b[column][k] * (c.negate_a != c.negate_b ? -1 : 1);
      if (c.saturates) sum = std::min(std::max(sum, -2147483648.0), 2147483647.0);
      want[row * c.columns + column] = sum;
    }
  }
  const std::uint64_t image_at = executor.Upload(image), registers_at = executor.Upload(registers),
                      out = executor.Upload(d);
  const LaunchFault fault = executor.Launch(Kernel(c), "k", {1, 1, 1}, {128, 1, 1},
                                            test::ParamBlock()
                                                .Add(image_at)
                                                .Add(registers_at)
                                                .Add(out)
                                                .Add(c.a.descriptor())
                                                .Add(c.b.descriptor())
                                                .Add(std::uint32_t{c.accumulates}),
                                            kSharedBytes);
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(out, d);
  long bad = 0;
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned column = 0; column < c.columns; ++column) {
      const PlaceInD place = PlaceOf(c, row, column);
      const std::uint32_t word = d[place.thread * c.registers() + place.word];
      double got = static_cast<std::int32_t>(word);
      double expected = want[row * c.columns + column];
      if (c.kind.type_d == MatrixType::kF32) got = static_cast<double>(std::bit_cast<float>(word));
      if (c.kind.type_d == MatrixType::kF16) {
        got = static_cast<double>(HalfToFloat(static_cast<std::uint16_t>(word >> place.part * 16)));
        expected = static_cast<double>(HalfToFloat(DoubleToHalf(expected)));
      }
      bad += got != expected;
    }
  }
  CHECK(bad == 0);
  for (const std::uint64_t address : {image_at, registers_at, out}) executor.Free(address);
}

}  // namespace

TEST_CASE("GroupMma_RandomTypesAndLayouts_MatchTheReference") {
  std::mt19937 random(1);
  test::Executor executor;
  constexpr unsigned kColumns[] = {8, 16, 16, 24, 32, 64, 96, 128};
  const int cases = std::getenv("GRIDLOOM_TEST_FULL") ? 100 : std::getenv("GRIDLOOM_TEST_CPU") ? 20 : 30;
  for (int i = 0; i < cases; ++i) {
    Case c{.kind = kKinds[static_cast<std::size_t>(i) % std::size(kKinds)]};
    c.columns = i == 0 ? 256 : kColumns[random() % std::size(kColumns)];
    const bool halves = BitsOf(c.kind.type_a) == 16;
    c.registers_a = c.kind.type_a != MatrixType::kB1 && random() % 2;
    c.accumulates = random() % 4 != 0;
    if (c.floats()) c.negate_a = random() % 2, c.negate_b = random() % 2;
    c.saturates = BitsOf(c.kind.type_a) == 8 && !c.floats() && random() % 2;
    c.a = Place(random, 0, 64, halves && random() % 2);
    c.b = Place(random, 16 << 10, c.columns, halves && random() % 2);
    INFO("case " << i << ": " << c.kind.a << " " << c.kind.b << " " << c.kind.d << ", " << c.columns << " columns, A "
                 << (c.registers_a ? "in registers"
                     : c.a.across  ? "across"
                                   : "along")
                 << " " << c.a.chunks << ", B " << (c.b.across ? "across" : "along") << " " << c.b.chunks);
    Check(c, random, executor);
  }
}

TEST_CASE("GroupMma_DescriptorBeyondSharedMemory_IsAFault") {
  test::Executor executor;
  Case c{.kind = kKinds[0], .columns = 64, .accumulates = true};
  c.b = {.start = 47 << 10, .leading = 16, .stride = 1024, .chunks = 8};
  c.a = {.start = 0, .leading = 16, .stride = 1024, .chunks = 8};
  const std::uint64_t memory = executor.Upload(std::vector<std::uint8_t>(256 << 10));
  const LaunchFault fault = executor.Launch(Kernel(c), "k", {1, 1, 1}, {128, 1, 1},
                                            test::ParamBlock()
                                                .Add(memory)
                                                .Add(memory)
                                                .Add(memory)
                                                .Add(c.a.descriptor())
                                                .Add(c.b.descriptor())
                                                .Add(std::uint32_t{1}),
                                            kSharedBytes);
  INFO(fault.text);
  CHECK(fault.kind == FaultKind::kIllegalAddress);
  CHECK(fault.text.find("descriptor") != std::string::npos);
}

// One thread of the group tells the producer that the buffer may be filled again, as CUTLASS's pipelines do: no warp of
// the group may have the product still before it.
TEST_CASE("GroupMma_WaitGroup_MeansTheProductsOfAllFourWarps") {
  test::Executor executor;
  const std::string kernel = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b64 %out, %d, %rd<4>;
  .reg .b32 %t, %s, %i, %phase, %d0, %d1, %d2, %d3, %r<8>;
  .reg .pred %p, %producer, %leader;
  .shared .align 1024 .b8 tile[2048];
  .shared .align 8 .b64 full;
  .shared .align 8 .b64 empty;
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  setp.ge.u32 %producer, %t, 128;
  setp.eq.u32 %leader, %t, 0;
  @!%leader bra READY;
  mbarrier.init.shared.b64 [full], 32;
  mbarrier.init.shared.b64 [empty], 1;
READY:
  bar.sync 0;
  mov.u32 %i, 0;
  mov.u32 %d0, 0; mov.u32 %d1, 0; mov.u32 %d2, 0; mov.u32 %d3, 0;
  mov.u32 %s, tile;
  and.b32 %r0, %s, 0x3ffff;
  shr.u32 %r0, %r0, 4;
  cvt.u64.u32 %d, %r0;
  or.b64 %d, %d, 0x1000080000;
  @!%producer bra CONSUME;
PRODUCE:   // the 2 KiB become all ones times the round's number: halves of 1, 2, 3, 4
  setp.eq.u32 %p, %i, 0;
  @%p bra FILL;
  sub.u32 %phase, %i, 1;
  and.b32 %phase, %phase, 1;
EMPTY:
  mbarrier.try_wait.parity.shared.b64 %p, [empty], %phase;
  @!%p bra EMPTY;
FILL:
  add.u32 %r1, %i, 1;
  cvt.rn.f32.u32 %r2, %r1;
  cvt.rn.f16x2.f32 %r2, %r2, %r2;
  sub.u32 %r3, %t, 128;
  mul.lo.u32 %r3, %r3, 4;
STORE:
  add.u32 %r4, %r3, %s;
  st.shared.b32 [%r4], %r2;
  add.u32 %r3, %r3, 128;
  setp.lt.u32 %p, %r3, 2048;
  @%p bra STORE;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.shared.b64 _, [full];
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 4;
  @%p bra PRODUCE;
  ret;
CONSUME:
  and.b32 %phase, %i, 1;
FULL:
  mbarrier.try_wait.parity.shared.b64 %p, [full], %phase;
  @!%p bra FULL;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %d, %d, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  @%leader mbarrier.arrive.shared.b64 _, [empty];
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 4;
  @%p bra CONSUME;
  mul.wide.u32 %rd0, %t, 16;
  add.u64 %rd0, %rd0, %out;
  st.global.v4.b32 [%rd0], {%d0, %d1, %d2, %d3};
  ret;
}
)";
  const std::uint64_t out = executor.Upload(std::vector<float>(512));
  const LaunchFault fault = executor.Launch(kernel, "k", {1, 1, 1}, {160, 1, 1}, test::ParamBlock().Add(out));
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  std::vector<float> got(512);
  executor.Download(out, got);
  for (const float value : got) CHECK(value == 16.0f * (1 + 4 + 9 + 16));
}
