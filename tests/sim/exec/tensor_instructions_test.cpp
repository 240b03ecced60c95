// Matrix instructions from PTX text to memory: loads and stores of fragments, wmma of every shape and type, refusals.
// The products of mma are tested in tensor_multiply_test.cpp.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sim/exec/runtime/half.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

std::string Kernel(const std::string& body) {
  return R"(.version 8.7
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .b64 %in, %out, %rd<16>, %d<16>;
  .reg .b32 %t, %r<64>, %a<8>, %b<8>, %c<8>, %e<8>;
  .reg .f64 %fa<2>, %fb<2>, %fc<4>;
  .reg .pred %p;
  .shared .align 16 .b8 tile[2048];
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
)" + body +
         "\n  ret;\n}\n";
}

/// Runs one warp on input bytes; the output, of `out_bytes` bytes.
class WarpRun {
 public:
  std::vector<std::uint8_t> operator()(const std::string& body, const std::vector<std::uint8_t>& in,
                                       std::size_t out_bytes, bool expect_fault = false) {
    const std::uint64_t from = executor_.Upload(in);
    std::vector<std::uint8_t> out(out_bytes, 0xcc);
    const std::uint64_t to = executor_.Upload(out);
    fault = executor_.Launch(Kernel(body), "k", {1, 1, 1}, {32, 1, 1}, test::ParamBlock().Add(from).Add(to));
    INFO(fault.text);
    if (!expect_fault) REQUIRE(fault.kind == FaultKind::kNone);
    executor_.Download(to, out);
    return out;
  }
  LaunchFault fault;

 private:
  test::Executor executor_;
};

std::vector<std::uint8_t> RandomBytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Copies 512 bytes of input to `tile`: 16 bytes per lane.
const std::string kFillTile = R"(
  mul.wide.u32 %rd0, %t, 16;
  add.u64 %rd0, %rd0, %in;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd0];
  shl.b32 %r4, %t, 4;
  mov.u32 %r5, tile;
  add.u32 %r5, %r5, %r4;
  st.shared.v4.b32 [%r5], {%r0, %r1, %r2, %r3};
  bar.warp.sync 0xffffffff;
)";
/// Writes `count` registers %e0 … of every lane: out[lane * count + i].
std::string WriteRegisters(unsigned count) {
  std::string text = "mul.wide.u32 %rd1, %t, " + std::to_string(4 * count) + ";\n add.u64 %rd1, %rd1, %out;\n";
  for (unsigned i = 0; i < count; ++i)
    text += "st.global.b32 [%rd1+" + std::to_string(4 * i) + "], %e" + std::to_string(i) + ";\n";
  return text;
}

template <typename T>
T At(const std::vector<std::uint8_t>& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

TEST_CASE("Ldmatrix_EveryCount_StraightAndTransposed") {
  WarpRun run;
  const auto in = RandomBytes(512, 1);
  for (unsigned count : {1u, 2u, 4u}) {
    for (bool transposed : {false, true}) {
      std::string registers = "%e0";
      for (unsigned i = 1; i < count; ++i) registers += ", %e" + std::to_string(i);
      const std::string instruction = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                                      (transposed ? ".trans" : "") + ".shared.b16 {" + registers + "}, [%r5];\n";
      const auto out = run(kFillTile + instruction + WriteRegisters(count), in, 128 * count);
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned matrix = 0; matrix < count; ++matrix) {
          for (unsigned i = 0; i < 2; ++i) {
            const unsigned row = transposed ? lane % 4 * 2 + i : lane / 4,
                           column = transposed ? lane / 4 : lane % 4 * 2 + i;
            CHECK(At<std::uint16_t>(out, (lane * count + matrix) * 2 + i) ==
                  At<std::uint16_t>(in, matrix * 64 + row * 8 + column));
          }
        }
      }
    }
  }
}

TEST_CASE("Ldmatrix_GenericAddress_AndRowsFromAnywhere") {
  WarpRun run;
  const auto in = RandomBytes(512, 2);
  // Rows in reverse order, by generic address.
  const auto out = run(kFillTile + R"(
    sub.u32 %r6, 31, %t; shl.b32 %r6, %r6, 4; mov.u32 %r7, tile; add.u32 %r6, %r6, %r7;
    cvt.u64.u32 %rd2, %r6; cvta.shared.u64 %rd2, %rd2;
    ldmatrix.sync.aligned.m8n8.x1.b16 {%e0}, [%rd2];
  )" + WriteRegisters(1),
                       in, 128);
  for (unsigned lane = 0; lane < 32; ++lane)
    CHECK(At<std::uint32_t>(out, lane) == At<std::uint32_t>(in, (31 - lane / 4) * 4 + lane % 4));
}

