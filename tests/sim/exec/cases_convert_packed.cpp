// cvt to and from packed and narrow formats (PTX ISA, 9.7.9.21, 9.7.9.22); arithmetic of four narrow numbers (PTX ISA
// 9.4, 9.7.6).
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Decode;
using reference::Format;
using reference::Mode;
using reference::Quad;

struct Variant {
  std::string suffix;
  Mode mode;
  bool relu, satfinite;
};
const Variant kVariants[] = {{".rn", Mode::kNearest, false, false},
                             {".rz", Mode::kZero, false, false},
                             {".rn.relu", Mode::kNearest, true, false},
                             {".rn.satfinite", Mode::kNearest, false, true},
                             {".rz.relu.satfinite", Mode::kZero, true, true}};

// f32 -> a format with infinities and canonical NaN `nan`.
std::uint64_t ToFloat(double x, const Format& f, const Variant& v, std::uint64_t nan) {
  if (std::isnan(x)) return nan;
  if (v.relu && std::signbit(x)) x = 0;
  const std::uint64_t infinity = static_cast<std::uint64_t>((1 << f.exponent) - 1) << f.mantissa;
  const std::uint64_t sign = std::uint64_t{std::signbit(x)} << (f.mantissa + f.exponent);
  std::uint64_t code = std::isinf(x) ? sign | infinity : reference::Round(Quad(x), std::signbit(x), f, v.mode);
  if (v.satfinite && (code & ~sign) == infinity) --code;
  return code;
}

void AddHalfPairs(std::vector<InstructionCase>& cases) {
  struct Kind {
    std::string pair, single;
    std::string_view pair_name, single_name;
    Format format;
  };
  static const Kind kKinds[] = {{"f16x2", "f16", "f16x2", "f16", reference::kF16},
                                {"bf16x2", "bf16", "bf16x2", "bf16", reference::kBF16}};
  for (const Kind& kind : kKinds) {
    for (const Variant& v : kVariants) {
      cases.push_back(Exact("cvt" + v.suffix + "." + kind.pair + ".f32 %d0, %s0, %s1;", kind.pair_name, {"f32", "f32"},
                            [&kind, v](const Values& in) {
                              return ToFloat(static_cast<double>(in.f32(1)), kind.format, v, 0x7fff) |
                                     ToFloat(static_cast<double>(in.f32(0)), kind.format, v, 0x7fff) << 16;
                            }));
      cases.push_back(Exact(
          "cvt" + v.suffix + "." + kind.single + ".f32 %d0, %s0;", kind.single_name, {"f32"},
          [&kind, v](const Values& in) { return ToFloat(static_cast<double>(in.f32(0)), kind.format, v, 0x7fff); }));
    }
  }
}

// cvt.rs: what is cut off, in units of the random bits, plus these: away from zero from one last place on.
void AddRandomHalves(std::vector<InstructionCase>& cases) {
  const auto half = [](double x, std::uint64_t random, const Format& f, bool relu, bool satfinite) -> std::uint64_t {
    const std::uint64_t infinity = static_cast<std::uint64_t>((1 << f.exponent) - 1) << f.mantissa;
    if (std::isnan(x)) return 0x7fff;
    if (relu && std::signbit(x)) x = 0;
    const std::uint64_t sign = std::signbit(x) ? 0x8000 : 0;
    const int cut = 23 - f.mantissa, exponent = x == 0 ? 0 : std::ilogb(x);
    std::uint64_t code = infinity;
    if (std::isfinite(x) && exponent <= f.bias) {
      const double last = std::ldexp(1.0, std::max(exponent, 1 - f.bias) - f.mantissa);  // the value of a last place
      const double places = std::fabs(x) / last, rest = std::floor(std::ldexp(places - std::floor(places), cut));
      const bool away = rest + static_cast<double>(random % (1u << cut)) >= std::ldexp(1.0, cut);
      const double rounded = (std::floor(places) + (away ? 1 : 0)) * last;
      if (std::ilogb(rounded) <= f.bias || rounded == 0)
        code = reference::Round(Quad(rounded), false, f, Mode::kNearest);
    }
    return sign | (satfinite && code == infinity ? infinity - 1 : code);
  };
  for (const bool is_bfloat : {false, true}) {
    for (const bool relu : {false, true}) {
      for (const bool satfinite : {false, true}) {
        const Format format = is_bfloat ? reference::kBF16 : reference::kF16;
        const std::string type = is_bfloat ? "bf16x2" : "f16x2";
        cases.push_back(Exact("cvt.rs" + std::string(relu ? ".relu" : "") + (satfinite ? ".satfinite." : ".") + type +
                                  ".f32 %d0, %s0, %s1, %s2;",
                              is_bfloat ? "bf16x2" : "f16x2", {"f32", "f32", "b32"}, [=](const Values& in) {
                                return half(static_cast<double>(in.f32(1)), in.v[2] & 0xffff, format, relu, satfinite) |
                                       half(static_cast<double>(in.f32(0)), in.v[2] >> 16, format, relu, satfinite)
                                           << 16;
                              }));
      }
    }
  }
}

