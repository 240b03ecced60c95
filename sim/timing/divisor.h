// Division by a number that is fixed for a run and known at run time only: a multiplication in place of a division.
#pragma once

#include <cstdint>

namespace gridloom::timing {

/// Exact for dividends below 2^64 / value; addresses and line numbers have at most 47 bits, divisors at most 16.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::uint32_t value) : value_(value), inverse_(value == 1 ? 0 : ~std::uint64_t{0} / value + 1) {}

  std::uint64_t Quotient(std::uint64_t dividend) const {
    __extension__ using Wide = unsigned __int128;
    return inverse_ == 0 ? dividend : static_cast<std::uint64_t>((Wide{dividend} * inverse_) >> 64);
  }
  /// Exact for dividends below 2^63.
  std::uint64_t ExactQuotient(std::uint64_t dividend) const {
    // The inverse is too large by less than value / 2^64: the estimate by at most one.
    const std::uint64_t estimate = Quotient(dividend);
    return estimate * value_ > dividend ? estimate - 1 : estimate;
  }
  std::uint64_t Remainder(std::uint64_t dividend) const { return dividend - Quotient(dividend) * value_; }
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 1;
  std::uint64_t inverse_ = 0;  // 2^64 / value, rounded up; 0 for 1
};

}  // namespace gridloom::timing