TEST_CASE("Ldmatrix_Bytes_AreTransposedAndUnpacked") {
  WarpRun run;
  const auto in = RandomBytes(512, 3);
  const auto out = run(
      kFillTile + "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%e0, %e1, %e2, %e3}, [%r5];\n" + WriteRegisters(4),
      in, 512);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned reg = 0; reg < 4; ++reg) {
      for (unsigned i = 0; i < 4; ++i)
        CHECK(out[(lane * 4 + reg) * 4 + i] == in[reg / 2 * 256 + (lane % 4 * 4 + i) * 16 + lane / 4 + reg % 2 * 8]);
    }
  }
  const auto packed = run(kFillTile +
                              "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%e0}, [%r5];\n"
                              "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%e1}, [%r5];\n" +
                              WriteRegisters(2),
                          in, 256);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned element = lane % 4 * 4 + i, row = lane / 4 * 16;
      CHECK(packed[lane * 8 + i] == (in[row + element / 2] >> element % 2 * 4 & 15) << 2);
      const unsigned bit = element * 6, pair = in[row + bit / 8] | in[row + bit / 8 + 1] << 8;
      CHECK(packed[lane * 8 + 4 + i] == (pair >> bit % 8 & 63));
    }
  }
}

// PTX 9.4: rows of 16 signed elements in 8 bytes, from wherever the lanes point; each becomes a byte.
TEST_CASE("Ldmatrix_SignedFourBits_AreExtended") {
  WarpRun run;
  const auto in = RandomBytes(512, 9);
  for (unsigned count : {1u, 2u, 4u}) {
    std::string registers = "%e0";
    for (unsigned i = 1; i < count; ++i) registers += ", %e" + std::to_string(i);
    const std::string rows =
        "mul.lo.u32 %r6, %t, 5; add.u32 %r6, %r6, 3; and.b32 %r6, %r6, 31; shl.b32 %r6, %r6, 3;\n"
        "mov.u32 %r5, tile; add.u32 %r5, %r5, %r6;\n";
    const auto out = run(kFillTile + rows + "ldmatrix.sync.aligned.m8n16.x" + std::to_string(count) +
                             ".shared.s8.s4 {" + registers + "}, [%r5];\n" + WriteRegisters(count),
                         in, 128 * count);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned byte = 0; byte < 4 * count; ++byte) {
        const unsigned row = ((byte / 4 * 8 + lane / 4) * 5 + 3) % 32, element = lane % 4 * 4 + byte % 4;
        const int nibble = in[row * 8 + element / 2] >> element % 2 * 4 & 15;
        CHECK(static_cast<std::int8_t>(out[lane * 4 * count + byte]) == (nibble < 8 ? nibble : nibble - 16));
      }
    }
  }
}

TEST_CASE("Stmatrix_UndoesLdmatrix_AndMovmatrixTransposes") {
  WarpRun run;
  const auto in = RandomBytes(512, 4);
  const std::string write_tile = R"(
    bar.warp.sync 0xffffffff;
    ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r5+512];
    mul.wide.u32 %rd1, %t, 16; add.u64 %rd1, %rd1, %out;
    st.global.v4.b32 [%rd1], {%r0, %r1, %r2, %r3};
  )";
  for (const char* form : {"", ".trans"}) {
    const std::string load =
        "ldmatrix.sync.aligned.m8n8.x4" + std::string(form) + ".shared.b16 {%e0, %e1, %e2, %e3}, [%r5];\n";
    const std::string store =
        "stmatrix.sync.aligned.m8n8.x4" + std::string(form) + ".shared.b16 [%r5+512], {%e0, %e1, %e2, %e3};\n";
    CHECK(run(kFillTile + load + store + write_tile, in, 512) == in);
  }
  // Loading straight, transposing in registers, storing transposed: the same again.
  CHECK(run(kFillTile + R"(
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%e0, %e1, %e2, %e3}, [%r5];
    movmatrix.sync.aligned.m8n8.trans.b16 %e0, %e0;
    movmatrix.sync.aligned.m8n8.trans.b16 %e1, %e1;
    movmatrix.sync.aligned.m8n8.trans.b16 %e2, %e2;
    movmatrix.sync.aligned.m8n8.trans.b16 %e3, %e3;
    stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r5+512], {%e0, %e1, %e2, %e3};
  )" + write_tile,
            in, 512) == in);
  // Bytes: a lane holds the four elements of an accumulator, memory gets the columns.
  const auto out = run(R"(
    shl.b32 %r4, %t, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
    mul.lo.u32 %e0, %t, 0x04040404; add.u32 %e0, %e0, 0x03020100;
    stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r5+512], {%e0};
  )" + write_tile,
                       in, 512);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      CHECK(out[column * 16 + row] == static_cast<std::uint8_t>(lane * 4 + i));
    }
  }
}

