// Integer polynomials over symbols: the canonical form in which addresses are kept. Arithmetic wraps at 64 bits, so a
// polynomial of narrower registers stands for their value modulo 2^bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gridloom::analysis {

using SymbolId = std::uint32_t;
inline constexpr SymbolId kNoSymbol = ~0u;

/// A product of at most four symbols, sorted; unused places hold kNoSymbol. All unused: the constant 1.
struct Monomial {
  std::array<SymbolId, 4> symbols{kNoSymbol, kNoSymbol, kNoSymbol, kNoSymbol};

  unsigned degree() const;
  bool Contains(SymbolId symbol) const;
  auto operator<=>(const Monomial&) const = default;
};

struct Term {
  Monomial monomial;
  std::int64_t factor = 0;
  bool operator==(const Term&) const = default;
};

/// A sum of terms with different monomials, sorted by them; no factor is 0. No terms: zero.
class Polynomial {
 public:
  /// Larger results are not formed: what they would say is of no use to anybody.
  static constexpr std::size_t kMaxTerms = 32;

  Polynomial() = default;
  static Polynomial Constant(std::int64_t value);
  static Polynomial Of(SymbolId symbol);

  const std::vector<Term>& terms() const { return terms_; }
  bool IsZero() const { return terms_.empty(); }
  std::optional<std::int64_t> AsConstant() const;
  /// The symbol of a polynomial that is nothing but one.
  std::optional<SymbolId> AsSymbol() const;
  std::int64_t constant() const;
  bool Contains(SymbolId symbol) const;

  Polynomial Plus(const Polynomial& other, std::int64_t factor = 1) const;
  Polynomial Times(std::int64_t factor) const;
  /// Nothing when the product has a monomial of more than four symbols or too many terms.
  std::optional<Polynomial> Times(const Polynomial& other) const;
  /// All factors are multiples of `divisor`.
  Polynomial Divided(std::int64_t divisor) const;
  /// Only the terms that `keep(monomial)` chooses.
  template <typename Keep>
  Polynomial Filter(const Keep& keep) const {
    Polynomial result;
    for (const Term& term : terms_) {
      if (keep(term.monomial)) result.terms_.push_back(term);
    }
    return result;
  }
  /// Factors as numbers of `bits` bits, with sign.
  Polynomial Wrapped(unsigned bits) const;

  bool operator==(const Polynomial&) const = default;

 private:
  void Normalize();

  std::vector<Term> terms_;
};

/// Every integer from `low` to `high`. The limits of std::int64_t stand for "no bound known".
struct Interval {
  std::int64_t low = INT64_MIN, high = INT64_MAX;

  bool IsBounded() const { return low != INT64_MIN && high != INT64_MAX; }
  bool IsInside(const Interval& outer) const { return outer.low <= low && high <= outer.high; }
  bool operator==(const Interval&) const = default;
};

/// Values of a register of that many bits, read as signed or unsigned numbers. Unsigned 64-bit numbers count as signed.
Interval RangeOfType(unsigned bits, bool is_signed);
/// Sums and products of all their members; no bound when one of the results leaves 64 bits.
Interval Sum(const Interval& a, const Interval& b);
Interval Product(const Interval& a, const Interval& b);
Interval Hull(const Interval& a, const Interval& b);

}  // namespace gridloom::analysis