void AddTf32(std::vector<InstructionCase>& cases) {
  const Variant variants[] = {{".rna", Mode::kAway, false, false},          {".rn", Mode::kNearest, false, false},
                              {".rz", Mode::kZero, false, false},           {".rn.relu", Mode::kNearest, true, false},
                              {".rna.satfinite", Mode::kAway, false, true}, {".rz.relu", Mode::kZero, true, false}};
  for (const Variant& v : variants) {
    cases.push_back(Exact("cvt" + v.suffix + ".tf32.f32 %d0, %s0;", "b32", {"f32"}, [v](const Values& in) {
      const double x = static_cast<double>(in.f32(0));
      return std::isnan(x) ? 0x7fffffff : ToFloat(x, reference::kTF32, v, 0) << 13;
    }));
  }
}

struct Narrow {
  std::string name;
  Format format;
  std::uint64_t nan;
  unsigned bits;
  std::string_view register_type;
};
const Narrow kNarrows[] = {{"e4m3x2", reference::kE4M3, 0x7f, 8, "b16"},
                           {"e5m2x2", reference::kE5M2, 0x7f, 8, "b16"},
                           {"e2m3x2", reference::kE2M3, 0x1f, 8, "b16"},
                           {"e3m2x2", reference::kE3M2, 0x1f, 8, "b16"},
                           {"e2m1x2", reference::kE2M1, 0x7, 4, "b8"}};

std::uint64_t ToNarrow(double x, const Narrow& narrow, bool relu) {
  const Format& f = narrow.format;
  if (std::isnan(x)) return narrow.nan;
  if (relu && std::signbit(x)) x = 0;
  const std::uint64_t sign = std::uint64_t{std::signbit(x)} << (f.mantissa + f.exponent);
  const std::uint64_t largest = narrow.name == "e5m2x2" ? 0x7b : narrow.name == "e4m3x2" ? 0x7e : narrow.nan;
  if (std::isinf(x)) return sign | largest;
  return sign | std::min(reference::Round(Quad(x), std::signbit(x), f, Mode::kNearest) & ~sign, largest);
}

// The .e2m1x2 form works on .b8 registers, which only cvt and mov know: it goes through one.
std::string WithByte(const Narrow& narrow, const std::string& before, const std::string& after, bool to_narrow) {
  if (narrow.bits == 8) return before + (to_narrow ? "%d0" : "%s0") + after;
  if (to_narrow) return ".reg .b8 %byte; " + before + "%byte" + after + " cvt.u16.u8 %d0, %byte;";
  return ".reg .b8 %byte; cvt.u8.u16 %byte, %s0; " + before + "%byte" + after;
}