TEST_CASE("Ldmatrix_BadRow_IsAFaultOfItsLane") {
  WarpRun run;
  run("mov.u32 %r5, tile; shl.b32 %r4, %t, 4; add.u32 %r5, %r5, %r4;\n setp.eq.u32 %p, %t, 5; @%p add.u32 %r5, %r5, "
      "8;\n"
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%e0}, [%r5];\n" +
          WriteRegisters(1),
      RandomBytes(16, 5), 128, true);
  CHECK(run.fault.kind == FaultKind::kMisalignedAddress);
  CHECK(run.fault.thread.x == 5);
  run("mov.u32 %r5, 0x7fff0000; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%e0}, [%r5];\n" + WriteRegisters(1),
      RandomBytes(16, 5), 128, true);
  CHECK(run.fault.kind == FaultKind::kIllegalAddress);
}

namespace {

struct WmmaCase {
  const char* shape;
  unsigned m, n, k;
  const char *ab, *cd;
  unsigned a_registers, b_registers, c_registers;
  unsigned bits;              // of a factor's element
  bool fixed_layout = false;  // row for A and col for B only
};

constexpr WmmaCase kWmmaCases[] = {
    {"m16n16k16", 16, 16, 16, "f16", "f32", 8, 8, 8, 16},  {"m32n8k16", 32, 8, 16, "f16", "f32", 8, 8, 8, 16},
    {"m8n32k16", 8, 32, 16, "f16", "f32", 8, 8, 8, 16},    {"m16n16k16", 16, 16, 16, "f16", "f16", 8, 8, 4, 16},
    {"m32n8k16", 32, 8, 16, "f16", "f16", 8, 8, 4, 16},    {"m8n32k16", 8, 32, 16, "f16", "f16", 8, 8, 4, 16},
    {"m16n16k16", 16, 16, 16, "bf16", "f32", 4, 4, 8, 16}, {"m32n8k16", 32, 8, 16, "bf16", "f32", 8, 2, 8, 16},
    {"m8n32k16", 8, 32, 16, "bf16", "f32", 2, 8, 8, 16},   {"m16n16k8", 16, 16, 8, "tf32", "f32", 4, 4, 8, 32},
    {"m8n8k4", 8, 8, 4, "f64", "f64", 1, 1, 2, 64},        {"m16n16k16", 16, 16, 16, "s8", "s32", 2, 2, 8, 8},
    {"m32n8k16", 32, 8, 16, "u8", "s32", 4, 1, 8, 8},      {"m8n32k16", 8, 32, 16, "s8", "s32", 1, 4, 8, 8},
    {"m8n8k32", 8, 8, 32, "s4", "s32", 1, 1, 2, 4, true},  {"m8n8k32", 8, 8, 32, "u4", "s32", 1, 1, 2, 4, true},
    {"m8n8k128", 8, 8, 128, "b1", "s32", 1, 1, 2, 1, true}};

std::string Registers(const std::string& prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) text += (i ? ", %" : "%") + prefix + std::to_string(i);
  return text + "}";
}

