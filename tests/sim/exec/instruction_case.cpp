#include "tests/sim/exec/instruction_case.h"

#include <cmath>
#include <random>
#include <sstream>

namespace gridloom::exec {
namespace {

struct Edges {
  std::string_view prefix;
  std::vector<std::uint64_t> values;
};

const std::vector<std::uint64_t>& EdgesOf(std::string_view type) {
  static const std::vector<std::uint64_t> kPred{0, 1};
  static const std::vector<std::uint64_t> kInt8{0, 1, 2, 3, 7, 8, 31, 0x7f, 0x80, 0x81, 0xfe, 0xff};
  static const std::vector<std::uint64_t> kInt16{0,    1,    2,     3,      15,     16,     17,     0x7f,
                                                 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
  static const std::vector<std::uint64_t> kInt32{
      0,          1,          2,          3,          5,          7,          8,          31,
      32,         33,         63,         64,         255,        256,        0x7fff,     0x8000,
      0xffff,     0x10000,    0x7fffff,   0x800000,   0xffffff,   0x7ffffffe, 0x7fffffff, 0x80000000,
      0x80000001, 0xaaaaaaaa, 0x7f80ff01, 0xfffffff0, 0xfffffffe, 0xffffffff};
  static const std::vector<std::uint64_t> kInt64{0,
                                                 1,
                                                 2,
                                                 3,
                                                 7,
                                                 31,
                                                 32,
                                                 63,
                                                 64,
                                                 65,
                                                 0xffff,
                                                 0x7fffffff,
                                                 0x80000000,
                                                 0xffffffff,
                                                 0x100000000,
                                                 0x7fffffffffffffff,
                                                 0x8000000000000000,
                                                 0x8000000000000001,
                                                 0xfffffffffffffffe,
                                                 0xffffffffffffffff,
                                                 0xaaaaaaaaaaaaaaaa,
                                                 0x123456789abcdef0,
                                                 0xffffffff80000000,
                                                 0x001fffffffffffff,
                                                 0x0020000000000001,
                                                 0x7ffffffffffffdff,
                                                 0x8000000000000400};
  static const std::vector<std::uint64_t> kFloat{
      0,          0x80000000, 1,          0x80000001, 2,          0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
      0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40000000,
      0x40490fdb, 0xc0490fdb, 0x4b000000, 0x4b000001, 0x4affffff, 0x4f000000, 0xcf000000, 0x4effffff, 0x4f800000,
      0x4f7fffff, 0x5f000000, 0xdf000000, 0x5f800000, 0x7e800000, 0x7f000000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
      0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x33800000, 0x33000000, 0x477fe000, 0x477ff000, 0x477fefff,
      0x38800000, 0x387fffff, 0x38000000, 0x33000001, 0x437f0000, 0x42fe0000, 0x43000000, 0xc3000000, 0x40200000,
      0xc0200000, 0x3e99999a, 0x447ff000, 0x7e967699};
  static const std::vector<std::uint64_t> kDouble{0,
                                                  0x8000000000000000,
                                                  1,
                                                  0x8000000000000001,
                                                  0x000fffffffffffff,
                                                  0x0010000000000000,
                                                  0x8010000000000000,
                                                  0x3ff0000000000000,
                                                  0xbff0000000000000,
                                                  0x3ff0000000000001,
                                                  0x3fefffffffffffff,
                                                  0x3fe0000000000000,
                                                  0xbfe0000000000000,
                                                  0x3ff8000000000000,
                                                  0x4004000000000000,
                                                  0xc004000000000000,
                                                  0x41dfffffffc00000,
                                                  0x41e0000000000000,
                                                  0xc1e0000000000000,
                                                  0xc1e0000000200000,
                                                  0x41efffffffe00000,
                                                  0x41f0000000000000,
                                                  0x43e0000000000000,
                                                  0xc3e0000000000000,
                                                  0x43dfffffffffffff,
                                                  0x43f0000000000000,
                                                  0x7fefffffffffffff,
                                                  0xffefffffffffffff,
                                                  0x7ff0000000000000,
                                                  0xfff0000000000000,
                                                  0x7ff8000000000000,
                                                  0x47efffffe0000000,
                                                  0x47effffff0000000,
                                                  0x47efffffefffffff,
                                                  0x36a0000000000000,
                                                  0x3690000000000000,
                                                  0x3690000000000001,
                                                  0x380fffffc0000000,
                                                  0x380ffffff0000000,
                                                  0x3ff0000010000000,
                                                  0x3ff0000030000000,
                                                  0x40effc0000000000,
                                                  0x40effe0000000000,
                                                  0x40effdffffffffff,
                                                  0x3e60000000000001,
                                                  0x4330000000000001};
  static const std::vector<std::uint64_t> kHalf{0,      0x8000, 1,      0x8001, 2,      0x3ff,  0x83ff, 0x400,  0x8400,
                                                0x401,  0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x3800, 0x4000, 0x6400, 0x7bff,
                                                0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0x5bf8, 0x5800};
  static const std::vector<std::uint64_t> kBFloat{0,      0x8000, 1,      0x8001, 0x7f,   0x80ff, 0x80,   0x8080,
                                                  0x3f80, 0xbf80, 0x3f81, 0x3f7f, 0x3f00, 0x4000, 0x4380, 0x7f7f,
                                                  0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7f81, 0x4f00, 0x0101};
  if (type == "pred") return kPred;
  if (type.starts_with("f32")) return kFloat;
  if (type.starts_with("f64")) return kDouble;
  if (type == "f16" || type == "f16x2") return kHalf;
  if (type == "bf16" || type == "bf16x2") return kBFloat;
  switch (TypeBits(type)) {
    case 8: return kInt8;
    case 16: return kInt16;
    case 64: return kInt64;
    default: return kInt32;
  }
}

bool IsPackedHalf(std::string_view type) { return type == "f16x2" || type == "bf16x2"; }

std::uint64_t Mask(std::string_view type) {
  const unsigned bits = TypeBits(type);
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// Random bits, or, for floats, often a number of moderate size.
std::uint64_t RandomValue(std::string_view type, std::mt19937_64& random) {
  const std::uint64_t bits = random();
  const unsigned kind = static_cast<unsigned>(random() % 4);
  if (kind == 0) {
    const auto& edges = EdgesOf(type);
    std::uint64_t value = edges[bits % edges.size()];
    if (IsPackedHalf(type)) value |= edges[(bits >> 32) % edges.size()] << 16;
    return value;
  }
  if (type == "f32" && kind != 1) return (bits & 0x807fffff) | (100 + (bits >> 32) % 56) << 23;
  if (type == "f64" && kind != 1) return (bits & 0x800fffffffffffff) | (990 + (bits >> 55 & 0xff) % 70) << 52;
  if (TypeBits(type) >= 32 && kind == 2) return (bits >> (bits % 61)) & Mask(type);
  return bits & Mask(type);
}

// Bits of the register that holds an expected value: 8-bit results are extended to its 16 bits.
std::uint64_t Wanted(std::string_view type, std::uint64_t value) {
  value &= Mask(type);
  return type == "s8" && (value & 0x80) != 0 ? value | 0xff00 : value;
}

bool IsNaN16(std::uint64_t bits, bool bfloat) {
  const std::uint64_t infinity = bfloat ? 0x7f80 : 0x7c00;
  return (bits & 0x7fff) > infinity;
}

}  // namespace

unsigned TypeBits(std::string_view type) {
  if (type == "pred") return 1;
  if (type == "f16x2" || type == "bf16x2" || type == "f32" || type == "tf32") return 32;
  if (type == "f32x2") return 64;
  if (type.ends_with("x4") || type.ends_with("x2")) return 32;
  return static_cast<unsigned>(std::stoi(std::string(type.substr(type.find_first_of("0123456789")))));
}

bool SameValue(std::string_view type, std::uint64_t got, std::uint64_t wanted) {
  if (got == wanted) return true;
  if (type == "f32") return got == 0x7fffffff && std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(wanted)));
  if (type == "f64") return std::isnan(std::bit_cast<double>(got)) && std::isnan(std::bit_cast<double>(wanted));
  if (type == "f32x2") {
    const auto is_nan = [](std::uint64_t bits) {
      return std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    };
    const auto same = [&](unsigned at) {
      return static_cast<std::uint32_t>(got >> at) == static_cast<std::uint32_t>(wanted >> at) ||
             (is_nan(got >> at) && is_nan(wanted >> at));
    };
    return same(0) && same(32);
  }
  const bool bfloat = type.starts_with("bf16");
  if (type == "f16" || type == "bf16") return got == 0x7fff && IsNaN16(wanted, bfloat);
  if (!IsPackedHalf(type)) return false;
  const std::string_view lane = bfloat ? "bf16" : "f16";
  return SameValue(lane, got & 0xffff, wanted & 0xffff) && SameValue(lane, got >> 16, wanted >> 16);
}

InstructionCase Exact(std::string ptx, std::string_view dst, std::vector<std::string_view> src,
                      std::function<std::uint64_t(const Values&)> expected) {
  auto check = [dst, expected = std::move(expected)](const Values& in, const Values& out, Values& wanted) {
    wanted.v[0] = Wanted(dst, expected(in));
    return SameValue(dst, out.v[0], wanted.v[0]);
  };
  return {std::move(ptx), {dst}, std::move(src), std::move(check)};
}

InstructionCase Exact2(std::string ptx, std::vector<std::string_view> dst, std::vector<std::string_view> src,
                       std::function<void(const Values& in, Values& out)> expected) {
  auto check = [dst, expected = std::move(expected)](const Values& in, const Values& out, Values& wanted) {
    expected(in, wanted);
    bool same = true;
    for (std::size_t i = 0; i < dst.size(); ++i)
      same &= SameValue(dst[i], out.v[i], wanted.v[i] = Wanted(dst[i], wanted.v[i]));
    return same;
  };
  return {std::move(ptx), dst, std::move(src), std::move(check)};
}

InstructionCase Near(std::string ptx, std::vector<std::string_view> src, double ulps, double absolute,
                     std::function<double(const Values&)> expected) {
  auto check = [=](const Values& in, const Values& out, Values& wanted) {
    const double truth = expected(in);
    const float got = out.f32(0);
    wanted.v[0] = Bits(static_cast<float>(truth));
    if (std::isnan(truth)) return out.u32(0) == 0x7fffffff;
    if (std::isinf(static_cast<float>(truth)))
      return static_cast<double>(got) == static_cast<double>(static_cast<float>(truth)) ||
             std::fabs(got) >= 0x1.fffff0p127f;
    const double ulp =
        std::max(std::ldexp(1.0, std::ilogb(static_cast<float>(truth) == 0 ? 0x1p-149 : truth) - 23), 0x1p-149);
    return std::fabs(static_cast<double>(got) - truth) <= std::max(ulps * ulp, absolute);
  };
  return {std::move(ptx), {"f32"}, std::move(src), check};
}

std::vector<Values> InputsOf(const InstructionCase& test, std::size_t count) {
  std::vector<Values> inputs;
  std::mt19937_64 random(20240229);
  // Edges: all pairs of the first two operands, further operands at random.
  const std::size_t n = test.src.size();
  if (n > 0) {
    const auto& first = EdgesOf(test.src[0]);
    const std::size_t seconds = n > 1 ? EdgesOf(test.src[1]).size() : 1;
    for (std::size_t i = 0; i < first.size() * seconds && inputs.size() < count / 2; ++i) {
      Values values;
      for (std::size_t k = 2; k < n; ++k) values.v[k] = RandomValue(test.src[k], random);
      // Walks all pairs in an order that mixes both.
      const std::size_t pair = i * 7919 % (first.size() * seconds);
      values.v[0] = first[pair % first.size()];
      if (n > 1) values.v[1] = EdgesOf(test.src[1])[pair / first.size()];
      for (std::size_t k = 0; k < 2 && k < n; ++k) {
        if (IsPackedHalf(test.src[k])) values.v[k] |= RandomValue("b16", random) << 16;
      }
      inputs.push_back(values);
    }
  }
  while (inputs.size() < count) {
    Values values;
    for (std::size_t k = 0; k < n; ++k) values.v[k] = RandomValue(test.src[k], random);
    inputs.push_back(values);
  }
  return inputs;
}

namespace {

// Registers of 8-bit types do not exist: they are held in 16 bits.
std::string RegisterType(std::string_view type) {
  const unsigned bits = TypeBits(type);
  if (type == "pred") return "pred";
  if (type == "f32" || type == "f64") return std::string(type);
  return "b" + std::to_string(bits < 16 ? 16 : bits);
}

void AppendLoad(std::string& text, const std::string& reg, std::string_view type, std::size_t slot) {
  const std::string address = "[%in+" + std::to_string(slot * 8) + "]";
  if (type == "pred") {
    text += "  ld.global.u32 %t, " + address + ";\n  setp.ne.u32 " + reg + ", %t, 0;\n";
  } else {
    text += "  ld.global." + RegisterType(type) + " " + reg + ", " + address + ";\n";
  }
}

void AppendStore(std::string& text, const std::string& reg, std::string_view type, std::size_t slot) {
  const std::string address = "[%out+" + std::to_string(slot * 8) + "]";
  if (type == "pred") {
    text += "  selp.u32 %t, 1, 0, " + reg + ";\n  st.global.u32 " + address + ", %t;\n";
  } else {
    text += "  st.global." + RegisterType(type) + " " + address + ", " + reg + ";\n";
  }
}

}  // namespace

std::string BatchKernel(const std::vector<InstructionCase>& cases) {
  std::string text =
      ".version 8.7\n.target sm_100a\n.address_size 64\n"
      ".visible .entry batch(.param .u64 in, .param .u64 out, .param .u32 threads)\n{\n"
      "  .reg .b32 %t, %me, %threads, %i; .reg .b64 %in, %out, %in0, %out0, %o;\n"
      "  ld.param.u64 %in0, [in];\n  ld.param.u64 %out0, [out];\n  ld.param.u32 %threads, [threads];\n  mov.u32 %me, "
      "%ctaid.x;\n"
      "  mov.u32 %t, %ntid.x;\n  mov.u32 %i, %tid.x;\n  mad.lo.u32 %me, %me, %t, %i;\n"
      "  .reg .pred %beyond;\n  setp.ge.u32 %beyond, %me, %threads;\n  @%beyond exit;\n";
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const InstructionCase& test = cases[n];
    text += "  {\n";
    for (std::size_t i = 0; i < test.dst.size(); ++i)
      text += "  .reg ." + RegisterType(test.dst[i]) + " %d" + std::to_string(i) + ";\n";
    for (std::size_t i = 0; i < test.src.size(); ++i)
      text += "  .reg ." + RegisterType(test.src[i]) + " %s" + std::to_string(i) + ";\n";
    text += "  mad.lo.u32 %i, %threads, " + std::to_string(n) + ", %me;\n  mul.wide.u32 %o, %i, " +
            std::to_string(sizeof(Values)) + ";\n  add.u64 %in, %in0, %o;\n  add.u64 %out, %out0, %o;\n";
    for (std::size_t i = 0; i < test.src.size(); ++i) AppendLoad(text, "%s" + std::to_string(i), test.src[i], i);
    text += "  " + test.ptx + "\n";
    for (std::size_t i = 0; i < test.dst.size(); ++i) AppendStore(text, "%d" + std::to_string(i), test.dst[i], i);
    text += "  }\n";
  }
  return text + "  ret;\n}\n";
}

std::string Describe(const InstructionCase& test, const Values& in, const Values& out, const Values& wanted) {
  std::ostringstream text;
  text << test.ptx << std::hex << "  in:";
  for (std::size_t i = 0; i < test.src.size(); ++i) text << ' ' << in.v[i];
  text << "  got:";
  for (std::size_t i = 0; i < test.dst.size(); ++i) text << ' ' << out.v[i];
  text << "  wanted:";
  for (std::size_t i = 0; i < test.dst.size(); ++i) text << ' ' << wanted.v[i];
  return text.str();
}

const std::vector<InstructionTable>& InstructionTables() {
  static const std::vector<InstructionTable> kTables{
      {"integer", IntegerCases}, {"logic", LogicCases},
      {"compare", CompareCases}, {"float", FloatCases},
      {"half", HalfCases},       {"approx", ApproxCases},
      {"convert", ConvertCases}, {"packed convert", PackedConvertCases},
      {"video", VideoCases},     {"fused", FusedCases},
  };
  return kTables;
}

}  // namespace gridloom::exec
