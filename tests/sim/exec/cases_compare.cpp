// Comparison, selection, mov (PTX ISA, 9.7.6, 9.7.9.1).
#include <cmath>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Decode;

template <typename T>
bool Ordered(const std::string& op, T a, T b) {
  if (op == "eq" || op == "equ") return a == b;
  if (op == "ne" || op == "neu") return a != b;
  if (op == "lt" || op == "ltu" || op == "lo") return a < b;
  if (op == "le" || op == "leu" || op == "ls") return a <= b;
  if (op == "gt" || op == "gtu" || op == "hi") return a > b;
  return a >= b;
}

bool CompareFloat(const std::string& op, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (op == "num") return !unordered;
  if (op == "nan") return unordered;
  if (unordered) return op.size() == 3;
  return Ordered(op, a, b);
}

using Read = std::function<double(const Values&, int)>;

void AddSetp(std::vector<InstructionCase>& cases, std::string_view type, const std::string& op,
             std::function<bool(const Values&)> holds) {
  const std::string t(type);
  cases.push_back(Exact("setp." + op + "." + t + " %d0, %s0, %s1;", "pred", {type, type}, holds));
  cases.push_back(Exact2(
      "setp." + op + ".and." + t + " %d0|%d1, %s0, %s1, %s2;", {"pred", "pred"}, {type, type, "pred"},
      [=](const Values& in, Values& out) { out.v[0] = holds(in) && in.pred(2), out.v[1] = !holds(in) && in.pred(2); }));
}

void AddIntCompare(std::vector<InstructionCase>& cases) {
  for (const std::string_view type : {"s16", "u16", "b16", "s32", "u32", "b32", "s64", "u64", "b64"}) {
    const unsigned shift = 64 - TypeBits(type);
    for (const std::string op : {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}) {
      const bool equality = op == "eq" || op == "ne";
      const bool unsigned_op = op == "lo" || op == "ls" || op == "hi" || op == "hs";
      if (type[0] == 'b' && !equality) continue;
      if (type[0] == 's' && unsigned_op) continue;
      const std::string core = op == "hs" ? "ge" : op;
      AddSetp(cases, type, op, [=](const Values& in) {
        if (type[0] != 's') return Ordered(core, in.v[0], in.v[1]);
        return Ordered(core, static_cast<std::int64_t>(in.v[0] << shift), static_cast<std::int64_t>(in.v[1] << shift));
      });
    }
  }
}

