#include "rewriter/machine/word.h"

namespace gridloom::machine {

Word ReadWord(std::span<const std::byte> code, std::size_t offset) {
  Word word;
  for (unsigned byte = 0; byte < kWordBytes; ++byte) {
    std::uint64_t& half = byte < 8 ? word.low : word.high;
    half |= std::to_integer<std::uint64_t>(code[offset + byte]) << (8 * (byte % 8));
  }
  return word;
}

void WriteWord(std::span<std::byte> code, std::size_t offset, const Word& word) {
  for (unsigned byte = 0; byte < kWordBytes; ++byte) {
    const std::uint64_t half = byte < 8 ? word.low : word.high;
    code[offset + byte] = static_cast<std::byte>(half >> (8 * (byte % 8)));
  }
}

}  // namespace gridloom::machine
