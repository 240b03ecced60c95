#include "rewriter/machine/format.h"

#include <algorithm>
#include <bit>

namespace gridloom::machine {
namespace {

std::uint64_t LowBits(unsigned count) { return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1; }

}  // namespace

std::uint64_t Field::Read(const Word& word) const {
  std::uint64_t value = word.Get(first, width);
  if (width2 != 0) value |= word.Get(first2, width2) << width;
  return value;
}

void Field::Write(Word& word, std::uint64_t value) const {
  word.Set(first, width, value);
  if (width2 != 0) word.Set(first2, width2, value >> width);
}

bool Field::Allows(std::uint64_t value) const {
  if ((value & ~LowBits(bits())) != 0) return false;
  if (only && value != *only) return false;
  if (power_of_two && !std::has_single_bit(value)) return false;
  return names.empty() || (value < names.size() && names[value] != "!");
}

}  // namespace gridloom::machine