void AddFloatCompare(std::vector<InstructionCase>& cases) {
  struct Kind {
    std::string_view type;
    Read read;
  };
  const Kind kinds[] = {{"f32", [](const Values& in, int i) { return static_cast<double>(in.f32(i)); }},
                        {"f64", [](const Values& in, int i) { return in.f64(i); }},
                        {"f16", [](const Values& in, int i) { return Decode(in.u16(i), reference::kF16); }},
                        {"bf16", [](const Values& in, int i) { return Decode(in.u16(i), reference::kBF16); }}};
  for (const Kind& kind : kinds) {
    for (const std::string op :
         {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
      AddSetp(cases, kind.type, op,
              [=](const Values& in) { return CompareFloat(op, kind.read(in, 0), kind.read(in, 1)); });
    }
  }
  for (const std::string op : {"lt", "eq", "neu", "ge"}) {
    cases.push_back(Exact("setp." + op + ".ftz.f32 %d0, %s0, %s1;", "pred", {"f32", "f32"}, [=](const Values& in) {
      return CompareFloat(op, static_cast<double>(reference::Flush(in.f32(0))),
                          static_cast<double>(reference::Flush(in.f32(1))));
    }));
    auto half = [](std::uint64_t bits) {
      return Decode((bits & 0x7c00) == 0 ? bits & 0x8000 : bits & 0xffff, reference::kF16);
    };
    cases.push_back(Exact2("setp." + op + ".ftz.f16x2 %d0|%d1, %s0, %s1;", {"pred", "pred"}, {"f16x2", "f16x2"},
                           [=](const Values& in, Values& out) {
                             out.v[0] = CompareFloat(op, half(in.v[0]), half(in.v[1]));
                             out.v[1] = CompareFloat(op, half(in.v[0] >> 16), half(in.v[1] >> 16));
                           }));
  }
}

void AddSet(std::vector<InstructionCase>& cases) {
  cases.push_back(Exact("set.lt.u32.s32 %d0, %s0, %s1;", "u32", {"s32", "s32"},
                        [](const Values& in) { return in.s32(0) < in.s32(1) ? ~0ull : 0; }));
  cases.push_back(Exact("set.gt.or.f32.u32 %d0, %s0, %s1, %s2;", "f32", {"u32", "u32", "pred"},
                        [](const Values& in) { return in.u32(0) > in.u32(1) || in.pred(2) ? Bits(1.0f) : 0; }));
  cases.push_back(
      Exact("set.leu.xor.s32.f64 %d0, %s0, %s1, !%s2;", "s32", {"f64", "f64", "pred"},
            [](const Values& in) { return CompareFloat("leu", in.f64(0), in.f64(1)) != !in.pred(2) ? ~0ull : 0; }));
  cases.push_back(Exact("set.eq.f16x2.f16x2 %d0, %s0, %s1;", "b32", {"f16x2", "f16x2"}, [](const Values& in) {
    auto lane = [&](int shift) {
      return CompareFloat("eq", Decode(in.v[0] >> shift & 0xffff, reference::kF16),
                          Decode(in.v[1] >> shift & 0xffff, reference::kF16))
                 ? 0x3c00ull
                 : 0;
    };
    return lane(0) | lane(16) << 16;
  }));
}

void AddSelect(std::vector<InstructionCase>& cases) {
  for (const std::string_view type : {"b16", "u32", "s64", "f32", "f64"}) {
    cases.push_back(Exact("selp." + std::string(type) + " %d0, %s0, %s1, %s2;", type, {type, type, "pred"},
                          [](const Values& in) { return in.pred(2) ? in.v[0] : in.v[1]; }));
    cases.push_back(Exact("slct." + std::string(type) + ".s32 %d0, %s0, %s1, %s2;", type, {type, type, "s32"},
                          [](const Values& in) { return in.s32(2) >= 0 ? in.v[0] : in.v[1]; }));
    cases.push_back(Exact("slct." + std::string(type) + ".f32 %d0, %s0, %s1, %s2;", type, {type, type, "f32"},
                          [](const Values& in) { return in.f32(2) >= 0 ? in.v[0] : in.v[1]; }));
  }
  cases.push_back(Exact("slct.ftz.u32.f32 %d0, %s0, %s1, %s2;", "u32", {"u32", "u32", "f32"},
                        [](const Values& in) { return reference::Flush(in.f32(2)) >= 0 ? in.v[0] : in.v[1]; }));
}

void AddMov(std::vector<InstructionCase>& cases) {
  for (const std::string_view type : {"b16", "u32", "s64", "f32", "f64", "pred"}) {
    cases.push_back(
        Exact("mov." + std::string(type) + " %d0, %s0;", type, {type}, [](const Values& in) { return in.v[0]; }));
  }
  cases.push_back(Exact("mov.b32 %d0, {%s0, %s1};", "b32", {"b16", "b16"},
                        [](const Values& in) { return in.v[0] | in.v[1] << 16; }));
  cases.push_back(Exact("mov.b64 %d0, {%s0, %s1};", "b64", {"b32", "f32"},
                        [](const Values& in) { return in.v[0] | in.v[1] << 32; }));
  cases.push_back(Exact("mov.b64 %d0, {%s0, %s1, %s2, %s3};", "b64", {"b16", "b16", "b16", "b16"},
                        [](const Values& in) { return in.v[0] | in.v[1] << 16 | in.v[2] << 32 | in.v[3] << 48; }));
  cases.push_back(Exact2("mov.b32 {%d0, %d1}, %s0;", {"b16", "b16"}, {"b32"},
                         [](const Values& in, Values& out) { out.v[0] = in.v[0] & 0xffff, out.v[1] = in.v[0] >> 16; }));
  cases.push_back(Exact2("mov.b64 {%d0, %d1}, %s0;", {"f32", "b32"}, {"f64"}, [](const Values& in, Values& out) {
    out.v[0] = in.v[0] & 0xffffffff, out.v[1] = in.v[0] >> 32;
  }));
  cases.push_back(Exact("mov.b64 {_, %d0}, %s0;", "b32", {"b64"}, [](const Values& in) { return in.v[0] >> 32; }));
  cases.push_back(Exact2(".reg .b128 %q; mov.b128 %q, {%s0, %s1}; mov.b128 {%d1, %d0}, %q;", {"b64", "b64"},
                         {"b64", "b64"},
                         [](const Values& in, Values& out) { out.v[0] = in.v[1], out.v[1] = in.v[0]; }));
  cases.push_back(
      Exact(".reg .v4 .u32 %v; mov.u32 %v.x, %s0; mov.u32 %v.w, %s1; mov.v4.u32 %v, {%v.w, %v.x, %v.x, %v.x}; add.u32 "
            "%d0, %v.x, %v.z;",
            "u32", {"u32", "u32"}, [](const Values& in) { return in.v[0] + in.v[1]; }));
  cases.push_back(
      Exact("mov.f32 %d0, 0f40490FDB;", "f32", {}, [](const Values&) { return std::uint64_t{0x40490fdb}; }));
  cases.push_back(Exact("mov.f64 %d0, 0d400921FB54442D18;", "f64", {},
                        [](const Values&) { return std::uint64_t{0x400921fb54442d18}; }));
  cases.push_back(Exact("mov.f32 %d0, 3.25;", "f32", {}, [](const Values&) { return Bits(3.25f); }));
  cases.push_back(Exact("mov.b16 %d0, 0x3C00;", "b16", {}, [](const Values&) { return std::uint64_t{0x3c00}; }));
  // Guards: the destination keeps its value.
  cases.push_back(Exact("mov.u32 %d0, %s0; @%s2 mov.u32 %d0, %s1;", "u32", {"u32", "u32", "pred"},
                        [](const Values& in) { return in.pred(2) ? in.v[1] : in.v[0]; }));
  cases.push_back(Exact("mov.u32 %d0, %s0; @!%s2 add.u32 %d0, %s1, 1;", "u32", {"u32", "u32", "pred"},
                        [](const Values& in) { return in.pred(2) ? in.v[0] : in.v[1] + 1; }));
}

}  // namespace

std::vector<InstructionCase> CompareCases() {
  std::vector<InstructionCase> cases;
  AddIntCompare(cases);
  AddFloatCompare(cases);
  AddSet(cases);
  AddSelect(cases);
  AddMov(cases);
  return cases;
}

}  // namespace gridloom::exec
