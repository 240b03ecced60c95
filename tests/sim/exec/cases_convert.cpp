// cvt between plain integer and floating types (PTX ISA, 9.7.9.21).
#include <algorithm>
#include <cmath>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Decode;
using reference::Flush;
using reference::Format;
using reference::Mode;
using reference::Quad;

constexpr std::string_view kInts[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
constexpr std::string_view kFloats[] = {"f16", "bf16", "f32", "f64"};

struct ModeName {
  std::string suffix;
  Mode mode;
};
const ModeName kModes[] = {{".rn", Mode::kNearest}, {".rz", Mode::kZero}, {".rm", Mode::kDown}, {".rp", Mode::kUp}};
const ModeName kIntegralModes[] = {
    {".rni", Mode::kNearest}, {".rzi", Mode::kZero}, {".rmi", Mode::kDown}, {".rpi", Mode::kUp}};

__int128 IntValue(std::string_view type, std::uint64_t bits) {
  const unsigned shift = 64 - TypeBits(type);
  if (type[0] == 'u') return static_cast<__int128>(bits << shift >> shift);
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

const Format* HalfFormat(std::string_view type) {
  return type == "f16" ? &reference::kF16 : type == "bf16" ? &reference::kBF16 : nullptr;
}

double FloatValue(std::string_view type, std::uint64_t bits) {
  if (const Format* format = HalfFormat(type)) return Decode(bits & 0xffff, *format);
  if (type == "f32") return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return std::bit_cast<double>(bits);
}

std::uint64_t Pack(std::string_view type, Quad exact, bool negative, Mode mode) {
  if (const Format* format = HalfFormat(type)) return reference::Round(exact, negative, *format, mode);
  if (type == "f32") return reference::Round(exact, negative, reference::kF32, mode);
  return reference::Round(exact, negative, Format{52, 11, 1023}, mode);
}

std::uint64_t NaN(std::string_view type) {
  return type == "f64" ? 0x7fffffffffffffff : type == "f32" ? 0x7fffffff : 0x7fff;
}
std::uint64_t Infinity(std::string_view type, bool negative) {
  const std::uint64_t magnitude = type == "f64"   ? 0x7ff0000000000000
                                  : type == "f32" ? 0x7f800000
                                  : type == "f16" ? 0x7c00
                                                  : 0x7f80;
  return magnitude | std::uint64_t{negative} << (TypeBits(type) - 1);
}

// As an f32, where that is no arithmetic: the upper bits.
std::uint64_t MovedNaN(std::string_view from, std::uint64_t bits) {
  if (from == "f32") return bits;
  return from == "bf16" ? bits << 16 : (bits >> 32 & 0x80000000) | 0x7fc00000 | (bits >> 29 & 0x3fffff);
}

double Integral(double x, Mode mode) {
  switch (mode) {
    case Mode::kZero: return std::trunc(x);
    case Mode::kDown: return std::floor(x);
    case Mode::kUp: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

/// Whether a type has all values of another one: then `.sat` has nothing to do, and is no word of the conversion.
bool HasAllOf(std::string_view to, std::string_view from) {
  const bool is_signed = to[0] == 's', from_signed = from[0] == 's';
  return from_signed == is_signed ? TypeBits(to) >= TypeBits(from) : is_signed && TypeBits(to) > TypeBits(from);
}

/// There are no conversions between bf16 and integers of 8 bits.
bool Exists(std::string_view integer, std::string_view floating) {
  return floating != "bf16" || TypeBits(integer) != 8;
}

void AddIntToInt(std::vector<InstructionCase>& cases, std::string_view to, std::string_view from) {
  const std::string types = "." + std::string(to) + "." + std::string(from) + " %d0, %s0;";
  cases.push_back(Exact("cvt" + types, to, {from},
                        [=](const Values& in) { return static_cast<std::uint64_t>(IntValue(from, in.v[0])); }));
  if (HasAllOf(to, from)) return;
  cases.push_back(Exact("cvt.sat" + types, to, {from}, [=](const Values& in) {
    const unsigned bits = TypeBits(to);
    const __int128 low = to[0] == 's' ? -(static_cast<__int128>(1) << (bits - 1)) : 0;
    const __int128 high = (static_cast<__int128>(1) << (bits - (to[0] == 's' ? 1 : 0))) - 1;
    return static_cast<std::uint64_t>(std::clamp(IntValue(from, in.v[0]), low, high));
  }));
}

void AddIntToFloat(std::vector<InstructionCase>& cases, std::string_view to, std::string_view from) {
  if (!Exists(from, to)) return;
  for (const ModeName& m : kModes) {
    cases.push_back(Exact("cvt" + m.suffix + "." + std::string(to) + "." + std::string(from) + " %d0, %s0;", to, {from},
                          [=, mode = m.mode](const Values& in) {
                            const __int128 value = IntValue(from, in.v[0]);
                            return Pack(to, static_cast<Quad>(value), value < 0, mode);
                          }));
    if (to == "bf16") continue;  // which has no .sat
    // Of an integer, 0 and 1 are all that lies in [0, 1].
    cases.push_back(Exact(
        "cvt" + m.suffix + ".sat." + std::string(to) + "." + std::string(from) + " %d0, %s0;", to, {from},
        [=, mode = m.mode](const Values& in) { return Pack(to, IntValue(from, in.v[0]) > 0 ? 1 : 0, false, mode); }));
  }
}

void AddFloatToInt(std::vector<InstructionCase>& cases, std::string_view to, std::string_view from) {
  if (!Exists(to, from)) return;
  for (const ModeName& m : kIntegralModes) {
    for (const bool ftz : {false, true}) {
      if (ftz && from != "f32") continue;
      cases.push_back(Exact(
          "cvt" + m.suffix + (ftz ? ".ftz" : "") + "." + std::string(to) + "." + std::string(from) + " %d0, %s0;", to,
          {from}, [=, mode = m.mode](const Values& in) -> std::uint64_t {
            double x = FloatValue(from, in.v[0]);
            if (ftz && std::fabs(x) < 0x1p-126) x = std::copysign(0.0, x);
            const unsigned bits = TypeBits(to);
            if (std::isnan(x)) return from == "f64" || bits == 64 ? std::uint64_t{1} << (bits - 1) : 0;
            const double rounded = Integral(x, mode);
            const double limit = std::ldexp(1.0, static_cast<int>(bits) - (to[0] == 's' ? 1 : 0));
            const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
            if (rounded >= limit) return to[0] == 's' ? all >> 1 : all;
            if (to[0] == 's')
              return rounded < -limit ? (all >> 1) + 1 : static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded));
            return rounded <= 0 ? 0 : static_cast<std::uint64_t>(rounded);
          }));
    }
  }
}

// Narrowing rounds (.rn …), same size rounds to integral (.rni …) or copies, widening is exact.
void AddFloatToFloat(std::vector<InstructionCase>& cases, std::string_view to, std::string_view from) {
  const bool narrows = TypeBits(to) < TypeBits(from);
  if (TypeBits(to) == 16 && TypeBits(from) == 16 && to != from) return;
  const bool moves = to == "f32" && from != "f16";
  auto convert = [=](const Values& in, Mode mode, bool integral, bool ftz, bool sat) {
    double x = FloatValue(from, in.v[0]);
    if (ftz && from == "f32" && std::fabs(x) < 0x1p-126) x = std::copysign(0.0, x);
    if (integral) x = Integral(x, mode);
    if (sat) x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
    if (std::isnan(x)) return moves && !integral ? MovedNaN(from, in.v[0]) : NaN(to);
    if (std::isinf(x)) return Infinity(to, x < 0);
    std::uint64_t bits = Pack(to, static_cast<Quad>(x), std::signbit(x), integral ? Mode::kNearest : mode);
    if (ftz && to == "f32" && (bits & 0x7f800000) == 0) bits &= 0x80000000;
    return bits;
  };
  const std::string types = "." + std::string(to) + "." + std::string(from) + " %d0, %s0;";
  for (const bool ftz : {false, true}) {
    if (ftz && to != "f32" && from != "f32") continue;
    for (const bool sat : {false, true}) {
      if (sat && (to == "bf16" || from == "bf16")) continue;
      const std::string suffix = std::string(ftz ? ".ftz" : "") + (sat ? ".sat" : "");
      if (narrows) {
        for (const ModeName& m : kModes) {
          cases.push_back(Exact("cvt" + m.suffix + suffix + types, to, {from},
                                [=, mode = m.mode](const Values& in) { return convert(in, mode, false, ftz, sat); }));
        }
      } else {
        cases.push_back(Exact("cvt" + suffix + types, to, {from},
                              [=](const Values& in) { return convert(in, Mode::kNearest, false, ftz, sat); }));
      }
      if (to != from) continue;
      for (const ModeName& m : kIntegralModes) {
        cases.push_back(Exact("cvt" + m.suffix + suffix + types, to, {from},
                              [=, mode = m.mode](const Values& in) { return convert(in, mode, true, ftz, sat); }));
      }
    }
  }
}

}  // namespace

std::vector<InstructionCase> ConvertCases() {
  std::vector<InstructionCase> cases;
  for (const std::string_view to : kInts) {
    for (const std::string_view from : kInts) AddIntToInt(cases, to, from);
    for (const std::string_view from : kFloats) AddFloatToInt(cases, to, from);
  }
  for (const std::string_view to : kFloats) {
    for (const std::string_view from : kInts) AddIntToFloat(cases, to, from);
    for (const std::string_view from : kFloats) AddFloatToFloat(cases, to, from);
  }
  // Wider registers: the source is cut, the result extended as the destination type says.
  cases.push_back(Exact("cvt.s32.s8 %d0, %s0;", "b32", {"b32"},
                        [](const Values& in) { return static_cast<std::uint64_t>(std::int64_t{in.s8(0)}); }));
  cases.push_back(
      Exact("cvt.u8.u32 %d0, %s0;", "b32", {"b32"}, [](const Values& in) { return std::uint64_t{in.u8(0)}; }));
  cases.push_back(Exact("cvt.s16.s32 %d0, %s0;", "b64", {"b32"},
                        [](const Values& in) { return static_cast<std::uint64_t>(std::int64_t{in.s16(0)}); }));
  return cases;
}

}  // namespace gridloom::exec
