// Approximate functions: within the error the ISA states (9.7.3.14 and up).
#include <cmath>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Flush;

void AddUnary(std::vector<InstructionCase>& cases, const std::string& op, double ulps, double absolute,
              double (*f)(double)) {
  cases.push_back(Near(op + ".approx.f32 %d0, %s0;", {"f32"}, ulps, absolute,
                       [=](const Values& in) { return f(static_cast<double>(in.f32(0))); }));
  cases.push_back(Near(op + ".approx.ftz.f32 %d0, %s0;", {"f32"}, ulps, std::max(absolute, 0x1p-126),
                       [=](const Values& in) { return f(static_cast<double>(Flush(in.f32(0)))); }));
}

// Relative error of an f64 result.
InstructionCase NearF64(std::string ptx, double relative, double (*f)(double)) {
  return {std::move(ptx), {"f64"}, {"f64"}, [=](const Values& in, const Values& out, Values& wanted) {
            const double truth = f(in.f64(0));
            wanted.v[0] = Bits(truth);
            if (std::isnan(truth)) return std::isnan(out.f64(0));
            if (std::isinf(truth) || truth == 0) return out.f64(0) == truth;
            return std::fabs(out.f64(0) - truth) <= relative * std::fabs(truth);
          }};
}

}  // namespace

std::vector<InstructionCase> ApproxCases() {
  std::vector<InstructionCase> cases;
  AddUnary(cases, "rcp", 1, 0, [](double x) { return 1 / x; });
  AddUnary(cases, "sqrt", 1, 0, [](double x) { return std::sqrt(x); });
  AddUnary(cases, "rsqrt", 2, 0, [](double x) { return 1 / std::sqrt(x); });
  AddUnary(cases, "ex2", 2, 0, [](double x) { return std::exp2(x); });
  AddUnary(cases, "lg2", 2, 0x1p-22, [](double x) { return std::log2(x); });
  cases.push_back(Near("tanh.approx.f32 %d0, %s0;", {"f32"}, 0x1p12, 0,
                       [](const Values& in) { return std::tanh(static_cast<double>(in.f32(0))); }));
  // Promised for [-100 pi, 100 pi]; beyond only that the result is a sine at all.
  for (const bool cosine : {false, true}) {
    InstructionCase test{std::string(cosine ? "cos" : "sin") + ".approx.f32 %d0, %s0;", {"f32"}, {"f32"}, nullptr};
    test.check = [=](const Values& in, const Values& out, Values& wanted) {
      const double x = static_cast<double>(in.f32(0)), got = static_cast<double>(out.f32(0));
      const double truth = cosine ? std::cos(x) : std::sin(x);
      wanted.v[0] = Bits(static_cast<float>(truth));
      if (!std::isfinite(x)) return std::isnan(got);
      if (std::fabs(x) > 315) return std::fabs(got) <= 1;
      return std::fabs(got - truth) <= 0x1p-20;
    };
    cases.push_back(test);
  }
  // Angles in turns are reduced exactly, however many they are.
  for (const bool cosine : {false, true}) {
    InstructionCase test{
        std::string(cosine ? "cos" : "sin") + ".approx.2pi.ftz.f32 %d0, %s0;", {"f32"}, {"f32"}, nullptr};
    test.check = [=](const Values& in, const Values& out, Values& wanted) {
      const double x = static_cast<double>(Flush(in.f32(0))), got = static_cast<double>(out.f32(0));
      const double turns = x - std::nearbyint(x), pi = 3.14159265358979323846;
      const double truth = cosine ? std::cos(2 * pi * turns) : std::sin(2 * pi * turns);
      wanted.v[0] = Bits(static_cast<float>(truth));
      if (!std::isfinite(x)) return std::isnan(got);
      const double quarters = turns * 4;
      if (quarters == std::nearbyint(quarters)) return got == std::nearbyint(truth);  // 0.25 turns: 1 and 0
      return std::fabs(got - truth) <= 0x1p-20;
    };
    cases.push_back(test);
  }
  cases.push_back(Near("div.full.f32 %d0, %s0, %s1;", {"f32", "f32"}, 2, 0,
                       [](const Values& in) { return static_cast<double>(in.f32(0) / in.f32(1)); }));
  cases.push_back(Near("div.approx.f32 %d0, %s0, %s1;", {"f32", "f32"}, 2, 0, [](const Values& in) {
    const float a = in.f32(0), b = in.f32(1);
    if (std::fabs(b) > 0x1p126f) return static_cast<double>(a * std::copysign(0.0f, b));
    return static_cast<double>(a / b);
  }));
  cases.push_back(NearF64("rsqrt.approx.f64 %d0, %s0;", 0x1p-51, [](double x) { return 1 / std::sqrt(x); }));
  cases.push_back(NearF64("rcp.approx.ftz.f64 %d0, %s0;", 0x1p-19, [](double x) { return Flush(1 / Flush(x)); }));
  cases.push_back(
      NearF64("rsqrt.approx.ftz.f64 %d0, %s0;", 0x1p-19, [](double x) { return Flush(1 / std::sqrt(Flush(x))); }));
  // Half-width forms are promised 2^-9.9 to 2^-11 relative; ours differ from the rounded truth by one ulp at most.
  struct Half {
    std::string op, type;
    std::string_view name;
    reference::Format format;
    bool ftz;
    double (*f)(double);
  };
  static const Half kHalves[] = {
      {"ex2.approx", "f16", "f16", reference::kF16, false, [](double x) { return std::exp2(x); }},
      {"tanh.approx", "f16", "f16", reference::kF16, false, [](double x) { return std::tanh(x); }},
      {"ex2.approx.ftz", "bf16", "bf16", reference::kBF16, true, [](double x) { return std::exp2(x); }},
      {"tanh.approx", "bf16", "bf16", reference::kBF16, false, [](double x) { return std::tanh(x); }}};
  for (const Half& half : kHalves) {
    InstructionCase test{half.op + "." + half.type + " %d0, %s0;", {half.name}, {half.name}, nullptr};
    test.check = [&half](const Values& in, const Values& out, Values& wanted) {
      double x = reference::Decode(in.u16(0), half.format);
      if (half.ftz && std::fabs(x) < 0x1p-126) x = std::copysign(0.0, x);
      double truth = half.f(x);
      if (half.ftz && std::fabs(truth) < 0x1p-126) truth = 0;
      if (std::isnan(truth)) return std::isnan(reference::Decode(out.u16(0), half.format));
      wanted.v[0] =
          reference::Round(reference::Quad(truth), std::signbit(truth), half.format, reference::Mode::kNearest);
      return std::abs(static_cast<int>(out.u16(0)) - static_cast<int>(wanted.v[0])) <= 1;
    };
    cases.push_back(test);
  }
  return cases;
}

}  // namespace gridloom::exec
