// Machine code: the first byte chooses the architecture, the rest are words.
#include <cstdint>
#include <cstdlib>

#include "rewriter/machine/instruction.h"
#include "rewriter/machine/print.h"
#include "rewriter/machine/table.h"

using namespace gridloom::machine;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto architectures = KnownArchitectures();
  const unsigned sm = architectures[data[0] % architectures.size()];
  const std::span<const std::byte> code{reinterpret_cast<const std::byte*>(data + 1), size - 1};
  for (std::size_t at = 0; at + kWordBytes <= code.size(); at += kWordBytes) {
    const Word word = ReadWord(code, at);
    const auto instruction = Decode(word, sm);
    if (Hex(word).size() != 34) std::abort();
    if (!instruction) continue;
    if (!(Encode(*instruction) == word) || Text(*instruction, at).empty() || Text(instruction->control).empty())
      std::abort();
  }
  return 0;
}
