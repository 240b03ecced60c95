// Values of registers as terms: text that is equal when the values are made in the same way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gridloom::machine {

/// A Domain of execute.h. Sums and products do not depend on the order of their parts.
struct Terms {
  using Value = std::string;

  Value Number(std::uint32_t number) const { return std::to_string(number); }
  Value Special(std::string_view name) const { return std::string(name); }
  Value Constant(std::int32_t offset) const { return "c[" + std::to_string(offset) + "]"; }
  Value Add(const Value& a, const Value& b) const;
  Value Negate(const Value& a) const { return a == "0" ? a : "-(" + a + ")"; }
  Value Multiply(const Value& a, const Value& b) const { return "(" + Pair(a, "*", b) + ")"; }
  Value High(const Value& a, const Value& b) const { return "high(" + Pair(a, ",", b) + ")"; }
  Value ShiftRight(const Value& a, const Value& b) const { return "(" + a + ">>" + b + ")"; }
  // What ended_execute.h wants.
  Value Or(const Value& a, const Value& b) const { return "(" + Pair(a, "|", b) + ")"; }
  Value And(const Value& a, const Value& b) const { return "(" + Pair(a, "&", b) + ")"; }
  Value ShiftLeft(const Value& a, const Value& b) const { return "(" + a + "<<" + b + ")"; }
  Value PopCount(const Value& a) const { return "count(" + a + ")"; }
  Value Carry(const Value& a, const Value& b) const { return "carry(" + Pair(a, ",", b) + ")"; }
  Value Any(const Value& a) const { return "any(" + a + ")"; }
  Value Active(unsigned ends) const { return "active" + std::to_string(ends); }

 private:
  static Value Pair(const Value& a, const char* between, const Value& b) {
    return a < b ? a + between + b : b + between + a;
  }
};

}  // namespace gridloom::machine
