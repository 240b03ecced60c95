// Integer arithmetic (PTX ISA, 9.7.1, 9.7.2).
#include <algorithm>
#include <cstdlib>

#include "tests/sim/exec/instruction_case.h"

namespace gridloom::exec {
namespace {

using I128 = __int128;
using U128 = unsigned __int128;

struct IntType {
  std::string_view name;
  unsigned bits;
  bool is_signed;
};
constexpr IntType kTypes[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                              {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

I128 Value(const IntType& type, std::uint64_t bits) {
  if (type.bits < 64) bits &= (std::uint64_t{1} << type.bits) - 1;
  if (!type.is_signed) return static_cast<I128>(bits);
  return static_cast<I128>(static_cast<std::int64_t>(bits << (64 - type.bits)) >> (64 - type.bits));
}

std::uint64_t Cut(I128 value) { return static_cast<std::uint64_t>(value); }

std::string Name(std::string_view op, const IntType& type, std::string_view operands) {
  return std::string(op) + "." + std::string(type.name) + " " + std::string(operands) + ";";
}

void AddBasic(std::vector<InstructionCase>& cases, const IntType& t) {
  const std::vector<std::string_view> two{t.name, t.name}, three{t.name, t.name, t.name};
  auto binary = [&](std::string_view op, auto compute) {
    cases.push_back(Exact(Name(op, t, "%d0, %s0, %s1"), t.name, two, [t, compute](const Values& in) {
      return Cut(compute(Value(t, in.v[0]), Value(t, in.v[1])));
    }));
  };
  binary("add", [](I128 a, I128 b) { return a + b; });
  binary("sub", [](I128 a, I128 b) { return a - b; });
  binary("min", [](I128 a, I128 b) { return std::min(a, b); });
  binary("max", [](I128 a, I128 b) { return std::max(a, b); });
  binary("mul.lo", [](I128 a, I128 b) { return static_cast<I128>(static_cast<U128>(a) * static_cast<U128>(b)); });
  binary("mul.hi", [t](I128 a, I128 b) {
    if (t.is_signed) return (a * b) >> t.bits;
    return static_cast<I128>((static_cast<U128>(a) * static_cast<U128>(b)) >> t.bits);
  });
  binary("div", [](I128 a, I128 b) -> I128 { return b == 0 ? -1 : a / b; });
  binary("rem", [](I128 a, I128 b) -> I128 { return b == 0 ? -1 : a % b; });
  auto ternary = [&](std::string_view op, auto compute) {
    cases.push_back(Exact(Name(op, t, "%d0, %s0, %s1, %s2"), t.name, three, [t, compute](const Values& in) {
      return Cut(compute(Value(t, in.v[0]), Value(t, in.v[1]), Value(t, in.v[2])));
    }));
  };
  ternary("mad.lo", [](I128 a, I128 b, I128 c) {
    return static_cast<I128>(static_cast<U128>(a) * static_cast<U128>(b) + static_cast<U128>(c));
  });
  ternary("mad.hi", [t](I128 a, I128 b, I128 c) {
    const U128 product = static_cast<U128>(a) * static_cast<U128>(b);
    return (t.is_signed ? (static_cast<I128>(product) >> t.bits) : static_cast<I128>(product >> t.bits)) + c;
  });
  ternary("sad", [](I128 a, I128 b, I128 c) { return (a > b ? a - b : b - a) + c; });
}

void AddWide(std::vector<InstructionCase>& cases, const IntType& t, std::string_view wide) {
  cases.push_back(Exact(Name("mul.wide", t, "%d0, %s0, %s1"), wide, {t.name, t.name},
                        [t](const Values& in) { return Cut(Value(t, in.v[0]) * Value(t, in.v[1])); }));
  cases.push_back(Exact(Name("mad.wide", t, "%d0, %s0, %s1, %s2"), wide, {t.name, t.name, wide},
                        [t](const Values& in) { return Cut(Value(t, in.v[0]) * Value(t, in.v[1])) + in.v[2]; }));
}

void AddUnary(std::vector<InstructionCase>& cases, const IntType& t) {
  if (!t.is_signed) return;
  cases.push_back(Exact(Name("abs", t, "%d0, %s0"), t.name, {t.name}, [t](const Values& in) {
    const I128 a = Value(t, in.v[0]);
    return Cut(a < 0 ? -a : a);
  }));
  cases.push_back(
      Exact(Name("neg", t, "%d0, %s0"), t.name, {t.name}, [t](const Values& in) { return Cut(-Value(t, in.v[0])); }));
}

// Carry chains: low and high half of a sum, difference or product of two-word numbers.
void AddCarry(std::vector<InstructionCase>& cases) {
  auto chain = [&](std::string ptx, std::string_view type, auto compute) {
    cases.push_back(Exact2(std::move(ptx), {type, type}, {type, type, type, type}, compute));
  };
  chain("add.cc.u32 %d0, %s0, %s2; addc.u32 %d1, %s1, %s3;", "u32", [](const Values& in, Values& out) {
    const std::uint64_t a = in.v[0] | in.v[1] << 32, b = in.v[2] | in.v[3] << 32;
    out.v[0] = (a + b) & 0xffffffff, out.v[1] = (a + b) >> 32;
  });
  chain("sub.cc.u32 %d0, %s0, %s2; subc.u32 %d1, %s1, %s3;", "u32", [](const Values& in, Values& out) {
    const std::uint64_t a = in.v[0] | in.v[1] << 32, b = in.v[2] | in.v[3] << 32;
    out.v[0] = (a - b) & 0xffffffff, out.v[1] = (a - b) >> 32;
  });
  chain("add.cc.u64 %d0, %s0, %s2; addc.cc.u64 %d1, %s1, %s3; addc.u64 %d0, %d0, 0;", "u64",
        [](const Values& in, Values& out) {
          const U128 low = static_cast<U128>(in.v[0]) + in.v[2];
          const U128 high = static_cast<U128>(in.v[1]) + in.v[3] + static_cast<std::uint64_t>(low >> 64);
          out.v[0] = static_cast<std::uint64_t>(low) + static_cast<std::uint64_t>(high >> 64);
          out.v[1] = static_cast<std::uint64_t>(high);
        });
  chain("sub.cc.s64 %d0, %s0, %s2; subc.cc.s64 %d1, %s1, %s3; subc.s64 %d0, %d0, 0;", "s64",
        [](const Values& in, Values& out) {
          const U128 low = static_cast<U128>(in.v[0]) - in.v[2];
          const U128 high = static_cast<U128>(in.v[1]) - in.v[3] - static_cast<std::uint64_t>(low >> 64 & 1);
          out.v[0] = static_cast<std::uint64_t>(low) - static_cast<std::uint64_t>(high >> 64 & 1);
          out.v[1] = static_cast<std::uint64_t>(high);
        });
  chain("mad.lo.cc.u32 %d0, %s0, %s1, %s2; madc.hi.u32 %d1, %s0, %s1, %s3;", "u32", [](const Values& in, Values& out) {
    const std::uint64_t sum = in.v[0] * in.v[1] + (in.v[2] | in.v[3] << 32);
    out.v[0] = sum & 0xffffffff, out.v[1] = sum >> 32;
  });
  chain("mad.lo.cc.u64 %d0, %s0, %s1, %s2; madc.hi.cc.u64 %d1, %s0, %s1, %s3;", "u64",
        [](const Values& in, Values& out) {
          const U128 sum = static_cast<U128>(in.v[0]) * in.v[1] + (static_cast<U128>(in.v[3]) << 64 | in.v[2]);
          out.v[0] = static_cast<std::uint64_t>(sum), out.v[1] = static_cast<std::uint64_t>(sum >> 64);
        });
  // One flag for both: a difference sets it where nothing is borrowed, subc borrows where it is clear.
  chain("sub.cc.u32 %d0, %s0, %s2; addc.u32 %d1, %s1, %s3;", "u32", [](const Values& in, Values& out) {
    out.v[0] = static_cast<std::uint32_t>(in.v[0] - in.v[2]);
    out.v[1] = static_cast<std::uint32_t>(in.v[1] + in.v[3] + (in.u32(0) >= in.u32(2) ? 1 : 0));
  });
  chain("add.cc.u32 %d0, %s0, %s2; subc.u32 %d1, %s1, %s3;", "u32", [](const Values& in, Values& out) {
    out.v[0] = static_cast<std::uint32_t>(in.v[0] + in.v[2]);
    out.v[1] = static_cast<std::uint32_t>(in.v[1] - in.v[3] - (out.v[0] < in.u32(0) ? 0 : 1));
  });
  // A guard that is off leaves the carry alone.
  cases.push_back(Exact(
      "add.cc.u32 %d0, %s0, %s1; @%s2 add.cc.u32 %d0, %s1, %s1; addc.u32 %d0, 0, 0;", "u32", {"u32", "u32", "pred"},
      [](const Values& in) { return (in.v[2] & 1) != 0 ? (in.v[1] + in.v[1]) >> 32 : (in.v[0] + in.v[1]) >> 32; }));
}

std::int64_t Low24(const Values& in, int i, bool is_signed) {
  const std::uint32_t low = in.u32(i) & 0xffffff;
  return is_signed ? static_cast<std::int32_t>(low << 8) >> 8 : static_cast<std::int64_t>(low);
}

void AddMul24(std::vector<InstructionCase>& cases) {
  for (const bool is_signed : {false, true}) {
    const std::string type = is_signed ? "s32" : "u32";
    const std::string_view name = is_signed ? "s32" : "u32";
    cases.push_back(Exact("mul24.lo." + type + " %d0, %s0, %s1;", name, {name, name}, [=](const Values& in) {
      return static_cast<std::uint64_t>(Low24(in, 0, is_signed) * Low24(in, 1, is_signed));
    }));
    cases.push_back(Exact("mul24.hi." + type + " %d0, %s0, %s1;", name, {name, name}, [=](const Values& in) {
      return static_cast<std::uint64_t>(Low24(in, 0, is_signed) * Low24(in, 1, is_signed) >> 16);
    }));
    cases.push_back(Exact("mad24.lo." + type + " %d0, %s0, %s1, %s2;", name, {name, name, name}, [=](const Values& in) {
      return static_cast<std::uint64_t>(Low24(in, 0, is_signed) * Low24(in, 1, is_signed)) + in.v[2];
    }));
    cases.push_back(Exact("mad24.hi." + type + " %d0, %s0, %s1, %s2;", name, {name, name, name}, [=](const Values& in) {
      return static_cast<std::uint64_t>(Low24(in, 0, is_signed) * Low24(in, 1, is_signed) >> 16) + in.v[2];
    }));
  }
  cases.push_back(Exact("mad24.hi.sat.s32 %d0, %s0, %s1, %s2;", "s32", {"s32", "s32", "s32"}, [](const Values& in) {
    const std::int64_t sum =
        static_cast<std::int32_t>(Low24(in, 0, true) * Low24(in, 1, true) >> 16) + static_cast<std::int64_t>(in.s32(2));
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX));
  }));
}

void AddSaturated(std::vector<InstructionCase>& cases) {
  auto clamp = [](std::int64_t value) {
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, INT32_MIN, INT32_MAX));
  };
  const std::vector<std::string_view> two{"s32", "s32"};
  cases.push_back(Exact("add.sat.s32 %d0, %s0, %s1;", "s32", two,
                        [=](const Values& in) { return clamp(std::int64_t{in.s32(0)} + in.s32(1)); }));
  cases.push_back(Exact("sub.sat.s32 %d0, %s0, %s1;", "s32", two,
                        [=](const Values& in) { return clamp(std::int64_t{in.s32(0)} - in.s32(1)); }));
  cases.push_back(Exact("mad.hi.sat.s32 %d0, %s0, %s1, %s2;", "s32", {"s32", "s32", "s32"}, [=](const Values& in) {
    return clamp((std::int64_t{in.s32(0)} * in.s32(1) >> 32) + in.s32(2));
  }));
}