void AddNarrow(std::vector<InstructionCase>& cases) {
  for (const Narrow& narrow : kNarrows) {
    for (const bool relu : {false, true}) {
      const std::string suffix = std::string(".rn.satfinite") + (relu ? ".relu." : ".");
      cases.push_back(Exact(WithByte(narrow, "cvt" + suffix + narrow.name + ".f32 ", ", %s0, %s1;", true), "b16",
                            {"f32", "f32"}, [&narrow, relu](const Values& in) {
                              return ToNarrow(static_cast<double>(in.f32(1)), narrow, relu) |
                                     ToNarrow(static_cast<double>(in.f32(0)), narrow, relu) << narrow.bits;
                            }));
      cases.push_back(Exact(WithByte(narrow, "cvt" + suffix + narrow.name + ".f16x2 ", ", %s0;", true), "b16",
                            {"f16x2"}, [&narrow, relu](const Values& in) {
                              return ToNarrow(Decode(in.v[0] & 0xffff, reference::kF16), narrow, relu) |
                                     ToNarrow(Decode(in.v[0] >> 16 & 0xffff, reference::kF16), narrow, relu)
                                         << narrow.bits;
                            }));
      cases.push_back(
          Exact(WithByte(narrow, std::string("cvt.rn") + (relu ? ".relu" : "") + ".f16x2." + narrow.name + " %d0, ",
                         ";", false),
                "f16x2", {"b16"}, [&narrow, relu](const Values& in) {
                  auto lane = [&](std::uint64_t code) -> std::uint64_t {
                    if (narrow.name == "e2m3x2" || narrow.name == "e3m2x2") code &= 0x3f;
                    const bool is_nan =
                        (narrow.name == "e4m3x2" && (code & 0x7f) == 0x7f) || std::isnan(Decode(code, narrow.format));
                    if (is_nan) return 0x7fff;
                    const double x = Decode(code, narrow.format);
                    if (relu && std::signbit(x)) return 0;
                    if (std::isinf(x)) return x < 0 ? 0xfc00 : 0x7c00;
                    return reference::Round(Quad(x), std::signbit(x), reference::kF16, Mode::kNearest);
                  };
                  const std::uint64_t mask = (1u << narrow.bits) - 1;
                  return lane(in.v[0] & mask) | lane(in.v[0] >> narrow.bits & mask) << 16;
                }));
    }
  }
}

// Pairs of bf16: converted as they are, and those of 8 bits and less times a power of two each.
void AddNarrowBFloats(std::vector<InstructionCase>& cases) {
  struct Wider {
    std::string suffix;
    bool relu, satfinite, scaled;
  };
  const Wider kinds[] = {{".rn", false, false, false},
                         {".rn.relu", true, false, false},
                         {".rn.satfinite", false, true, false},
                         {".rn.scaled::n2::ue8m0", false, false, true},
                         {".rn.relu.scaled::n2::ue8m0", true, false, true},
                         {".rn.satfinite.scaled::n2::ue8m0", false, true, true},
                         {".rn.satfinite.relu.scaled::n2::ue8m0", true, true, true}};
  for (const Narrow& narrow : kNarrows) {
    for (const bool relu : {false, true}) {
      const std::string suffix = std::string(".rn.satfinite") + (relu ? ".relu." : ".");
      cases.push_back(Exact(WithByte(narrow, "cvt" + suffix + narrow.name + ".bf16x2 ", ", %s0;", true), "b16",
                            {"bf16x2"}, [&narrow, relu](const Values& in) {
                              return ToNarrow(Decode(in.v[0] & 0xffff, reference::kBF16), narrow, relu) |
                                     ToNarrow(Decode(in.v[0] >> 16 & 0xffff, reference::kBF16), narrow, relu)
                                         << narrow.bits;
                            }));
    }
    for (const Wider& kind : kinds) {
      const std::string text = "cvt" + kind.suffix + ".bf16x2." + narrow.name + " %d0, ";
      const std::string scale = kind.scaled ? ", %s1;" : ";";
      std::vector<std::string_view> sources{"b16"};
      if (kind.scaled) sources.push_back("b16");
      cases.push_back(Exact(WithByte(narrow, text, scale, false), "bf16x2", sources, [&narrow, kind](const Values& in) {
        const auto lane = [&](std::uint64_t code, std::uint64_t scale) -> std::uint64_t {
          if (narrow.name == "e2m3x2" || narrow.name == "e3m2x2") code &= 0x3f;
          const bool is_nan =
              (narrow.name == "e4m3x2" && (code & 0x7f) == 0x7f) || std::isnan(Decode(code, narrow.format));
          if (is_nan || (kind.scaled && scale == 0xff)) return 0x7fff;
          double x = Decode(code, narrow.format);
          if (kind.relu && std::signbit(x)) return 0;
          if (kind.scaled) x = std::ldexp(x, static_cast<int>(scale) - 127);
          const std::uint64_t largest = kind.satfinite ? 0x7f7f : 0x7f80, sign = std::signbit(x) ? 0x8000 : 0;
          if (std::isinf(x) || std::fabs(x) >= 0x1.ffp127) return sign | largest;
          return reference::Round(Quad(x), std::signbit(x), reference::kBF16, Mode::kNearest);
        };
        const std::uint64_t mask = (1u << narrow.bits) - 1;
        return lane(in.v[0] & mask, in.v[1] & 0xff) | lane(in.v[0] >> narrow.bits & mask, in.v[1] >> 8 & 0xff) << 16;
      }));
    }
  }
}

