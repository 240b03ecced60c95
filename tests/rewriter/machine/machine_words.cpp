// What Gridloom says of words of machine code.
//
//   machine_words SM            words of standard input, 16 bytes each, from address 0 on: a line each of its text; "?"
//   and the
//                               word when the table does not know it; "! " before it when encoding gives another word
//   machine_words SM --formats  the word and its text for one word of each format that occurs
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <set>
#include <string>

#include "rewriter/machine/instruction.h"
#include "rewriter/machine/print.h"
#include "rewriter/machine/table.h"

using namespace gridloom::machine;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: machine_words SM [--formats] < WORDS\n", stderr);
    return 2;
  }
  const unsigned sm = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  if (!IsKnownArchitecture(sm)) {
    std::fprintf(stderr, "machine_words: the table has no rows for sm_%u\n", sm);
    return 2;
  }
  const std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  const std::span<const std::byte> code{reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
  std::set<const Format*> seen;
  for (std::size_t at = 0; at + kWordBytes <= code.size(); at += kWordBytes) {
    const Word word = ReadWord(code, at);
    const auto instruction = Decode(word, sm);
    if (argc > 2) {
      if (instruction && seen.insert(instruction->format).second)
        std::printf("%u %s %s\n", sm, Hex(word).c_str(), Text(*instruction, 0).c_str());
      continue;
    }
    if (!instruction) {
      std::printf("? %s\n", Hex(word).c_str());
      continue;
    }
    std::printf("%s%s\n", Encode(*instruction) == word && Verify(*instruction).ok() ? "" : "! ",
                Text(*instruction, at).c_str());
  }
  return 0;
}