/// As schoolbooks multiply, without carries.
void AddCarryless(std::vector<InstructionCase>& cases) {
  for (const bool high : {false, true}) {
    const std::string text = std::string("clmad.") + (high ? "hi" : "lo") + ".u64 %d0, %s0, %s1, %s2;";
    cases.push_back(Exact(text, "u64", {"u64", "u64", "u64"}, [=](const Values& in) {
      U128 product = 0;
      for (unsigned bit = 0; bit < 64; ++bit) {
        if ((in.v[1] >> bit & 1) != 0) product ^= static_cast<U128>(in.v[0]) << bit;
      }
      return static_cast<std::uint64_t>(high ? product >> 64 : product) ^ in.v[2];
    }));
  }
}

template <typename Lane>
std::uint64_t Lanes16(const Values& in, Lane lane) {
  return (static_cast<std::uint64_t>(lane(in.v[0] & 0xffff, in.v[1] & 0xffff)) & 0xffff) |
         (static_cast<std::uint64_t>(lane(in.v[0] >> 16 & 0xffff, in.v[1] >> 16 & 0xffff)) & 0xffff) << 16;
}

void AddPacked(std::vector<InstructionCase>& cases) {
  const std::vector<std::string_view> two{"b32", "b32"};
  auto s = [](std::uint64_t x) { return static_cast<std::int16_t>(x); };
  cases.push_back(Exact("add.u16x2 %d0, %s0, %s1;", "b32", two,
                        [](const Values& in) { return Lanes16(in, [](auto a, auto b) { return a + b; }); }));
  cases.push_back(Exact("add.s16x2 %d0, %s0, %s1;", "b32", two,
                        [](const Values& in) { return Lanes16(in, [](auto a, auto b) { return a + b; }); }));
  cases.push_back(Exact("min.u16x2 %d0, %s0, %s1;", "b32", two,
                        [](const Values& in) { return Lanes16(in, [](auto a, auto b) { return std::min(a, b); }); }));
  cases.push_back(Exact("max.u16x2 %d0, %s0, %s1;", "b32", two,
                        [](const Values& in) { return Lanes16(in, [](auto a, auto b) { return std::max(a, b); }); }));
  cases.push_back(Exact("min.s16x2 %d0, %s0, %s1;", "b32", two, [=](const Values& in) {
    return Lanes16(in, [=](auto a, auto b) { return std::min(s(a), s(b)); });
  }));
  cases.push_back(Exact("max.s16x2 %d0, %s0, %s1;", "b32", two, [=](const Values& in) {
    return Lanes16(in, [=](auto a, auto b) { return std::max(s(a), s(b)); });
  }));
  cases.push_back(Exact("max.relu.s16x2 %d0, %s0, %s1;", "b32", two, [=](const Values& in) {
    return Lanes16(in, [=](auto a, auto b) { return std::max<std::int16_t>(std::max(s(a), s(b)), 0); });
  }));
  cases.push_back(Exact("min.relu.s32 %d0, %s0, %s1;", "s32", {"s32", "s32"}, [](const Values& in) {
    return static_cast<std::uint64_t>(std::max(std::min(in.s32(0), in.s32(1)), 0));
  }));
}

