// Products and sums that ptxas fuses, and those that it does not: the rule of sim/exec/compiler/lift_fuse.h, seen on
// ptxas 13.0. What is fused has one rounding, worked out exactly; what is not has two.
#include <cmath>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/reference_float.h"

namespace gridloom::exec {
namespace {

using reference::Decode;
using reference::Flush;
using reference::Format;
using reference::Quad;

// One lane of a type: what a product with a sum gives, rounded once or twice, as bits.
struct Arithmetic {
  std::function<std::uint64_t(std::uint64_t a, std::uint64_t b, std::uint64_t c)> fma;  ///< a * b + c
  std::function<std::uint64_t(std::uint64_t a, std::uint64_t b)> mul, add;
  std::uint64_t sign = 0;
};

template <typename T>
Arithmetic HostArithmetic(bool ftz) {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto of = [=](std::uint64_t bits) {
    const T x = std::bit_cast<T>(static_cast<Word>(bits));
    return ftz ? Flush(x) : x;
  };
  const auto done = [=](T x) -> std::uint64_t { return Bits(ftz ? Flush(x) : x); };
  return {.fma = [=](std::uint64_t a, std::uint64_t b, std::uint64_t c) { return done(std::fma(of(a), of(b), of(c))); },
          .mul =
              [=](std::uint64_t a, std::uint64_t b) {
                volatile T x = of(a), y = of(b), r = x * y;  // one rounding, whatever the host's compiler may contract
                return done(r);
              },
          .add =
              [=](std::uint64_t a, std::uint64_t b) {
                volatile T x = of(a), y = of(b), r = x + y;
                return done(r);
              },
          .sign = std::uint64_t{1} << (sizeof(T) * 8 - 1)};
}

std::uint64_t Finish(Quad exact, double in_double, const Format& f) {
  if (std::isnan(in_double)) return 0x7fff;
  if (std::isinf(in_double))
    return (in_double < 0 ? 0x8000u : 0u) | static_cast<unsigned>(((1 << f.exponent) - 1) << f.mantissa);
  if (exact == 0) return std::signbit(in_double) ? 0x8000 : 0;
  return reference::Round(exact, exact < 0, f, reference::Mode::kNearest);
}

Arithmetic ShortArithmetic(const Format& f, bool ftz) {
  const auto of = [=](std::uint64_t bits) {
    bits &= 0xffff;
    return Decode(ftz && (bits & 0x7c00) == 0 ? bits & 0x8000 : bits, f);
  };
  const auto done = [=](std::uint64_t bits) { return ftz && (bits & 0x7c00) == 0 ? bits & 0x8000 : bits; };
  return {.fma =
              [=](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
                const double x = of(a), y = of(b), z = of(c);
                return done(Finish(reference::StickySum(Quad(x) * Quad(y), Quad(z)), std::fma(x, y, z), f));
              },
          .mul = [=](std::uint64_t a,
                     std::uint64_t b) { return done(Finish(Quad(of(a)) * Quad(of(b)), of(a) * of(b), f)); },
          .add =
              [=](std::uint64_t a, std::uint64_t b) {
                return done(Finish(reference::StickySum(Quad(of(a)), Quad(of(b))), of(a) + of(b), f));
              },
          .sign = 0x8000};
}

struct Type {
  std::string name;
  std::string_view registers;
  unsigned lanes, bits;
  Arithmetic plain, flushing;
};

std::vector<Type> Types() {
  const auto half = [](const char* name, unsigned lanes, const Format& f) {
    return Type{name, name, lanes, 16, ShortArithmetic(f, false), ShortArithmetic(f, true)};
  };
  return {{"f32", "f32", 1, 32, HostArithmetic<float>(false), HostArithmetic<float>(true)},
          {"f64", "f64", 1, 64, HostArithmetic<double>(false), {}},
          {"f32x2", "b64", 2, 32, HostArithmetic<float>(false), HostArithmetic<float>(true)},
          half("f16", 1, reference::kF16),
          half("f16x2", 2, reference::kF16),
          half("bf16", 1, reference::kBF16),
          half("bf16x2", 2, reference::kBF16)};
}

using Lane = std::function<std::uint64_t(const Arithmetic&, const std::uint64_t* v)>;

// `text` with the type for T and a temporary register for each of %t0 to %t4, as a block of its own.
void Add(std::vector<InstructionCase>& cases, const Type& type, bool ftz, std::string text, Lane lane) {
  std::string out = "{ .reg ." +
                    std::string(type.bits == 16 && type.lanes == 1 ? "b16"
                                : type.lanes * type.bits == 64     ? "b64"
                                                                   : "b32") +
                    " %t<5>; ";
  for (const char c : text) out += c == 'T' ? (ftz ? "ftz." : "") + type.name : std::string(1, c);
  const std::vector<std::string_view> src(4, type.registers);
  cases.push_back(Exact(out + " }", type.name == "f32x2" ? "f32x2" : type.registers, src, [=](const Values& in) {
    std::uint64_t result = 0;
    const std::uint64_t mask = type.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << type.bits) - 1;
    for (unsigned i = 0; i < type.lanes; ++i) {
      std::uint64_t v[4];
      for (int k = 0; k < 4; ++k) v[k] = in.v[k] >> (i * type.bits) & mask;
      result |= (lane(ftz ? type.flushing : type.plain, v) & mask) << (i * type.bits);
    }
    return result;
  }));
}

std::uint64_t Minus(const Arithmetic& a, std::uint64_t x) { return x ^ a.sign; }
std::uint64_t Product(const Arithmetic& a, const std::uint64_t* v) { return a.mul(v[0], v[1]); }

// Which instructions fuse, for a type.
void AddPairs(std::vector<InstructionCase>& cases, const Type& type, bool ftz) {
  const auto add = [&](const char* text, Lane lane) { Add(cases, type, ftz, text, std::move(lane)); };
  const Lane sum = [](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[0], v[1], v[2]); };
  const Lane difference = [](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[0], v[1], Minus(a, v[2])); };
  const Lane reversed = [](const Arithmetic& a, const std::uint64_t* v) { return a.fma(Minus(a, v[0]), v[1], v[2]); };
  const Lane apart = [](const Arithmetic& a, const std::uint64_t* v) { return a.add(Product(a, v), v[2]); };
  add("mul.T %t0, %s0, %s1; add.T %d0, %t0, %s2;", sum);
  add("mul.T %t0, %s0, %s1; add.T %d0, %s2, %t0;", sum);
  add("mul.T %t0, %s0, %s1; sub.T %d0, %t0, %s2;", difference);
  add("mul.T %t0, %s0, %s1; sub.T %d0, %s2, %t0;", reversed);
  // Says how it rounds.
  add("mul.rn.T %t0, %s0, %s1; add.T %d0, %t0, %s2;", apart);
  add("mul.T %t0, %s0, %s1; add.rn.T %d0, %t0, %s2;", apart);
  // A product with several readers.
  add("mul.T %t0, %s0, %s1; add.T %t1, %t0, %s2; add.T %t2, %t0, %s3; add.rn.T %d0, %t1, %t2;",
      [](const Arithmetic& a, const std::uint64_t* v) {
        return a.add(a.fma(v[0], v[1], v[2]), a.fma(v[0], v[1], v[3]));
      });
  add("mul.T %t0, %s0, %s1; add.T %t1, %t0, %s2; mul.rn.T %t2, %t0, %s3; add.rn.T %d0, %t1, %t2;",
      [](const Arithmetic& a, const std::uint64_t* v) {
        return a.add(a.add(Product(a, v), v[2]), a.mul(Product(a, v), v[3]));
      });
  add("mul.T %t0, %s0, %s1; add.T %d0, %t0, %t0;",
      [](const Arithmetic& a, const std::uint64_t* v) { return a.add(Product(a, v), Product(a, v)); });
  // Two products.
  const auto second = [](const Arithmetic& a, const std::uint64_t* v) { return a.mul(v[2], v[3]); };
  add("mul.T %t0, %s0, %s1; mul.T %t1, %s2, %s3; add.T %d0, %t0, %t1;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[0], v[1], second(a, v)); });
  add("mul.T %t0, %s0, %s1; mul.T %t1, %s2, %s3; add.T %d0, %t1, %t0;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[2], v[3], Product(a, v)); });
  add("mul.T %t0, %s0, %s1; mul.T %t1, %s2, %s3; sub.T %d0, %t0, %t1;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[0], v[1], Minus(a, second(a, v))); });
  // The one that nothing else reads, then neither of the other's readers.
  add("mul.T %t0, %s0, %s1; mul.T %t1, %s2, %s3; sub.T %t2, %t0, %t1; add.T %t3, %t0, %s2; add.rn.T %d0, %t2, %t3;",
      [=](const Arithmetic& a, const std::uint64_t* v) {
        return a.add(a.fma(Minus(a, v[2]), v[3], Product(a, v)), a.add(Product(a, v), v[2]));
      });
  // What nobody reads is no reader.
  add("mul.T %t0, %s0, %s1; add.T %d0, %t0, %s2; mul.T %t1, %t0, %s3;", sum);
  if (type.name == "f32x2") return;  // has no neg and no abs
  const bool separate = type.name == "bf16x2";
  add("mul.T %t0, %s0, %s1; neg.T %t1, %t0; add.T %d0, %t1, %s2;",
      separate ? Lane([](const Arithmetic& a, const std::uint64_t* v) { return a.add(Minus(a, Product(a, v)), v[2]); })
               : reversed);
  add("neg.T %t1, %s0; mul.T %t0, %t1, %s1; add.T %d0, %t0, %s2;", reversed);
  add("mul.T %t0, %s0, %s1; abs.T %t1, %t0; add.T %d0, %t1, %s2;",
      [](const Arithmetic& a, const std::uint64_t* v) { return a.add(Product(a, v) & ~a.sign, v[2]); });
}

// Factors that are constants, as ptxas 13.0 and 13.5 have them: f32 and f64 are computed step by step, f16 and bf16
// fused.
void AddConstants(std::vector<InstructionCase>& cases, const Type& type, bool ftz) {
  const std::uint64_t one = type.bits == 64                ? 0x3ff0000000000000
                            : type.bits == 32              ? 0x3f800000
                            : type.name.starts_with("f16") ? 0x3c00
                                                           : 0x3f80;
  const std::uint64_t x = one + 1, y = one + 3;
  const auto move = [&](const char* to, std::uint64_t value) {
    const std::uint64_t all = type.lanes == 1 ? value : value | value << type.bits;
    return "mov.b" + std::to_string(type.bits * type.lanes) + " " + to + ", " + std::to_string(all) + "; ";
  };
  const auto add = [&](const std::string& text, Lane lane) {
    Add(cases, type, ftz, move("%t0", x) + move("%t1", y) + text, std::move(lane));
  };
  const bool folds = type.bits >= 32;
  const auto sum = [=](const Arithmetic& a, std::uint64_t p, std::uint64_t q, std::uint64_t c) {
    return folds ? a.add(a.mul(p, q), c) : a.fma(p, q, c);
  };
  add("mul.T %t2, %t0, %t1; add.T %d0, %t2, %s0;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return sum(a, x, y, v[0]); });
  add(move("%t3", (one + 4) | std::uint64_t{1} << (type.bits - 1)) + "mul.T %t2, %t0, %t1; add.T %d0, %t2, %t3;",
      [=](const Arithmetic& a, const std::uint64_t*) { return sum(a, x, y, Minus(a, one + 4)); });
  add("mul.T %t2, %t0, %t1; mul.T %t3, %t2, %t0; add.T %d0, %t3, %s0;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return sum(a, a.mul(x, y), x, v[0]); });
  add("add.T %t2, %t0, %t1; mul.T %t3, %t2, %t0; sub.T %d0, %s0, %t3;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return sum(a, Minus(a, a.add(x, y)), x, v[0]); });
  // One factor alone is no constant product.
  add("mul.T %t2, %s1, %t1; add.T %d0, %t2, %s0;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[1], y, v[0]); });
  // What says that it is fused is.
  add("fma.rn.T %d0, %t0, %t1, %s0;", [=](const Arithmetic& a, const std::uint64_t* v) { return a.fma(x, y, v[0]); });
  if (type.name == "f32x2") return;  // has no neg
  add("neg.T %t2, %t0; mul.T %t3, %t2, %t1; add.T %d0, %t3, %s0;",
      [=](const Arithmetic& a, const std::uint64_t* v) { return sum(a, Minus(a, x), y, v[0]); });
}

// Where they stand, and modifiers that only f32 and f16 have.
void AddPlaces(std::vector<InstructionCase>& cases, const Type& type) {
  const auto add = [&](const std::string& text, Lane lane) { Add(cases, type, false, text, std::move(lane)); };
  const Lane sum = [](const Arithmetic& a, const std::uint64_t* v) { return a.fma(v[0], v[1], v[2]); };
  const Lane apart = [](const Arithmetic& a, const std::uint64_t* v) { return a.add(Product(a, v), v[2]); };
  const std::string mul = "mul.T %t0, %s0, %s1; ", plus = "add.T %d0, %t0, %s2;",
                    guard = ".reg .pred %q; setp.ne.u64 %q, %in, 0; ";
  add(mul + "K: " + plus, sum);
  add(mul + "bra K; K: " + plus, sum);
  add(mul + "bar.warp.sync -1; " + plus, sum);
  add(guard + "mov.b64 %d0, 0; " + mul + "@%q " + plus, sum);
  add(guard + "mov.b64 %t0, 0; @%q " + mul + plus, apart);
  add(guard + mul + "@!%q bra K; " + plus + " K:", apart);
  add(guard + mul + "@!%q st.global.b64 [%out], %in; " + plus, apart);
  add(mul + ".reg .f32 %one; mov.f32 %one, 0f3f800000; div.rn.f32 %one, %one, %one; " + plus, apart);
  add("mul.T %t1, %s0, %s1; mov.b64 %t0, %t1; " + plus, sum);
}

void AddModifiers(std::vector<InstructionCase>& cases) {
  const std::vector<std::string_view> src(3, "f32");
  const auto saturated = [](float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; };
  const auto product = [](const Values& in) {
    volatile float a = in.f32(0), b = in.f32(1), r = a * b;
    return float(r);
  };
  const auto add = [&](const char* text, std::function<float(const Values&)> expected) {
    cases.push_back(Exact("{ .reg .f32 %t0; " + std::string(text) + " }", "f32", src,
                          [=](const Values& in) { return Bits(expected(in)); }));
  };
  add("mul.f32 %t0, %s0, %s1; add.sat.f32 %d0, %t0, %s2;",
      [=](const Values& in) { return saturated(std::fma(in.f32(0), in.f32(1), in.f32(2))); });
  add("mul.sat.f32 %t0, %s0, %s1; add.f32 %d0, %t0, %s2;",
      [=](const Values& in) { return saturated(product(in)) + in.f32(2); });
  add("mul.f32 %t0, %s0, %s1; add.ftz.f32 %d0, %t0, %s2;",
      [=](const Values& in) { return Flush(Flush(product(in)) + Flush(in.f32(2))); });
  add("mul.f32 %t0, 0f3dcccccd, 0f3dcccccd; add.f32 %d0, %t0, %s2;", [](const Values& in) {
    volatile float tenth = 0.1f, r = tenth * tenth;  // the product of two constants is a constant
    return r + in.f32(2);
  });
}

}  // namespace

std::vector<InstructionCase> FusedCases() {
  std::vector<InstructionCase> cases;
  for (const Type& type : Types()) {
    AddPairs(cases, type, false);
    AddConstants(cases, type, false);
    if (type.flushing.fma && !type.name.starts_with("bf16")) {
      AddPairs(cases, type, true);
      AddConstants(cases, type, true);
    }
    if (type.name == "f64") AddPlaces(cases, type);
  }
  AddModifiers(cases);
  return cases;
}

}  // namespace gridloom::exec
