// f16, bf16 and their pairs (PTX ISA, 9.7.4): exact in __float128, rounded once.
#include <cmath>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Decode;
using reference::Format;
using reference::Mode;
using reference::Quad;

struct Kind {
  std::string type, pair;
  std::string_view name, pair_name;
  Format format;
};
const Kind kKinds[] = {{"f16", "f16x2", "f16", "f16x2", reference::kF16},
                       {"bf16", "bf16x2", "bf16", "bf16x2", reference::kBF16}};

bool IsNaN(std::uint64_t code, const Format& f) { return std::isnan(Decode(code, f)); }
bool Negative(std::uint64_t code) { return (code & 0x8000) != 0; }

// Result of an operation: exact value, or special ones worked out in double (whose rules for them are the same).
std::uint64_t Finish(Quad exact, double in_double, const Format& f) {
  if (std::isnan(in_double)) return 0x7fff;
  if (std::isinf(in_double))
    return (in_double < 0 ? 0x8000u : 0u) | static_cast<unsigned>(((1 << f.exponent) - 1) << f.mantissa);
  if (exact == 0) return std::signbit(in_double) ? 0x8000 : 0;
  return reference::Round(exact, exact < 0, f, Mode::kNearest);
}

using Operation = std::function<std::uint64_t(const std::uint64_t*, const Format&)>;

std::uint64_t Add(const std::uint64_t* v, const Format& f) {
  const double a = Decode(v[0], f), b = Decode(v[1], f);
  return Finish(reference::StickySum(Quad(a), Quad(b)), a + b, f);
}
std::uint64_t Sub(const std::uint64_t* v, const Format& f) {
  const double a = Decode(v[0], f), b = Decode(v[1], f);
  return Finish(reference::StickySum(Quad(a), -Quad(b)), a - b, f);
}
std::uint64_t Mul(const std::uint64_t* v, const Format& f) {
  const double a = Decode(v[0], f), b = Decode(v[1], f);
  return Finish(Quad(a) * Quad(b), a * b, f);
}
std::uint64_t Fma(const std::uint64_t* v, const Format& f) {
  const double a = Decode(v[0], f), b = Decode(v[1], f), c = Decode(v[2], f);
  return Finish(reference::StickySum(Quad(a) * Quad(b), Quad(c)), std::fma(a, b, c), f);
}

std::uint64_t MinMax(const std::uint64_t* v, const Format& f, bool max, bool propagate) {
  const bool a_nan = IsNaN(v[0], f), b_nan = IsNaN(v[1], f);
  if ((a_nan && b_nan) || (propagate && (a_nan || b_nan))) return 0x7fff;
  if (a_nan) return v[1];
  if (b_nan) return v[0];
  const double a = Decode(v[0], f), b = Decode(v[1], f);
  if (a == b) return Negative(v[0]) != max ? v[0] : v[1];
  return (a < b) != max ? v[0] : v[1];
}

std::uint64_t FlushF16(std::uint64_t code) { return (code & 0x7c00) == 0 ? code & 0x8000 : code; }

struct Variant {
  std::string suffix;
  bool ftz = false, sat = false, relu = false;
};

std::uint64_t Apply(const Operation& op, const Variant& variant, const Format& f, const Values& in, int shift,
                    int sources) {
  std::uint64_t v[3] = {};
  for (int i = 0; i < sources; ++i) {
    v[i] = in.v[i] >> shift & 0xffff;
    if (variant.ftz) v[i] = FlushF16(v[i]);
  }
  std::uint64_t result = op(v, f);
  const double value = Decode(result, f);
  const std::uint64_t one = static_cast<std::uint64_t>(f.bias) << f.mantissa;
  if (variant.sat) result = value > 0 ? (value < 1 ? result : one) : 0;
  if (variant.relu && !std::isnan(value) && Negative(result)) result = 0;
  return variant.ftz ? FlushF16(result) : result;
}

void AddOperation(std::vector<InstructionCase>& cases, const std::string& name, int sources, const Operation& op,
                  const std::vector<Variant>& variants) {
  std::string operands = " %d0";
  for (int i = 0; i < sources; ++i) operands += ", %s" + std::to_string(i);
  for (const Kind& kind : kKinds) {
    for (const Variant& variant : variants) {
      if (kind.type == "bf16" && (variant.ftz || variant.sat)) continue;
      const Format f = kind.format;
      cases.push_back(Exact(name + variant.suffix + "." + kind.type + operands + ";", kind.name,
                            std::vector<std::string_view>(static_cast<std::size_t>(sources), kind.name),
                            [=](const Values& in) { return Apply(op, variant, f, in, 0, sources); }));
      cases.push_back(Exact(
          name + variant.suffix + "." + kind.pair + operands + ";", kind.pair_name,
          std::vector<std::string_view>(static_cast<std::size_t>(sources), kind.pair_name), [=](const Values& in) {
            return Apply(op, variant, f, in, 0, sources) | Apply(op, variant, f, in, 16, sources) << 16;
          }));
    }
  }
}

}  // namespace

std::vector<InstructionCase> HalfCases() {
  std::vector<InstructionCase> cases;
  const std::vector<Variant> arithmetic{{"", false, false, false},
                                        {".rn", false, false, false},
                                        {".ftz", true, false, false},
                                        {".sat", false, true, false},
                                        {".ftz.sat", true, true, false}};
  AddOperation(cases, "add", 2, Add, arithmetic);
  AddOperation(cases, "sub", 2, Sub, arithmetic);
  AddOperation(cases, "mul", 2, Mul, arithmetic);
  AddOperation(cases, "fma.rn", 3, Fma,
               {{"", false, false, false},
                {".ftz", true, false, false},
                {".sat", false, true, false},
                {".relu", false, false, true}});
  for (const bool max : {false, true}) {
    const std::string name = max ? "max" : "min";
    AddOperation(cases, name, 2, [=](const std::uint64_t* v, const Format& f) { return MinMax(v, f, max, false); },
                 {{"", false, false, false}, {".ftz", true, false, false}});
    AddOperation(cases, name + ".NaN", 2,
                 [=](const std::uint64_t* v, const Format& f) { return MinMax(v, f, max, true); },
                 {{"", false, false, false}});
  }
  AddOperation(cases, "abs", 1, [](const std::uint64_t* v, const Format&) { return v[0] & 0x7fff; },
               {{"", false, false, false}, {".ftz", true, false, false}});
  AddOperation(cases, "neg", 1, [](const std::uint64_t* v, const Format&) { return v[0] ^ 0x8000; },
               {{"", false, false, false}, {".ftz", true, false, false}});
  return cases;
}

}  // namespace gridloom::exec