// Bytes in two's complement that count 64ths: ISA 5.2.4. A scale divides on the way there and multiplies on the way
// back.
void AddFixed(std::vector<InstructionCase>& cases) {
  const auto encode = [](double x, std::uint64_t scale, bool relu) -> std::uint64_t {
    if (std::isnan(x) || scale == 0xff) return 0x7f;
    if (relu && std::signbit(x)) x = 0;
    const double places = std::nearbyint(std::clamp(std::ldexp(x, 6 + 127 - static_cast<int>(scale)), -128.0, 127.0));
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(places)) & 0xff;
  };
  const auto decode = [](std::uint64_t code, std::uint64_t scale, bool relu, bool satfinite) -> std::uint64_t {
    if (scale == 0xff) return 0x7fff;
    double x = std::ldexp(static_cast<std::int8_t>(code), static_cast<int>(scale) - 127 - 6);
    if (relu && std::signbit(x)) x = 0;
    const std::uint64_t sign = std::signbit(x) ? 0x8000 : 0;
    if (std::fabs(x) >= 0x1.ffp127) return sign | (satfinite ? 0x7f7f : 0x7f80);
    return reference::Round(Quad(x), std::signbit(x), reference::kBF16, Mode::kNearest);
  };
  for (const bool scaled : {false, true}) {
    const std::string word = scaled ? ".scaled::n2::ue8m0" : "";
    for (const bool relu : {false, true}) {
      const std::string suffix = (relu ? ".relu" : "") + word;
      const auto with_scale = [&](std::vector<std::string_view> sources) {
        if (scaled) sources.push_back("b16");
        return sources;
      };
      const auto scale_of = [=](std::uint64_t both, unsigned lane) { return scaled ? both >> 8 * lane & 0xff : 127; };
      cases.push_back(Exact("cvt.rn.satfinite" + suffix + ".s2f6x2.f32 %d0, %s0, %s1" + (scaled ? ", %s2;" : ";"),
                            "b16", with_scale({"f32", "f32"}), [=](const Values& in) {
                              return encode(static_cast<double>(in.f32(1)), scale_of(in.v[2], 0), relu) |
                                     encode(static_cast<double>(in.f32(0)), scale_of(in.v[2], 1), relu) << 8;
                            }));
      cases.push_back(
          Exact("cvt.rn.satfinite" + suffix + ".s2f6x2.bf16x2 %d0, %s0" + (scaled ? ", %s1;" : ";"), "b16",
                with_scale({"bf16x2"}), [=](const Values& in) {
                  return encode(Decode(in.v[0] & 0xffff, reference::kBF16), scale_of(in.v[1], 0), relu) |
                         encode(Decode(in.v[0] >> 16 & 0xffff, reference::kBF16), scale_of(in.v[1], 1), relu) << 8;
                }));
      for (const bool satfinite : {false, true}) {
        cases.push_back(Exact(std::string("cvt.rn") + (satfinite ? ".satfinite" : "") + suffix +
                                  ".bf16x2.s2f6x2 %d0, %s0" + (scaled ? ", %s1;" : ";"),
                              "bf16x2", with_scale({"b16"}), [=](const Values& in) {
                                return decode(in.v[0] & 0xff, scale_of(in.v[1], 0), relu, satfinite) |
                                       decode(in.v[0] >> 8 & 0xff, scale_of(in.v[1], 1), relu, satfinite) << 16;
                              }));
      }
    }
  }
}

