// Bits of results that are not a number, in machine code and interpreted. Those of tests/data/gpu/nan-bits.txt are
// tested there, too (gpu.nan_bits); here are what follows from them, and what ptxas folds or compiles.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

struct NanCase {
  const char* instructions;  ///< leave their result in %d9
  std::uint64_t bits;
};

// Loaded are %f1 infinity, %f2 -infinity, %f3 0x7f812345 (signalling), %f4 0xffc54321, %f5 1, %f6 -1; %g1
// 0xfff8000000012345, %g2 0x7ff0000000054321 (signalling), %g3 1, %g4 infinity; %h1 0xfe12, %h2 0x7c12 (signalling),
// %h3 0xffc1.
constexpr NanCase kNanCases[] = {
    // What is computed in f32 is 0x7fffffff for a conversion, too; what is loaded keeps its payload.
    {"add.f32 %f9, %f1, %f2; cvt.f64.f32 %g9, %f9; mov.b64 %d9, %g9;", 0x7fffffffe0000000},
    {"sqrt.rn.f32 %f9, %f6; cvt.f64.f32 %g9, %f9; mov.b64 %d9, %g9;", 0x7fffffffe0000000},
    {"add.f32 %f9, %f4, %f5; cvt.f64.f32 %g9, %f9; mov.b64 %d9, %g9;", 0x7fffffffe0000000},
    {"cvt.f64.f32 %g9, %f4; mov.b64 %d9, %g9;", 0xfff8a86420000000},
    {"cvt.f64.f32 %g9, %f3; mov.b64 %d9, %g9;", 0x7ff82468a0000000},
    {"cvt.f64.f16 %g9, %h1; mov.b64 %d9, %g9;", 0x7fffffffe0000000},
    {"cvt.f64.f16 %g9, %h2; mov.b64 %d9, %g9;", 0x7fffffffe0000000},
    {"cvt.f64.bf16 %g9, %h3; mov.b64 %d9, %g9;", 0x7fffffffe0000000},
    {"cvt.f32.f16 %f9, %h1; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0x7fffffff},
    {"cvt.f32.bf16 %f9, %h3; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0xffc10000},
    // copysign is an operation on bits.
    {"copysign.f32 %f9, %f2, %f4; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0xffc54321},
    {"copysign.f32 %f9, %f5, %f4; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0x7fc54321},
    {"copysign.f32 %f9, %f6, %f3; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0xff812345},
    {"copysign.f32 %f9, %f4, %f5; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0xbf800000},
    {"sqrt.rn.f32 %f8, %f6; copysign.f32 %f9, %f6, %f8; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0xffffffff},
    {"sqrt.rn.f32 %f8, %f6; copysign.f32 %f9, %f8, %f5; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0x3f800000},
    {"copysign.f64 %g9, %g3, %g1; mov.b64 %d9, %g9;", 0x7ff8000000012345},
    {"copysign.f64 %g9, %g1, %g2; mov.b64 %d9, %g9;", 0xfff0000000054321},
    // Of two NaNs in f64 the second one, made quiet.
    {"min.f64 %g9, %g1, %g1; mov.b64 %d9, %g9;", 0xfff8000000012345},
    {"min.f64 %g9, %g2, %g1; mov.b64 %d9, %g9;", 0xfff8000000012345},
    {"max.f64 %g9, %g1, %g2; mov.b64 %d9, %g9;", 0x7ff8000000054321},
    {"max.f64 %g9, %g4, %g2; mov.b64 %d9, %g9;", 0x7ff0000000000000},
    {"min.f64 %g9, %g1, %g3; mov.b64 %d9, %g9;", 0x3ff0000000000000},
    // Rounding to an integer is arithmetic.
    {"cvt.rni.f64.f64 %g9, %g2; mov.b64 %d9, %g9;", 0x7ff8000000054321},
    {"cvt.rzi.f64.f64 %g9, %g2; mov.b64 %d9, %g9;", 0x7ff8000000054321},
    {"cvt.rmi.f64.f64 %g9, %g2; mov.b64 %d9, %g9;", 0x7ff8000000054321},
    {"cvt.rpi.f64.f64 %g9, %g1; mov.b64 %d9, %g9;", 0xfff8000000012345},
    {"cvt.rpi.f32.f32 %f9, %f3; mov.b32 %r9, %f9; cvt.u64.u32 %d9, %r9;", 0x7fffffff},
    // Pairs of f32.
    {"mov.b64 %d1, {%f1, %f5}; mov.b64 %d2, {%f2, %f4}; add.rn.f32x2 %d9, %d1, %d2;", 0x7fffffff7fffffff},
    {"mov.b64 %d1, {%f6, %f4}; mov.b64 %d2, {%f5, %f6}; mul.rn.f32x2 %d9, %d1, %d2;", 0x7fffffffbf800000},
    {"mov.b64 %d1, {%f1, %f3}; mov.b64 %d2, {%f2, %f5}; fma.rn.f32x2 %d9, %d1, %d1, %d2;", 0x7fffffff7fffffff},
};

std::string Kernel(const NanCase& one, bool loads) {
  const std::string loaded =
      "ld.global.f64 %g1, [%in]; ld.global.f64 %g2, [%in+8]; ld.global.f64 %g3, [%in+16]; ld.global.f64 %g4, "
      "[%in+24];\n"
      "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%in+32]; ld.global.v2.f32 {%f5, %f6}, [%in+48];\n"
      "ld.global.b16 %h1, [%in+56]; ld.global.b16 %h2, [%in+58]; ld.global.b16 %h3, [%in+60];\n";
  const std::string constant =
      "mov.f64 %g1, 0dfff8000000012345; mov.f64 %g2, 0d7ff0000000054321; mov.f64 %g3, 0d3ff0000000000000; mov.f64 %g4, "
      "0d7ff0000000000000;\n"
      "mov.f32 %f1, 0f7f800000; mov.f32 %f2, 0fff800000; mov.f32 %f3, 0f7f812345; mov.f32 %f4, 0fffc54321; mov.f32 "
      "%f5, 0f3f800000;\n"
      "mov.f32 %f6, 0fbf800000; mov.b16 %h1, 0xfe12; mov.b16 %h2, 0x7c12; mov.b16 %h3, 0xffc1;\n";
  return std::string(
             ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
             ".reg .b64 %d<10>; .reg .b32 %r<10>; .reg .f32 %f<10>; .reg .f64 %g<10>; .reg .b16 %h<10>; .reg .b64 %in, "
             "%out;\n"
             "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n") +
         (loads ? loaded : constant) + one.instructions + "\nst.global.u64 [%out], %d9;\nret;\n}\n";
}

}  // namespace

TEST_CASE("NanBits_AreThoseOfAGpu_InBothTiersAndFolded") {
  const std::vector<std::uint64_t> in = {0xfff8000000012345, 0x7ff0000000054321, 0x3ff0000000000000,
                                         0x7ff0000000000000, 0xff8000007f800000, 0xffc543217f812345,
                                         0xbf8000003f800000, 0x0000ffc17c12fe12};
  for (const auto& [tiers, features] :
       {std::pair("off", ""), {"off", "avx2"}, {"off", "baseline"}, {"interpret", ""}, {"interpret", "baseline"}}) {
    exec::Engine::Options options;
    options.tiers = tiers;
    options.cpu_features = features;
    Executor executor(options);
    const std::uint64_t at = executor.Upload(in);
    const std::uint64_t out_at = executor.Upload(std::vector<std::uint64_t>(1));
    for (const NanCase& one : kNanCases) {
      for (const bool loads : {true, false}) {
        std::vector<std::uint64_t> out(1);
        const exec::LaunchFault fault =
            executor.Launch(Kernel(one, loads), "k", {1, 1, 1}, {1, 1, 1}, ParamBlock().Add(at).Add(out_at));
        executor.Download(out_at, out);
        INFO(one.instructions << (loads ? ", loaded" : ", constants") << ", tiers " << tiers << ' ' << features << ": "
                              << std::hex << out[0] << ", not " << one.bits << " " << fault.text);
        CHECK(fault.kind == exec::FaultKind::kNone);
        CHECK(out[0] == one.bits);
      }
    }
  }
}

namespace {

constexpr std::uint64_t kQuiet = 0xfff8000000012345, kSignals = 0x7ff0000000054321, kOne = 0x3ff0000000000000;
constexpr std::uint64_t kNans[] = {kQuiet, kSignals, 0x7ff8000000000001, 0xfffc000000000000, 0xfff0000000000001};

std::string HexF64(std::uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0d%016llx", static_cast<unsigned long long>(bits));
  return text;
}

/// Kernel K stores what instruction K gives for three numbers, loaded or constant.
std::string OperandsKernel(const std::vector<std::string>& instructions, const std::vector<std::uint64_t>& operands,
                           bool loads) {
  std::string text = ".version 8.6\n.target sm_90\n.address_size 64\n";
  text +=
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .f64 %g<10>; .reg .b64 %in, %out;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    text += loads ? "ld.global.f64 %g" + number + ", [%in+" + std::to_string(8 * i) + "];\n"
                  : "mov.f64 %g" + number + ", " + HexF64(operands[i]) + ";\n";
  }
  std::size_t place = 0;
  for (const std::string& instruction : instructions)
    text += instruction + "\nst.global.f64 [%out+" + std::to_string(8 * place++) + "], %g9;\n";
  return text + "ret;\n}\n";
}

}  // namespace

// Which of two an H200 takes is known for a few pairs only; here it is the first one, in all ways to run.
TEST_CASE("NanBits_OfSeveralNansInF64_AreThoseOfTheFirst") {
  const std::vector<std::string> instructions = {
      "add.f64 %g9, %g1, %g2;",        "add.rn.f64 %g9, %g1, %g2;",      "sub.f64 %g9, %g1, %g2;",
      "sub.rn.f64 %g9, %g1, %g2;",     "mul.f64 %g9, %g1, %g2;",         "mul.rn.f64 %g9, %g1, %g2;",
      "div.rn.f64 %g9, %g1, %g2;",     "add.rz.f64 %g9, %g1, %g2;",      "mul.rp.f64 %g9, %g1, %g2;",
      "div.rm.f64 %g9, %g1, %g2;",     "fma.rn.f64 %g9, %g1, %g2, %g3;", "fma.rn.f64 %g9, %g1, %g3, %g2;",
      "fma.rn.f64 %g9, %g3, %g1, %g2;"};
  for (const std::string tiers : {"off", "interpret"}) {
    exec::Engine::Options options;
    options.tiers = tiers;
    Executor executor(options);
    for (const std::uint64_t first : kNans) {
      const std::uint64_t second = first == kQuiet ? kSignals : kQuiet;
      for (const auto& [a, b] : {std::pair(first, second), std::pair(second, first)}) {
        const std::vector<std::uint64_t> operands = {a, b, kOne};
        const std::uint64_t at = executor.Upload(operands);
        for (const bool loads : {true, false}) {
          std::vector<std::uint64_t> out(instructions.size());
          const std::uint64_t out_at = executor.Upload(out);
          const exec::LaunchFault fault = executor.Launch(OperandsKernel(instructions, operands, loads), "k", {1, 1, 1},
                                                          {1, 1, 1}, ParamBlock().Add(at).Add(out_at));
          executor.Download(out_at, out);
          CHECK(fault.kind == exec::FaultKind::kNone);
          for (std::size_t i = 0; i < instructions.size(); ++i) {
            INFO(instructions[i] << " of " << HexF64(a) << ", " << HexF64(b) << (loads ? ", loaded" : ", constants")
                                 << ", tiers " << tiers << ": " << HexF64(out[i]));
            CHECK(out[i] == (a | std::uint64_t{1} << 51));
          }
        }
      }
    }
  }
}
