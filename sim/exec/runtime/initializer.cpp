#include "sim/exec/runtime/initializer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "sim/exec/runtime/half.h"

namespace gridloom::exec {
namespace {

/// Follows the braces of an initialiser and tells the index of each element in scalars.
//   .global .u32 a[2][3] = { {1}, {2, 3} };   -> 0, 3, 4
class Walker {
 public:
  explicit Walker(const ptx::Variable& variable) {
    // span_[d]: scalars that the braces at depth d enclose; an open first dimension leaves span_[1] unknown (0).
    std::uint64_t span = variable.vector;
    if (variable.vector > 1) span_.push_back(span);
    for (auto dim = variable.dims.rbegin(); dim != variable.dims.rend(); ++dim) span_.push_back(span *= *dim);
    std::reverse(span_.begin(), span_.end());
  }

  std::uint64_t Enter(const ptx::Initializer& element) {
    for (std::uint32_t i = 0; i < element.group; ++i) starts_.push_back(next_);
    return next_++;
  }
  void Leave(const ptx::Initializer& element) {
    for (std::uint32_t i = 0; i < element.close && !starts_.empty(); ++i) {
      const std::size_t depth = starts_.size();
      const std::uint64_t span = depth <= span_.size() ? span_[depth - 1] : 0;
      if (span != 0) next_ = std::max(next_, starts_.back() + span);
      starts_.pop_back();
    }
  }
  std::uint64_t next() const { return next_; }

 private:
  std::vector<std::uint64_t> span_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t next_ = 0;
};

double AsDouble(const ptx::FloatLiteral& literal) {
  return literal.width == 32 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(literal.bits)))
                             : std::bit_cast<double>(literal.bits);
}

std::uint64_t FloatBits(double value, ptx::ScalarType type) {
  switch (type) {
    case ptx::ScalarType::kF16: return DoubleToHalf(value);
    case ptx::ScalarType::kBF16: return DoubleToBfloat(value);
    default: break;
  }
  if (ptx::BytesOf(type) == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

std::uint64_t LiteralBits(const ptx::FloatLiteral& literal, ptx::ScalarType type) {
  if (literal.width / 8 == ptx::BytesOf(type)) return literal.bits;  // the same format: also NaN payloads survive
  return FloatBits(AsDouble(literal), type);
}

std::uint64_t LiteralBits(const ptx::IntLiteral& literal, ptx::ScalarType type) {
  if (!ptx::IsFloat(type)) return literal.value;
  return FloatBits(literal.negative ? static_cast<double>(static_cast<std::int64_t>(literal.value))
                                    : static_cast<double>(literal.value),
                   type);
}

Result<std::uint64_t> ElementBits(const ptx::Initializer& element, ptx::ScalarType type,
                                  const SymbolAddressFn& address) {
  if (const auto* integer = std::get_if<ptx::IntLiteral>(&element.value)) return LiteralBits(*integer, type);
  if (const auto* real = std::get_if<ptx::FloatLiteral>(&element.value)) return LiteralBits(*real, type);
  const auto& symbol = std::get<ptx::Operand>(element.value);
  GL_TRY(value, address(symbol));
  value += static_cast<std::uint64_t>(symbol.offset);
  // 0xff00(x): those bits of the address, moved down to bit 0.
  return element.mask == 0 ? value : (value & element.mask) >> std::countr_zero(element.mask);
}

}  // namespace

std::uint64_t InitializedBytes(const ptx::Variable& variable) {
  if (variable.bytes() != 0 || !variable.has_initializer) return variable.bytes();
  Walker walker(variable);
  std::uint64_t scalars = 0;
  for (const ptx::Initializer& element : variable.initializer) {
    walker.Enter(element);
    walker.Leave(element);
    scalars = std::max(scalars, walker.next());
  }
  return scalars * ptx::BytesOf(variable.type);
}

Status ApplyInitializer(const ptx::Variable& variable, const SymbolAddressFn& address, std::span<std::byte> bytes) {
  if (ptx::Info(variable.type).cls == ptx::TypeClass::kOpaque)
    return {};  // a sampler's attributes: the compiler reads them
  const std::uint32_t scalar_bytes = ptx::BytesOf(variable.type);
  Walker walker(variable);
  for (const ptx::Initializer& element : variable.initializer) {
    const std::uint64_t at = walker.Enter(element) * scalar_bytes;
    if (at + scalar_bytes > bytes.size())
      return Error{"line " + std::to_string(variable.loc.line) + ": initialiser of " + std::string(variable.name) +
                   " has more elements than its " + std::to_string(bytes.size()) + " bytes hold"};
    GL_TRY(bits, ElementBits(element, variable.type, address));
    std::memcpy(bytes.data() + at, &bits, std::min<std::size_t>(scalar_bytes, sizeof bits));
    walker.Leave(element);
  }
  return {};
}

}  // namespace gridloom::exec
