// f32 and f64 arithmetic in all rounding modes (PTX ISA, 9.7.3).
#include <cmath>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Flush;
using reference::Mode;

struct ModeName {
  std::string suffix;
  Mode mode;
};
const ModeName kModes[] = {
    {"", Mode::kNearest}, {".rn", Mode::kNearest}, {".rz", Mode::kZero}, {".rm", Mode::kDown}, {".rp", Mode::kUp}};

template <typename T>
T Get(const Values& in, int i);
template <>
float Get<float>(const Values& in, int i) {
  return in.f32(i);
}
template <>
double Get<double>(const Values& in, int i) {
  return in.f64(i);
}

template <typename T>
T Saturated(T x) {
  return x > 0 ? (x < 1 ? x : T(1)) : T(0);
}

// op(mode modifiers) over 1 to 3 sources.
template <typename T, typename F>
void AddOperation(std::vector<InstructionCase>& cases, const std::string& op, int sources, bool needs_mode, F compute) {
  constexpr bool kSingle = sizeof(T) == 4;
  const std::string_view type = kSingle ? "f32" : "f64";
  std::string operands = " %d0";
  for (int i = 0; i < sources; ++i) operands += ", %s" + std::to_string(i);
  const std::vector<std::string_view> src(static_cast<std::size_t>(sources), type);
  for (const ModeName& m : kModes) {
    if (needs_mode && m.suffix.empty()) continue;
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        if ((ftz || sat) && !kSingle) continue;
        if (sat && (op == "div" || op == "rcp" || op == "sqrt")) continue;
        cases.push_back(
            Exact(op + m.suffix + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + "." + std::string(type) + operands + ";",
                  type, src, [=, mode = m.mode](const Values& in) {
                    T v[3] = {};
                    for (int i = 0; i < sources; ++i) v[i] = ftz ? Flush(Get<T>(in, i)) : Get<T>(in, i);
                    T result = reference::Rounded<T>(mode, compute, v[0], v[1], v[2]);
                    if (sat) result = Saturated(result);
                    return Bits(ftz ? Flush(result) : result);
                  }));
      }
    }
  }
}

template <typename T>
void AddArithmetic(std::vector<InstructionCase>& cases) {
  AddOperation<T>(cases, "add", 2, false, [](T a, T b, T) { return a + b; });
  AddOperation<T>(cases, "sub", 2, false, [](T a, T b, T) { return a - b; });
  AddOperation<T>(cases, "mul", 2, false, [](T a, T b, T) { return a * b; });
  AddOperation<T>(cases, "fma", 3, true, [](T a, T b, T c) { return std::fma(a, b, c); });
  AddOperation<T>(cases, "mad", 3, true, [](T a, T b, T c) { return std::fma(a, b, c); });
  AddOperation<T>(cases, "div", 2, true, [](T a, T b, T) { return a / b; });
  AddOperation<T>(cases, "rcp", 1, true, [](T a, T, T) { return T(1) / a; });
  AddOperation<T>(cases, "sqrt", 1, true, [](T a, T, T) { return std::sqrt(a); });
}

// fma with a third operand that nearly cancels the product, where wrong residuals show.
template <typename T>
void AddCancellation(std::vector<InstructionCase>& cases) {
  constexpr bool kSingle = sizeof(T) == 4;
  const std::string type = kSingle ? "f32" : "f64";
  const std::string_view name = kSingle ? "f32" : "f64";
  for (const ModeName& m : kModes) {
    if (m.suffix.empty()) continue;
    cases.push_back(Exact(".reg ." + type + " %p; mul.rn." + type + " %p, %s0, %s1; neg." + type + " %p, %p; fma" +
                              m.suffix + "." + type + " %d0, %s0, %s1, %p;",
                          name, {name, name}, [mode = m.mode](const Values& in) {
                            const T a = Get<T>(in, 0), b = Get<T>(in, 1);
                            const volatile T product = a * b;
                            return Bits(reference::Rounded<T>(
                                mode, [](T x, T y, T z) { return std::fma(x, y, z); }, a, b, static_cast<T>(-product)));
                          }));
  }
}

template <typename T>
T PtxMin(T a, T b, bool max) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) != max ? a : b;
  return (a < b) != max ? a : b;
}