// Four bytes at a time, and sums that stay in the range of their type.
void AddBytes(std::vector<InstructionCase>& cases) {
  struct Operation {
    std::string name;
    int (*of)(int a, int b);
    bool is_signed_only = false;
  };
  static const Operation kOperations[] = {{"add", [](int a, int b) { return a + b; }},
                                          {"sub", [](int a, int b) { return a - b; }},
                                          {"min", [](int a, int b) { return std::min(a, b); }},
                                          {"max", [](int a, int b) { return std::max(a, b); }},
                                          {"min.relu", [](int a, int b) { return std::max(std::min(a, b), 0); }, true},
                                          {"max.relu",
                                           [](int a, int b) {
                                             return std::max({a, b, 0});
                                           },
                                           true}};
  const auto lanes = [](const Values& in, unsigned bits, bool is_signed, bool sat, auto of) {
    std::uint64_t result = 0;
    const int low = is_signed ? -(1 << (bits - 1)) : 0, high = (1 << (bits - (is_signed ? 1 : 0))) - 1;
    for (unsigned at = 0; at < 32; at += bits) {
      const auto lane = [&](int which) {
        const int value = static_cast<int>(in.u32(which) >> at & ((1u << bits) - 1));
        return is_signed && value > high ? value - (1 << bits) : value;
      };
      const int value = of(lane(0), lane(1));
      result |= (static_cast<std::uint64_t>(sat ? std::clamp(value, low, high) : value) & ((1u << bits) - 1)) << at;
    }
    return result;
  };
  for (const bool is_signed : {false, true}) {
    for (const Operation& operation : kOperations) {
      if (operation.is_signed_only && !is_signed) continue;
      const bool sums = operation.name == "add" || operation.name == "sub";
      for (const bool sat : {false, true}) {
        if (sat && !sums) continue;
        const std::string type = is_signed ? ".s8x4" : ".u8x4";
        cases.push_back(Exact(operation.name + (sat ? ".sat" : "") + type + " %d0, %s0, %s1;", "b32", {"b32", "b32"},
                              [=](const Values& in) { return lanes(in, 8, is_signed, sat, operation.of); }));
      }
    }
    cases.push_back(Exact(std::string("add.sat") + (is_signed ? ".s16x2" : ".u16x2") + " %d0, %s0, %s1;", "b32",
                          {"b32", "b32"},
                          [=](const Values& in) { return lanes(in, 16, is_signed, true, kOperations[0].of); }));
  }
  cases.push_back(Exact("neg.s8x4 %d0, %s0;", "b32", {"b32"},
                        [=](const Values& in) { return lanes(in, 8, true, false, [](int a, int) { return -a; }); }));
  cases.push_back(Exact("add.sat.u32 %d0, %s0, %s1;", "u32", {"u32", "u32"}, [](const Values& in) {
    return std::min<std::uint64_t>(std::uint64_t{in.u32(0)} + in.u32(1), 0xffffffff);
  }));
}

