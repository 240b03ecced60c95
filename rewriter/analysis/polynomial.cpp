#include "rewriter/analysis/polynomial.h"

#include <algorithm>

namespace gridloom::analysis {
namespace {

std::int64_t WrappingAdd(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t WrappingMultiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::optional<Monomial> Multiply(const Monomial& a, const Monomial& b) {
  const unsigned degree = a.degree();
  if (degree + b.degree() > a.symbols.size()) return std::nullopt;
  Monomial product = a;
  for (unsigned i = 0; i < b.degree(); ++i) product.symbols[degree + i] = b.symbols[i];
  std::ranges::sort(product.symbols);
  return product;
}

}  // namespace

unsigned Monomial::degree() const {
  return static_cast<unsigned>(std::ranges::count_if(symbols, [](SymbolId symbol) { return symbol != kNoSymbol; }));
}

bool Monomial::Contains(SymbolId symbol) const { return std::ranges::find(symbols, symbol) != symbols.end(); }

Polynomial Polynomial::Constant(std::int64_t value) {
  Polynomial result;
  if (value != 0) result.terms_.push_back({Monomial(), value});
  return result;
}

Polynomial Polynomial::Of(SymbolId symbol) {
  Polynomial result;
  result.terms_.push_back({Monomial{{symbol, kNoSymbol, kNoSymbol, kNoSymbol}}, 1});
  return result;
}

std::optional<std::int64_t> Polynomial::AsConstant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_[0].monomial.degree() == 0) return terms_[0].factor;
  return std::nullopt;
}

std::optional<SymbolId> Polynomial::AsSymbol() const {
  if (terms_.size() != 1 || terms_[0].factor != 1 || terms_[0].monomial.degree() != 1) return std::nullopt;
  return terms_[0].monomial.symbols[0];
}

std::int64_t Polynomial::constant() const {
  // The constant's monomial is the greatest: all its places hold kNoSymbol.
  return !terms_.empty() && terms_.back().monomial.degree() == 0 ? terms_.back().factor : 0;
}

bool Polynomial::Contains(SymbolId symbol) const {
  return std::ranges::any_of(terms_, [&](const Term& term) { return term.monomial.Contains(symbol); });
}

Polynomial Polynomial::Plus(const Polynomial& other, std::int64_t factor) const {
  Polynomial result = *this;
  for (const Term& term : other.terms_) result.terms_.push_back({term.monomial, WrappingMultiply(term.factor, factor)});
  result.Normalize();
  return result;
}

Polynomial Polynomial::Times(std::int64_t factor) const { return Polynomial().Plus(*this, factor); }

std::optional<Polynomial> Polynomial::Times(const Polynomial& other) const {
  if (terms_.size() * other.terms_.size() > kMaxTerms * kMaxTerms) return std::nullopt;
  Polynomial result;
  for (const Term& a : terms_) {
    for (const Term& b : other.terms_) {
      const auto monomial = Multiply(a.monomial, b.monomial);
      if (!monomial) return std::nullopt;
      result.terms_.push_back({*monomial, WrappingMultiply(a.factor, b.factor)});
    }
  }
  result.Normalize();
  if (result.terms_.size() > kMaxTerms) return std::nullopt;
  return result;
}

Polynomial Polynomial::Divided(std::int64_t divisor) const {
  Polynomial result = *this;
  for (Term& term : result.terms_) term.factor /= divisor;
  return result;
}

Polynomial Polynomial::Wrapped(unsigned bits) const {
  if (bits >= 64 || bits <= 1) return *this;  // predicates are no numbers
  Polynomial result = *this;
  const unsigned shift = 64 - bits;
  for (Term& term : result.terms_)
    term.factor = static_cast<std::int64_t>(static_cast<std::uint64_t>(term.factor) << shift) >> shift;
  result.Normalize();
  return result;
}

void Polynomial::Normalize() {
  std::ranges::sort(terms_, {}, &Term::monomial);
  std::vector<Term> merged;
  for (const Term& term : terms_) {
    if (!merged.empty() && merged.back().monomial == term.monomial) {
      merged.back().factor = WrappingAdd(merged.back().factor, term.factor);
    } else {
      merged.push_back(term);
    }
  }
  std::erase_if(merged, [](const Term& term) { return term.factor == 0; });
  terms_ = std::move(merged);
}

namespace {

Interval Saturated(__int128 low, __int128 high) {
  if (low <= INT64_MIN || high >= INT64_MAX) return {};
  return {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

}  // namespace

Interval RangeOfType(unsigned bits, bool is_signed) {
  if (bits == 0 || bits >= 64) return {};  // 0: an instruction whose type is not known
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  return is_signed ? Interval{-half, half - 1} : Interval{0, 2 * half - 1};
}

Interval Sum(const Interval& a, const Interval& b) {
  if (!a.IsBounded() || !b.IsBounded()) return {};
  return Saturated(static_cast<__int128>(a.low) + b.low, static_cast<__int128>(a.high) + b.high);
}

Interval Product(const Interval& a, const Interval& b) {
  if (a == Interval{0, 0} || b == Interval{0, 0}) return {0, 0};
  if (!a.IsBounded() || !b.IsBounded()) return {};
  const __int128 corners[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                              static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return Saturated(*std::ranges::min_element(corners), *std::ranges::max_element(corners));
}

Interval Hull(const Interval& a, const Interval& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

}  // namespace gridloom::analysis