template <typename T>
void AddMinMax(std::vector<InstructionCase>& cases) {
  constexpr bool kSingle = sizeof(T) == 4;
  const std::string type = kSingle ? "f32" : "f64";
  const std::string_view name = kSingle ? "f32" : "f64";
  for (const bool max : {false, true}) {
    const std::string op = max ? "max" : "min";
    cases.push_back(Exact(op + "." + type + " %d0, %s0, %s1;", name, {name, name},
                          [=](const Values& in) { return Bits(PtxMin(Get<T>(in, 0), Get<T>(in, 1), max)); }));
    if (!kSingle) continue;
    cases.push_back(Exact(op + ".NaN.f32 %d0, %s0, %s1;", name, {name, name}, [=](const Values& in) {
      const float a = in.f32(0), b = in.f32(1);
      return std::isnan(a) || std::isnan(b) ? 0x7fffffffull : Bits(PtxMin(a, b, max));
    }));
    cases.push_back(Exact(op + ".ftz.f32 %d0, %s0, %s1;", name, {name, name},
                          [=](const Values& in) { return Bits(PtxMin(Flush(in.f32(0)), Flush(in.f32(1)), max)); }));
    cases.push_back(Exact(op + ".xorsign.abs.f32 %d0, %s0, %s1;", name, {name, name}, [=](const Values& in) {
      const float result = PtxMin(std::fabs(in.f32(0)), std::fabs(in.f32(1)), max);
      return Bits(std::copysign(result, std::signbit(in.f32(0)) != std::signbit(in.f32(1)) ? -1.0f : 1.0f));
    }));
    cases.push_back(Exact(op + ".f32 %d0, %s0, %s1, %s2;", name, {name, name, name}, [=](const Values& in) {
      return Bits(PtxMin(PtxMin(in.f32(0), in.f32(1), max), in.f32(2), max));
    }));
    cases.push_back(Exact(op + ".NaN.abs.f32 %d0, %s0, %s1, %s2;", name, {name, name, name}, [=](const Values& in) {
      if (std::isnan(in.f32(0)) || std::isnan(in.f32(1)) || std::isnan(in.f32(2))) return std::uint64_t{0x7fffffff};
      return Bits(PtxMin(PtxMin(std::fabs(in.f32(0)), std::fabs(in.f32(1)), max), std::fabs(in.f32(2)), max));
    }));
  }
}

template <typename T>
void AddSigns(std::vector<InstructionCase>& cases) {
  constexpr bool kSingle = sizeof(T) == 4;
  const std::string type = kSingle ? "f32" : "f64";
  const std::string_view name = kSingle ? "f32" : "f64";
  cases.push_back(Exact("abs." + type + " %d0, %s0;", name, {name},
                        [](const Values& in) { return Bits(std::fabs(Get<T>(in, 0))); }));
  cases.push_back(
      Exact("neg." + type + " %d0, %s0;", name, {name}, [](const Values& in) { return Bits(-Get<T>(in, 0)); }));
  cases.push_back(Exact("copysign." + type + " %d0, %s0, %s1;", name, {name, name},
                        [](const Values& in) { return Bits(std::copysign(Get<T>(in, 1), Get<T>(in, 0))); }));
  struct Test {
    std::string name;
    bool (*holds)(T);
  };
  const Test tests[] = {{"finite", [](T x) { return std::isfinite(x); }},
                        {"infinite", [](T x) { return std::isinf(x); }},
                        {"number", [](T x) { return !std::isnan(x); }},
                        {"notanumber", [](T x) { return std::isnan(x); }},
                        {"normal", [](T x) { return std::isnormal(x) || x == 0; }},
                        {"subnormal", [](T x) { return std::fpclassify(x) == FP_SUBNORMAL; }}};
  for (const Test& test : tests) {
    cases.push_back(Exact("testp." + test.name + "." + type + " %d0, %s0;", "pred", {name},
                          [=](const Values& in) { return test.holds(Get<T>(in, 0)); }));
  }
}

}  // namespace

std::vector<InstructionCase> FloatCases() {
  std::vector<InstructionCase> cases;
  AddArithmetic<float>(cases);
  AddArithmetic<double>(cases);
  AddCancellation<float>(cases);
  AddCancellation<double>(cases);
  AddMinMax<float>(cases);
  AddMinMax<double>(cases);
  AddSigns<float>(cases);
  AddSigns<double>(cases);
  cases.push_back(Exact("abs.ftz.f32 %d0, %s0;", "f32", {"f32"},
                        [](const Values& in) { return Bits(std::fabs(Flush(in.f32(0)))); }));
  cases.push_back(
      Exact("neg.ftz.f32 %d0, %s0;", "f32", {"f32"}, [](const Values& in) { return Bits(-Flush(in.f32(0))); }));
  auto lanes = [](const Values& in, auto f) {
    Values low, high;
    for (int i = 0; i < 3; ++i) low.v[i] = in.v[i] & 0xffffffff, high.v[i] = in.v[i] >> 32;
    return Bits(f(low)) | Bits(f(high)) << 32;
  };
  cases.push_back(Exact("add.rn.f32x2 %d0, %s0, %s1;", "f32x2", {"b64", "b64"}, [=](const Values& in) {
    return lanes(in, [](const Values& v) { return v.f32(0) + v.f32(1); });
  }));
  cases.push_back(Exact("fma.rz.f32x2 %d0, %s0, %s1, %s2;", "f32x2", {"b64", "b64", "b64"}, [=](const Values& in) {
    return lanes(in, [](const Values& v) {
      return reference::Rounded<float>(
          Mode::kZero, [](float a, float b, float c) { return std::fma(a, b, c); }, v.f32(0), v.f32(1), v.f32(2));
    });
  }));
  return cases;
}

}  // namespace gridloom::exec