void AddDot(std::vector<InstructionCase>& cases) {
  for (const bool sa : {false, true}) {
    for (const bool sb : {false, true}) {
      const std::string types = std::string(sa ? ".s32" : ".u32") + (sb ? ".s32" : ".u32");
      auto byte = [](std::uint32_t word, int i, bool is_signed) -> std::int32_t {
        const std::uint8_t b = static_cast<std::uint8_t>(word >> (8 * i));
        return is_signed ? static_cast<std::int8_t>(b) : b;
      };
      auto half = [](std::uint32_t word, int i, bool is_signed) -> std::int32_t {
        const std::uint16_t h = static_cast<std::uint16_t>(word >> (16 * i));
        return is_signed ? static_cast<std::int16_t>(h) : h;
      };
      cases.push_back(
          Exact("dp4a" + types + " %d0, %s0, %s1, %s2;", "b32", {"b32", "b32", "b32"}, [=](const Values& in) {
            std::uint32_t sum = in.u32(2);
            for (int i = 0; i < 4; ++i)
              sum += static_cast<std::uint32_t>(byte(in.u32(0), i, sa) * byte(in.u32(1), i, sb));
            return std::uint64_t{sum};
          }));
      for (const bool high : {false, true}) {
        cases.push_back(Exact("dp2a." + std::string(high ? "hi" : "lo") + types + " %d0, %s0, %s1, %s2;", "b32",
                              {"b32", "b32", "b32"}, [=](const Values& in) {
                                std::uint32_t sum = in.u32(2);
                                for (int i = 0; i < 2; ++i)
                                  sum += static_cast<std::uint32_t>(half(in.u32(0), i, sa) *
                                                                    byte(in.u32(1), i + (high ? 2 : 0), sb));
                                return std::uint64_t{sum};
                              }));
      }
    }
  }
}

}  // namespace

std::vector<InstructionCase> IntegerCases() {
  std::vector<InstructionCase> cases;
  for (const IntType& type : kTypes) {
    AddBasic(cases, type);
    AddUnary(cases, type);
  }
  AddWide(cases, kTypes[0], "u32");
  AddWide(cases, kTypes[1], "s32");
  AddWide(cases, kTypes[2], "u64");
  AddWide(cases, kTypes[3], "s64");
  AddCarry(cases);
  AddMul24(cases);
  AddCarryless(cases);
  AddSaturated(cases);
  AddPacked(cases);
  AddBytes(cases);
  AddDot(cases);
  return cases;
}

}  // namespace gridloom::exec