// Powers of two without sign: exponent of the next one below (.rz) or above (.rp).
void AddScales(std::vector<InstructionCase>& cases) {
  for (const bool up : {false, true}) {
    for (const bool saturate : {false, true}) {
      auto code = [=](double x) -> std::uint64_t {
        x = std::fabs(x);
        if (std::isnan(x)) return 0xff;
        const int largest = saturate ? 254 : 255;
        if (std::isinf(x)) return static_cast<std::uint64_t>(largest);
        if (x == 0) return 0;
        int exponent = std::ilogb(x);
        if (up && std::ldexp(1.0, exponent) < x) ++exponent;
        return static_cast<std::uint64_t>(std::clamp(exponent + 127, 0, largest));
      };
      const std::string suffix = std::string(up ? ".rp" : ".rz") + (saturate ? ".satfinite" : "");
      cases.push_back(
          Exact("cvt" + suffix + ".ue8m0x2.f32 %d0, %s0, %s1;", "b16", {"f32", "f32"}, [=](const Values& in) {
            return code(static_cast<double>(in.f32(1))) | code(static_cast<double>(in.f32(0))) << 8;
          }));
      cases.push_back(Exact("cvt" + suffix + ".ue8m0x2.bf16x2 %d0, %s0;", "b16", {"bf16x2"}, [=](const Values& in) {
        return code(Decode(in.v[0] & 0xffff, reference::kBF16)) | code(Decode(in.v[0] >> 16 & 0xffff, reference::kBF16))
                                                                      << 8;
      }));
    }
  }
  cases.push_back(Exact("cvt.rn.bf16x2.ue8m0x2 %d0, %s0;", "bf16x2", {"b16"}, [](const Values& in) {
    auto lane = [](std::uint64_t code) -> std::uint64_t {
      if (code == 0xff) return 0x7fff;
      return reference::Round(reference::PowerOf2(static_cast<int>(code) - 127), false, reference::kBF16,
                              Mode::kNearest);
    };
    return lane(in.v[0] & 0xff) | lane(in.v[0] >> 8 & 0xff) << 16;
  }));
}

void AddPack(std::vector<InstructionCase>& cases) {
  struct Kind {
    std::string type;
    unsigned bits;
    bool is_signed, with_c;
  };
  for (const Kind& kind : {Kind{"u16", 16, false, false}, Kind{"s16", 16, true, false}, Kind{"u8", 8, false, true},
                           Kind{"s8", 8, true, true}, Kind{"u4", 4, false, true}, Kind{"s4", 4, true, true},
                           Kind{"u2", 2, false, true}, Kind{"s2", 2, true, true}}) {
    auto pack = [=](const Values& in) {
      auto lane = [&](std::int64_t x) {
        const std::int64_t high = (std::int64_t{1} << (kind.bits - (kind.is_signed ? 1 : 0))) - 1;
        const std::int64_t low = kind.is_signed ? -(std::int64_t{1} << (kind.bits - 1)) : 0;
        return static_cast<std::uint64_t>(std::clamp(x, low, high)) & ((std::uint64_t{1} << kind.bits) - 1);
      };
      return lane(in.s32(0)) << kind.bits | lane(in.s32(1)) | (kind.with_c ? in.v[2] << (2 * kind.bits) : 0);
    };
    if (!kind.with_c) {
      cases.push_back(Exact("cvt.pack.sat." + kind.type + ".s32 %d0, %s0, %s1;", "b32", {"s32", "s32"}, pack));
    } else {
      cases.push_back(
          Exact("cvt.pack.sat." + kind.type + ".s32.b32 %d0, %s0, %s1, %s2;", "b32", {"s32", "s32", "b32"}, pack));
    }
  }
}

/// Four numbers in 16 or 32 bits.
struct Four {
  std::string name;
  Format format;
  unsigned stride, bits;
  bool is_scale = false;

  std::string_view register_type() const { return stride == 4 ? "b16" : "b32"; }
  double operator()(std::uint64_t all, unsigned i) const {
    const std::uint64_t code = all >> (i * stride) & ((1u << bits) - 1);
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    if (is_scale) return code == 0xff ? kNaN : std::ldexp(1.0, static_cast<int>(code) - 127);
    return name == "e4m3x4" && (code & 0x7f) == 0x7f ? kNaN : Decode(code, format);
  }
};
const Four kFours[] = {{"e4m3x4", reference::kE4M3, 8, 8},       {"e5m2x4", reference::kE5M2, 8, 8},
                       {"e2m3x4", reference::kE2M3, 8, 6},       {"e3m2x4", reference::kE3M2, 8, 6},
                       {"e2m1x4", reference::kE2M1, 4, 4},       {"e2m1p4x4", reference::kE2M1, 8, 4},
                       {"ue8m0x4", reference::kE4M3, 8, 8, true}};