class Elements {
 public:
  Elements(std::string type, unsigned bits) : type_(std::move(type)), bits_(bits) {}
  void Put(std::vector<std::uint8_t>& bytes, std::size_t at, std::size_t index, int value) const {
    if (type_ == "f16") return Copy(bytes, at + index * 2, DoubleToHalf(value));
    if (type_ == "bf16") return Copy(bytes, at + index * 2, DoubleToBfloat(value));
    if (type_ == "f32" || type_ == "tf32") return Copy(bytes, at + index * 4, static_cast<float>(value));
    if (type_ == "f64") return Copy(bytes, at + index * 8, static_cast<double>(value));
    if (type_ == "s32") return Copy(bytes, at + index * 4, value);
    if (bits_ == 8) return Copy(bytes, at + index, static_cast<std::uint8_t>(value));
    const std::size_t bit = index * bits_;
    bytes[at + bit / 8] = static_cast<std::uint8_t>(bytes[at + bit / 8] |
                                                    (static_cast<unsigned>(value) & ((1u << bits_) - 1)) << bit % 8);
  }
  double Get(const std::vector<std::uint8_t>& bytes, std::size_t index) const {
    if (type_ == "f16") return static_cast<double>(HalfToFloat(At<std::uint16_t>(bytes, index)));
    if (type_ == "f32") return static_cast<double>(At<float>(bytes, index));
    if (type_ == "f64") return At<double>(bytes, index);
    return At<std::int32_t>(bytes, index);
  }

 private:
  template <typename T>
  static void Copy(std::vector<std::uint8_t>& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  std::string type_;
  unsigned bits_;
};

int RandomValue(const WmmaCase& test, std::mt19937& random) {
  const std::string type = test.ab;
  if (type == "b1") return static_cast<int>(random() % 2);
  if (type == "u4" || type == "u8") return static_cast<int>(random() % 16);
  return static_cast<int>(random() % 15) - 7;
}

/// Loads, multiplies and stores one tile; memory: A at 0, B at 4096, C at 8192, rows or columns `pad` elements apart.
void CheckWmma(WarpRun& run, const WmmaCase& test, bool a_col, bool b_col, bool c_col, std::mt19937& random) {
  const std::string ab = test.ab, cd = test.cd, shape = test.shape;
  const unsigned pad = test.bits < 8 ? 128 / test.bits : 16 / (test.bits / 8);
  const unsigned lda = (a_col ? test.m : test.k) + pad, ldb = (b_col ? test.k : test.n) + pad,
                 ldc = (c_col ? test.m : test.n) + 8;
  const unsigned c_bits = cd == "f16" ? 16 : cd == "f64" ? 64 : 32;
  const Elements factor(ab, test.bits), accumulator(cd, c_bits);
  std::vector<std::uint8_t> in(16384);
  std::vector<int> a(test.m * test.k), b(test.k * test.n), c(test.m * test.n);
  for (unsigned i = 0; i < test.m; ++i) {
    for (unsigned k = 0; k < test.k; ++k)
      factor.Put(in, 0, a_col ? k * lda + i : i * lda + k, a[i * test.k + k] = RandomValue(test, random));
  }
  for (unsigned k = 0; k < test.k; ++k) {
    for (unsigned j = 0; j < test.n; ++j)
      factor.Put(in, 4096, b_col ? j * ldb + k : k * ldb + j, b[k * test.n + j] = RandomValue(test, random));
  }
  for (unsigned i = 0; i < test.m; ++i) {
    for (unsigned j = 0; j < test.n; ++j)
      accumulator.Put(in, 8192, c_col ? j * ldc + i : i * ldc + j,
                      c[i * test.n + j] = static_cast<int>(random() % 64) - 32);
  }
  const bool f64 = ab == "f64";
  const std::string fa = Registers(f64 ? "fa" : "a", test.a_registers),
                    fb = Registers(f64 ? "fb" : "b", test.b_registers),
                    fc = Registers(f64 ? "fc" : "c", test.c_registers);
  const auto layout = [](bool column) { return std::string(column ? ".col" : ".row"); };
  const std::string types = ab == "f16" ? "." + cd + "." + cd : "." + cd + "." + ab + "." + ab + "." + cd;
  const std::string op = ab == "b1" ? ".xor.popc" : "";
  const std::string body =
      "add.u64 %rd1, %in, 4096; add.u64 %rd2, %in, 8192; mov.u32 %r1, " + std::to_string(lda) + ";\n" +
      "wmma.load.a.sync.aligned" + layout(a_col) + "." + shape + ".global." + ab + " " + fa + ", [%in], %r1;\n" +
      "wmma.load.b.sync.aligned" + layout(b_col) + "." + shape + ".global." + ab + " " + fb + ", [%rd1], " +
      std::to_string(ldb) + ";\n" + "wmma.load.c.sync.aligned" + layout(c_col) + "." + shape + "." + cd + " " + fc +
      ", [%rd2], " + std::to_string(ldc) + ";\n" + "wmma.mma" + op + ".sync.aligned" + layout(a_col) + layout(b_col) +
      "." + shape + types + " " + fc + ", " + fa + ", " + fb + ", " + fc + ";\n" + "wmma.store.d.sync.aligned" +
      layout(c_col) + "." + shape + ".global." + cd + " [%out], " + fc + ", " + std::to_string(ldc) + ";\n";
  const auto out = run(body, in, 8192);
  for (unsigned i = 0; i < test.m; ++i) {
    for (unsigned j = 0; j < test.n; ++j) {
      int expected = c[i * test.n + j];
      for (unsigned k = 0; k < test.k; ++k) {
        const int x = a[i * test.k + k], y = b[k * test.n + j];
        expected += ab == "b1" ? x != y : x * y;
      }
      INFO(shape << " " << ab << " " << cd << " row " << i << " column " << j << " layouts " << a_col << b_col
                 << c_col);
      CHECK(accumulator.Get(out, c_col ? j * ldc + i : i * ldc + j) == expected);
    }
  }
}

}  // namespace

