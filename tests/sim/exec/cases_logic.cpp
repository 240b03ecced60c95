// Logic, shifts, bit fields and byte permutation (PTX ISA, 9.7.1.14 and up, 9.7.8, 9.7.9.7), after the manual's own
// pseudo-code.
#include <algorithm>

#include "tests/sim/exec/instruction_case.h"

namespace gridloom::exec {
namespace {

void AddLogic(std::vector<InstructionCase>& cases) {
  for (const std::string_view type : {"b16", "b32", "b64", "pred"}) {
    const std::string suffix = "." + std::string(type);
    cases.push_back(Exact("and" + suffix + " %d0, %s0, %s1;", type, {type, type},
                          [](const Values& in) { return in.v[0] & in.v[1]; }));
    cases.push_back(Exact("or" + suffix + " %d0, %s0, %s1;", type, {type, type},
                          [](const Values& in) { return in.v[0] | in.v[1]; }));
    cases.push_back(Exact("xor" + suffix + " %d0, %s0, %s1;", type, {type, type},
                          [](const Values& in) { return in.v[0] ^ in.v[1]; }));
    cases.push_back(Exact("not" + suffix + " %d0, %s0;", type, {type}, [](const Values& in) { return ~in.v[0]; }));
    if (type != "pred")
      cases.push_back(Exact("cnot" + suffix + " %d0, %s0;", type, {type},
                            [](const Values& in) { return std::uint64_t{in.v[0] == 0}; }));
  }
}

void AddShifts(std::vector<InstructionCase>& cases) {
  for (const unsigned bits : {16u, 32u, 64u}) {
    const std::string width = std::to_string(bits);
    const std::string_view type = bits == 16 ? "b16" : bits == 32 ? "b32" : "b64";
    cases.push_back(Exact("shl.b" + width + " %d0, %s0, %s1;", type, {type, "u32"},
                          [=](const Values& in) { return in.u32(1) >= bits ? 0 : in.v[0] << in.u32(1); }));
    for (const std::string sort : {"u", "b"}) {
      cases.push_back(Exact("shr." + sort + width + " %d0, %s0, %s1;", type, {type, "u32"},
                            [=](const Values& in) { return in.u32(1) >= bits ? 0 : in.v[0] >> in.u32(1); }));
    }
    cases.push_back(Exact("shr.s" + width + " %d0, %s0, %s1;", type, {type, "u32"}, [=](const Values& in) {
      const std::int64_t a = static_cast<std::int64_t>(in.v[0] << (64 - bits)) >> (64 - bits);
      return static_cast<std::uint64_t>(a >> std::min(in.u32(1), 63u));
    }));
  }
  for (const bool left : {true, false}) {
    for (const bool clamp : {true, false}) {
      cases.push_back(
          Exact(std::string("shf.") + (left ? "l" : "r") + (clamp ? ".clamp" : ".wrap") + ".b32 %d0, %s0, %s1, %s2;",
                "b32", {"b32", "b32", "u32"}, [=](const Values& in) {
                  const std::uint32_t n = clamp ? std::min(in.u32(2), 32u) : in.u32(2) & 31;
                  const std::uint64_t both = in.v[1] << 32 | in.v[0];
                  return left ? (n == 32 ? in.v[0] : both << n >> 32) : (both >> n) & 0xffffffff;
                }));
    }
  }
}

void AddLop3(std::vector<InstructionCase>& cases) {
  auto lut = [](std::uint32_t a, std::uint32_t b, std::uint32_t c, unsigned table) {
    std::uint32_t out = 0;
    for (int i = 0; i < 32; ++i) out |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1u) << i;
    return out;
  };
  for (const unsigned table : {0u, 0x80u, 0xfeu, 0x96u, 0xe8u, 0xcau, 0x1au, 0x78u, 0x6au, 0x2du, 0xffu, 0xf0u, 0xccu,
                               0xaau, 0x3cu, 0xb8u, 0xd2u, 0x47u}) {
    cases.push_back(
        Exact("lop3.b32 %d0, %s0, %s1, %s2, " + std::to_string(table) + ";", "b32", {"b32", "b32", "b32"},
              [=](const Values& in) { return std::uint64_t{lut(in.u32(0), in.u32(1), in.u32(2), table)}; }));
  }
  cases.push_back(Exact2("lop3.or.b32 %d0|%d1, %s0, %s1, %s2, 0x3F, %s3;", {"b32", "pred"},
                         {"b32", "b32", "b32", "pred"}, [=](const Values& in, Values& out) {
                           out.v[0] = lut(in.u32(0), in.u32(1), in.u32(2), 0x3f);
                           out.v[1] = (out.v[0] != 0) || in.pred(3);
                         }));
}

void AddPrmt(std::vector<InstructionCase>& cases) {
  struct Mode {
    std::string name;
    int index[4][4];  ///< [selector][result byte]
  };
  static const Mode kModes[] = {{".f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
                                {".b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
                                {".rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
                                {".ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
                                {".ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
                                {".rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}}};
  for (const Mode& mode : kModes) {
    cases.push_back(
        Exact("prmt.b32" + mode.name + " %d0, %s0, %s1, %s2;", "b32", {"b32", "b32", "b32"}, [&mode](const Values& in) {
          const std::uint64_t bytes = in.v[1] << 32 | in.v[0];
          std::uint64_t out = 0;
          for (int i = 0; i < 4; ++i) out |= (bytes >> (8 * mode.index[in.v[2] & 3][i]) & 0xff) << (8 * i);
          return out;
        }));
  }
  auto generic = [](const Values& in, std::uint32_t selector) {
    const std::uint64_t bytes = in.v[1] << 32 | in.v[0];
    std::uint64_t out = 0;
    for (int i = 0; i < 4; ++i) {
      const unsigned nibble = selector >> (4 * i) & 15;
      std::uint64_t byte = bytes >> (8 * (nibble & 7)) & 0xff;
      if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      out |= byte << (8 * i);
    }
    return out;
  };
  cases.push_back(Exact("prmt.b32 %d0, %s0, %s1, %s2;", "b32", {"b32", "b32", "b32"},
                        [=](const Values& in) { return generic(in, in.u32(2)); }));
  cases.push_back(Exact("prmt.b32 %d0, %s0, %s1, 0x9B5e;", "b32", {"b32", "b32"},
                        [=](const Values& in) { return generic(in, 0x9b5e); }));
}

void AddCounts(std::vector<InstructionCase>& cases) {
  for (const unsigned bits : {32u, 64u}) {
    const std::string_view type = bits == 32 ? "b32" : "b64";
    const std::string width = std::to_string(bits);
    cases.push_back(Exact("popc.b" + width + " %d0, %s0;", "u32", {type},
                          [](const Values& in) { return static_cast<std::uint64_t>(std::popcount(in.v[0])); }));
    cases.push_back(Exact("clz.b" + width + " %d0, %s0;", "u32", {type}, [=](const Values& in) {
      return static_cast<std::uint64_t>(std::countl_zero(in.v[0])) - (64 - bits);
    }));
    cases.push_back(Exact("brev.b" + width + " %d0, %s0;", type, {type}, [=](const Values& in) {
      std::uint64_t out = 0;
      for (unsigned i = 0; i < bits; ++i) out |= (in.v[0] >> i & 1) << (bits - 1 - i);
      return out;
    }));
    for (const bool is_signed : {false, true}) {
      for (const bool shift : {false, true}) {
        cases.push_back(
            Exact(std::string("bfind") + (shift ? ".shiftamt" : "") + (is_signed ? ".s" : ".u") + width + " %d0, %s0;",
                  "u32", {type}, [=](const Values& in) {
                    std::uint64_t a = in.v[0];
                    if (is_signed && (a >> (bits - 1) & 1) != 0) a = ~a & (bits == 64 ? ~std::uint64_t{0} : 0xffffffff);
                    if (a == 0) return ~std::uint64_t{0};
                    const std::uint64_t place = 63 - static_cast<std::uint64_t>(std::countl_zero(a));
                    return shift ? bits - 1 - place : place;
                  }));
      }
    }
  }
  cases.push_back(Exact("and.b32 %s1, %s1, 31; and.b32 %s2, %s2, 63; sub.s32 %s2, %s2, 32; fns.b32 %d0, %s0, %s1, %s2;",
                        "b32", {"b32", "u32", "s32"}, [](const Values& in) {
                          const std::uint32_t mask = in.u32(0);
                          const int base = static_cast<int>(in.u32(1) & 31),
                                    offset = static_cast<int>(in.u32(2) & 63) - 32;
                          if (offset == 0)
                            return (mask >> base & 1) != 0 ? static_cast<std::uint64_t>(base) : ~std::uint64_t{0};
                          int count = std::abs(offset) - 1;
                          const int step = offset > 0 ? 1 : -1;
                          for (int position = base; position >= 0 && position < 32; position += step) {
                            if ((mask >> position & 1) != 0 && count-- == 0)
                              return static_cast<std::uint64_t>(position);
                          }
                          return ~std::uint64_t{0};
                        }));
}

std::uint64_t Bfe(std::uint64_t a, unsigned position, unsigned length, unsigned bits, bool is_signed) {
  const unsigned top = bits - 1;
  const std::uint64_t sign = !is_signed || length == 0 ? 0 : a >> std::min(position + length - 1, top) & 1;
  std::uint64_t out = 0;
  for (unsigned i = 0; i <= top; ++i) out |= (i < length && position + i <= top ? a >> (position + i) & 1 : sign) << i;
  return out;
}

void AddFields(std::vector<InstructionCase>& cases) {
  for (const unsigned bits : {32u, 64u}) {
    const std::string_view type = bits == 32 ? "b32" : "b64";
    const std::string width = std::to_string(bits);
    for (const bool is_signed : {false, true}) {
      cases.push_back(Exact(
          std::string("bfe.") + (is_signed ? "s" : "u") + width + " %d0, %s0, %s1, %s2;", type, {type, "u32", "u32"},
          [=](const Values& in) { return Bfe(in.v[0], in.u32(1) & 255, in.u32(2) & 255, bits, is_signed); }));
    }
    cases.push_back(
        Exact("bfi.b" + width + " %d0, %s0, %s1, %s2, %s3;", type, {type, type, "u32", "u32"}, [=](const Values& in) {
          const unsigned position = in.u32(2) & 255, length = in.u32(3) & 255;
          std::uint64_t out = in.v[1];
          for (unsigned i = 0; i < length && position + i < bits; ++i) {
            const std::uint64_t bit = std::uint64_t{1} << (position + i);
            out = (out & ~bit) | ((in.v[0] >> i & 1) != 0 ? bit : 0);
          }
          return out;
        }));
  }
  for (const bool clamp : {false, true}) {
    const std::string mode = clamp ? ".clamp" : ".wrap";
    for (const bool is_signed : {false, true}) {
      cases.push_back(Exact("szext" + mode + (is_signed ? ".s32" : ".u32") + " %d0, %s0, %s1;", "b32", {"b32", "u32"},
                            [=](const Values& in) {
                              const std::uint32_t a = in.u32(0), b = in.u32(1), b1 = b & 31;
                              const bool too_large = b >= 32 && clamp;
                              const std::uint32_t mask = too_large ? 0 : ~0u << b1;
                              const bool sign = b1 != 0 && !too_large && is_signed && (a >> ((b1 - 1) & 31) & 1) != 0;
                              return std::uint64_t{(a & ~mask) | (sign ? mask : 0)};
                            }));
    }
    cases.push_back(Exact("bmsk" + mode + ".b32 %d0, %s0, %s1;", "b32", {"u32", "u32"}, [=](const Values& in) {
      const std::uint32_t a = in.u32(0), b = in.u32(1), a1 = a & 31, b1 = b & 31, sum = a1 + b1;
      std::uint32_t mask0 = ~0u << a1, mask1 = sum >= 32 ? 0 : ~0u << sum;
      bool overflow = sum >= 32;
      if (clamp && a >= 32) overflow = true, mask0 = 0;
      if (clamp && b >= 32) overflow = true;
      if (overflow) mask1 = 0;
      else if (b1 == 0) mask1 = ~0u;
      return std::uint64_t{mask0 & ~mask1};
    }));
  }
}

}  // namespace

std::vector<InstructionCase> LogicCases() {
  std::vector<InstructionCase> cases;
  AddLogic(cases);
  AddShifts(cases);
  AddLop3(cases);
  AddPrmt(cases);
  AddCounts(cases);
  AddFields(cases);
  return cases;
}

}  // namespace gridloom::exec