// A number that is known as `value` and, where it is zero, infinite or none, as `special`.
std::uint64_t ToEight(Quad value, double special, const Four& to, bool satfinite) {
  const bool is_e5m2 = to.format.has_infinity, negative = std::signbit(special);
  const std::uint64_t sign = negative ? 0x80 : 0, largest = is_e5m2 ? 0x7b : 0x7e;
  if (std::isnan(special)) return 0x7f;
  const Quad magnitude = value < 0 ? -value : value, half_beyond = is_e5m2 ? Quad(61440) : Quad(464);
  const bool to_even_beyond = is_e5m2;  // the largest number is odd in e5m2 and even in e4m3
  if (std::isinf(special) || magnitude > half_beyond || (magnitude == half_beyond && to_even_beyond))
    return satfinite ? sign | largest : is_e5m2 ? sign | 0x7c : 0x7f;
  return reference::Round(value, negative, to.format, Mode::kNearest);
}

std::uint64_t EachOfFour(const std::function<std::uint64_t(unsigned)>& one) {
  std::uint64_t all = 0;
  for (unsigned i = 0; i < 4; ++i) all |= one(i) << 8 * i;
  return all;
}

void AddFourSums(std::vector<InstructionCase>& cases) {
  for (const Four& to : {kFours[0], kFours[1]}) {
    for (const Four& a : kFours) {
      for (const bool subtracts : {false, true}) {
        const bool satfinite = subtracts != (a.stride == 4);
        const std::string name = std::string(subtracts ? "sub" : "add") + (satfinite ? ".rn.satfinite." : ".");
        cases.push_back(Exact(name + to.name + "." + a.name + " %d0, %s0, %s1;", "b32", {a.register_type(), "b32"},
                              [=](const Values& in) {
                                return EachOfFour([&](unsigned i) {
                                  const double x = a(in.v[0], i), y = subtracts ? -to(in.v[1], i) : to(in.v[1], i);
                                  return ToEight(reference::StickySum(Quad(x), Quad(y)), x + y, to, satfinite);
                                });
                              }));
      }
    }
  }
}

// Each format with itself and two others.
void AddFourProducts(std::vector<InstructionCase>& cases) {
  for (std::size_t first = 0; first < std::size(kFours); ++first) {
    for (const std::size_t step : {0, 1, 3}) {
      const Four a = kFours[first], b = kFours[(first + step) % std::size(kFours)], to = kFours[(first + step / 3) % 2];
      const bool satfinite = step == 1;
      const std::string suffix =
          std::string(satfinite ? ".satfinite.rn." : ".") + to.name + "." + a.name + "." + b.name;
      cases.push_back(Exact("mul" + suffix + " %d0, %s0, %s1;", "b32", {a.register_type(), b.register_type()},
                            [=](const Values& in) {
                              return EachOfFour([&](unsigned i) {
                                const double x = a(in.v[0], i), y = b(in.v[1], i);
                                return ToEight(Quad(x) * Quad(y), x * y, to, satfinite);
                              });
                            }));
      cases.push_back(Exact("fma" + suffix + " %d0, %s0, %s1, %s2;", "b32",
                            {a.register_type(), b.register_type(), "b32"}, [=](const Values& in) {
                              return EachOfFour([&](unsigned i) {
                                const double x = a(in.v[0], i), y = b(in.v[1], i), z = to(in.v[2], i);
                                return ToEight(reference::StickySum(Quad(x) * Quad(y), Quad(z)), x * y + z, to,
                                               satfinite);
                              });
                            }));
    }
  }
}

}  // namespace

std::vector<InstructionCase> PackedConvertCases() {
  std::vector<InstructionCase> cases;
  AddHalfPairs(cases);
  AddRandomHalves(cases);
  AddTf32(cases);
  AddNarrow(cases);
  AddNarrowBFloats(cases);
  AddFixed(cases);
  AddScales(cases);
  AddPack(cases);
  AddFourSums(cases);
  AddFourProducts(cases);
  return cases;
}

}  // namespace gridloom::exec