TEST_CASE("Wmma_EveryShapeTypeAndLayout") {
  WarpRun run;
  std::mt19937 random(6);
  for (const WmmaCase& test : kWmmaCases) {
    for (unsigned layouts = 0; layouts < 8; ++layouts) {
      const bool a_col = layouts & 1, b_col = layouts & 2, c_col = layouts & 4;
      if (test.fixed_layout && (a_col || !b_col)) continue;
      CheckWmma(run, test, a_col, b_col, c_col, random);
    }
  }
}

TEST_CASE("Wmma_MatrixOutsideOfMemory_IsAFault") {
  WarpRun run;
  run("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%in], 1048576;\n "
      "st.global.b32 [%out], "
      "%a7;\n",
      RandomBytes(4096, 7), 64, true);
  CHECK(run.fault.kind == FaultKind::kIllegalAddress);
}

TEST_CASE("Mma_InARoundedLoop_AccumulatesInPlace") {
  WarpRun run;
  // A and B all ones (0x3c00 halves): after five products of depth 16 every element is 80.
  const auto out = run(R"(
    mov.b32 %a0, 0x3c003c00; mov.b32 %e0, 0; mov.b32 %e1, 0; mov.b32 %e2, 0; mov.b32 %e3, 0; mov.u32 %r0, 0;
  LOOP:
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%e0, %e1, %e2, %e3}, {%a0, %a0, %a0, %a0}, {%a0, %a0}, {%e0, %e1, %e2, %e3};
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p, %r0, 5;
    @%p bra LOOP;
  )" + WriteRegisters(4),
                       RandomBytes(16, 8), 512);
  for (unsigned i = 0; i < 128; ++i) CHECK(At<float>(out, i) == 80.0f);
}

TEST_CASE("Mma_FormsThatAreNotThere_AreRefusedByName") {
  WarpRun run;
  for (const char* instruction : {"mma.sp.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32 {%e0, %e1, %e2, %e3}, {%a0, "
                                  "%a1}, {%b0, %b1}, {%e0, %e1, %e2, %e3}, %r0, 0;",
                                  "mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32 {%e0, %e1, %e2, %e3}, {%a0, %a1}, "
                                  "{%b0}, {%e0, %e1, %e2, %e3};"}) {
    run(instruction, RandomBytes(16, 9), 16, true);
    CHECK(run.fault.kind == FaultKind::kCompile);
    CHECK(run.fault.text.find("mma.") != std::string::npos);
  }
}

namespace {

// Block-scaled products (PTX ISA 9.4, 9.7.16.3).
struct ScaledCase {
  std::string words, a, b, scale;
  unsigned k, scales;
  bool four_bits;
};

/// A code of a small format: sign, exponent and fraction bits, without infinities and NaN of the formats here.
double SmallFloat(const std::string& type, unsigned code) {
  const int exponent_bits = type == "e4m3" || type == "ue4m3" ? 4 : type == "e5m2" ? 5 : type == "e3m2" ? 3 : 2;
  const int fraction_bits = type == "e5m2" || type == "e3m2" ? 2 : type == "e2m1" ? 1 : 3;
  const int exponent = static_cast<int>(code >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(code) & ((1 << fraction_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                         : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return (code >> (exponent_bits + fraction_bits) & 1) != 0 ? -magnitude : magnitude;
}

/// A random code, small enough for exact sums, and the byte or the four bits that it lies in.
unsigned RandomSmall(const std::string& type, std::mt19937& random) {
  const unsigned sign = random() & 1;
  if (type == "e4m3") return sign << 7 | (0x30 + random() % 16);
  if (type == "e5m2") return sign << 7 | (0x38 + random() % 12);
  return type == "e2m1" ? random() % 16 : random() % 64;
}

// Lanes 4 r + t have row r (and r + 8) of A and column r of B, t's part of each line of registers. Of a quad, threads
// 2 thread-id and 2 thread-id + 1 give the scales of rows r and r + 8, thread thread-id those of column r.
void CheckScaled(WarpRun& run, const ScaledCase& test, unsigned byte_a, unsigned thread_a, unsigned byte_b,
                 unsigned thread_b, std::mt19937& random) {
  INFO(test.words << ' ' << test.a << ' ' << test.b << ' ' << byte_a << thread_a << byte_b << thread_b);
  std::vector<std::uint32_t> in(32 * 12);  // of a lane: 4 words of A, 2 of B, 4 of C, scales of A and B
  double a[16][64], b[8][64], scale_a[16][4], scale_b[8][4];
  float c[16][8];
  const unsigned of_word = test.four_bits ? 8 : 4, bits = 32 / of_word;
  const auto place = [&](const std::string& type, unsigned code) {
    return type == "e2m1" && !test.four_bits ? code << 2 : code;
  };
  const auto put = [&](const std::string& type, unsigned quad, unsigned first, unsigned step, double(&line)[64]) {
    for (unsigned k = 0; k < test.k; ++k) {
      const unsigned code = RandomSmall(type, random), thread = k / of_word % 4,
                     word = first + k / (4 * of_word) * step;
      line[k] = SmallFloat(type, code);
      in[(quad * 4 + thread) * 12 + word] |= place(type, code) << k % of_word * bits;
    }
  };
  const auto put_scales = [&](unsigned lane, unsigned word, unsigned byte, double(&scales)[4]) {
    for (unsigned i = 0; i < test.scales; ++i) {
      const unsigned code = test.scale == "ue8m0" ? 125 + random() % 5 : 0x30 + random() % 16;
      scales[i] = test.scale == "ue8m0" ? std::ldexp(1.0, static_cast<int>(code) - 127) : SmallFloat("ue4m3", code);
      in[lane * 12 + word] &= ~(0xffu << 8 * (byte + i));
      in[lane * 12 + word] |= code << 8 * (byte + i);
    }
  };
  for (unsigned lane = 0; lane < 32; ++lane) in[lane * 12 + 10] = random(), in[lane * 12 + 11] = random();
  for (unsigned row = 0; row < 16; ++row) {
    put(test.a, row % 8, row / 8, 2, a[row]);
    put_scales(row % 8 * 4 + thread_a * 2 + row / 8, 10, byte_a, scale_a[row]);
    for (unsigned column = 0; column < 8; ++column) {
      c[row][column] = static_cast<float>(static_cast<int>(random() % 64) - 32);
      in[(row % 8 * 4 + column / 2) * 12 + 6 + row / 8 * 2 + column % 2] = std::bit_cast<std::uint32_t>(c[row][column]);
    }
  }
  for (unsigned column = 0; column < 8; ++column) {
    put(test.b, column, 4, 1, b[column]);
    put_scales(column * 4 + thread_b, 11, byte_b, scale_b[column]);
  }
  std::vector<std::uint8_t> bytes(in.size() * 4);
  std::memcpy(bytes.data(), in.data(), bytes.size());
  std::string body = ".reg .b16 %h<4>; mul.wide.u32 %rd0, %t, 48; add.u64 %rd0, %rd0, %in;\n";
  const char* const names[] = {"%a0", "%a1", "%a2", "%a3", "%b0", "%b1", "%e0", "%e1", "%e2", "%e3", "%r0", "%r1"};
  for (unsigned i = 0; i < 12; ++i)
    body += "ld.global.b32 " + std::string(names[i]) + ", [%rd0+" + std::to_string(4 * i) + "];\n";
  const unsigned selectors[] = {byte_a, thread_a, byte_b, thread_b};
  for (unsigned i = 0; i < 4; ++i)
    body += "mov.b16 %h" + std::to_string(i) + ", " + std::to_string(selectors[i]) + ";\n";
  body +=
      "mma.sync.aligned.m16n8k" + std::to_string(test.k) + ".row.col." + test.words + ".f32." + test.a + "." + test.b +
      ".f32." + test.scale +
      " {%e0, %e1, %e2, %e3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%e0, %e1, %e2, %e3}, {%r0}, {%h0, %h1}, {%r1}, {%h2, "
      "%h3};\n";
  const auto out = run(body + WriteRegisters(4), bytes, 512);
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      double sum = static_cast<double>(c[row][column]);
      for (unsigned k = 0; k < test.k; ++k) {
        const unsigned block = k / (test.k / test.scales);
        sum += a[row][k] * scale_a[row][block] * b[column][k] * scale_b[column][block];
      }
      const float got = At<float>(out, (row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2);
      CHECK(got == static_cast<float>(sum));
    }
  }
}

}  // namespace

namespace {

/// A layout as CUTLASS writes them: what the coordinates of a number, by its modes' shapes, come to with their strides.
unsigned LayoutOf(unsigned number, std::initializer_list<std::pair<unsigned, unsigned>> modes) {
  unsigned sum = 0;
  for (const auto& [shape, stride] : modes) {
    sum += number % shape * stride;
    number /= shape;
  }
  return sum;
}

}  // namespace

// Whose scale is whose, from documents alone. Which threads of a quad give scales says the ISA (9.4, 9.7.16.3); which
// of them is whose row says CUTLASS (mma_traits_sm120.hpp): SFALayout has of a thread's number Shape (2, 2, 8) and
// Stride (8, 0, 1), SFBLayout Shape (4, 8) and Stride (0, 1). All elements are 1, all scales random.
TEST_CASE("Mma_BlockScaled_ScalesAreThoseOfTheLanesInCutlassLayouts") {
  struct Form {
    std::string words, type, scale;
    unsigned k, scales;
  };
  WarpRun run;
  std::mt19937 random(78);
  for (const Form& form : {Form{"kind::mxf8f6f4.block_scale.scale_vec::1X", "e4m3", "ue8m0", 32, 1},
                           Form{"kind::mxf4.block_scale.scale_vec::2X", "e2m1", "ue8m0", 64, 2},
                           Form{"kind::mxf4nvf4.block_scale.scale_vec::4X", "e2m1", "ue4m3", 64, 4}}) {
    for (unsigned selected = 0; selected < 16 / form.scales; ++selected) {
      const unsigned byte_a = selected % 4 * form.scales % 4, thread_a = (selected / 4 + selected) % 2,
                     byte_b = (3 - selected % 4) * form.scales % 4, thread_b = selected % 3 + selected / 8;
      std::vector<std::uint8_t> in(32 * 8);
      for (std::uint8_t& code : in)
        code = static_cast<std::uint8_t>(form.scale == "ue8m0" ? 125 + random() % 5 : 0x30 + random() % 16);
      const auto scale_of = [&](unsigned lane, unsigned word, unsigned byte) {
        const unsigned code = in[lane * 8 + word * 4 + byte];
        return form.scale == "ue8m0" ? std::ldexp(1.0, static_cast<int>(code) - 127) : SmallFloat("ue4m3", code);
      };
      const std::string ones = form.k == 32 ? "0x38383838" : "0x22222222";
      const std::string body =
          "mul.wide.u32 %rd0, %t, 8; add.u64 %rd0, %rd0, %in; ld.global.b32 %r0, [%rd0]; ld.global.b32 %r1, [%rd0+4]; "
          "mov.b32 %a0, " +
          ones + "; mov.b32 %e0, 0; mov.b32 %e1, 0; mov.b32 %e2, 0; mov.b32 %e3, 0;\nmma.sync.aligned.m16n8k" +
          std::to_string(form.k) + ".row.col." + form.words + ".f32." + form.type + "." + form.type + ".f32." +
          form.scale + " {%e0, %e1, %e2, %e3}, {%a0, %a0, %a0, %a0}, {%a0, %a0}, {%e0, %e1, %e2, %e3}, {%r0}, {" +
          std::to_string(byte_a) + ", " + std::to_string(thread_a) + "}, {%r1}, {" + std::to_string(byte_b) + ", " +
          std::to_string(thread_b) + "};\n";
      const auto out = run(body + WriteRegisters(4), in, 512);
      INFO(form.words << ' ' << byte_a << ' ' << thread_a << ' ' << byte_b << ' ' << thread_b);
      for (unsigned a = 0; a < 32; ++a) {
        if (a / 2 % 2 != thread_a) continue;  // the thread pair of the quad
        for (unsigned b = 0; b < 32; ++b) {
          if (b % 4 != thread_b) continue;
          const unsigned row = LayoutOf(a, {{2, 8}, {2, 0}, {8, 1}}), column = LayoutOf(b, {{4, 0}, {8, 1}});
          double sum = 0;
          for (unsigned i = 0; i < form.scales; ++i)
            sum += form.k / form.scales * scale_of(a, 0, byte_a + i) * scale_of(b, 1, byte_b + i);
          CHECK(At<float>(out, (row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2) == static_cast<float>(sum));
        }
      }
    }
  }
}

TEST_CASE("Mma_OfWrongSelectorsAndFragments_IsRefused") {
  WarpRun run;
  const auto refused = [&](const std::string& instruction) {
    run(instruction, RandomBytes(16, 9), 16, true);
    return run.fault.kind == FaultKind::kCompile;
  };
  const auto scaled = [](const std::string& selectors) {
    return "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 {%e0, %e1, %e2, %e3}, "
           "{%a0, "
           "%a1, %a2, %a3}, {%b0, %b1}, {%e0, %e1, %e2, %e3}, {%r0}, " +
           selectors + ";";
  };
  CHECK(!refused(scaled("{2, 1}, {%r1}, {0, 3}")));
  for (const std::string wrong : {"{1, 0}, {%r1}, {0, 0}", "{0, 2}, {%r1}, {0, 0}", "{0, 0}, {%r1}, {3, 0}",
                                  "{0, 0}, {%r1}, {0, 4}", "{4, 0}, {%r1}, {0, 0}"})
    CHECK(refused(scaled(wrong)));
  // Twice as many registers as the shape has, and accumulators of two types.
  CHECK(
      refused("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%e0, %e1, %e2, %e3}, {%a0, %a1, %a2, %a3}, {%b0}, "
              "{%e0, %e1, %e2, %e3};"));
  CHECK(
      refused("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%e0, %e1, %e2, %e3}, {%a0, %a1, %a2, %a3}, {%b0, "
              "%b1}, {%r0, %r1};"));
  CHECK(refused("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0, %r1}, [%r2];"));
}

TEST_CASE("Mma_BlockScaled_MultipliesBlocksByTheirScales") {
  WarpRun run;
  std::mt19937 random(77);
  for (const ScaledCase& test :
       {ScaledCase{"kind::mxf8f6f4.block_scale.scale_vec::1X", "e4m3", "e4m3", "ue8m0", 32, 1, false},
        ScaledCase{"kind::mxf8f6f4.block_scale", "e5m2", "e2m3", "ue8m0", 32, 1, false},
        ScaledCase{"kind::mxf8f6f4.block_scale", "e3m2", "e2m1", "ue8m0", 32, 1, false},
        ScaledCase{"kind::mxf4.block_scale.scale_vec::2X", "e2m1", "e2m1", "ue8m0", 64, 2, true},
        ScaledCase{"kind::mxf4nvf4.block_scale.scale_vec::2X", "e2m1", "e2m1", "ue8m0", 64, 2, true},
        ScaledCase{"kind::mxf4nvf4.block_scale.scale_vec::4X", "e2m1", "e2m1", "ue8m0", 64, 4, true},
        ScaledCase{"kind::mxf4nvf4.block_scale.scale_vec::4X", "e2m1", "e2m1", "ue4m3", 64, 4, true}}) {
    const unsigned step = test.scales;  // of byte-id
    for (unsigned byte = 0; byte < 4; byte += step) {
      CheckScaled(run, test, byte, 0, (byte + step) % 4 / step * step, 3, random);
      CheckScaled(run, test, byte, 1, byte, byte % 3, random);
    }
  }
}
