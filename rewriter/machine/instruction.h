// A word taken apart and put together again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/machine/format.h"
#include "rewriter/machine/word.h"

namespace gridloom::machine {

inline constexpr std::uint8_t kNoBarrier = 7;
inline constexpr std::uint8_t kTrue = 7;  ///< the predicate PT or UPT
inline constexpr unsigned kZeroRegister = 255, kUniformZeroRegister = 63;

/// What the compiler says about waiting (bits 105-125; Jia et al., arXiv 1804.06826, section 2.1; NAK's
/// set_instr_deps).
struct Control {
  std::uint8_t stall = 0;                   ///< cycles until the warp's next instruction may issue
  bool yield = false;                       ///< the bit as it is: 0 asks the scheduler to turn to another warp
  std::uint8_t write_barrier = kNoBarrier;  ///< scoreboard 0-5 that is free again when the results are there
  std::uint8_t read_barrier = kNoBarrier;   ///< scoreboard 0-5 that is free again when the sources have been read
  std::uint8_t wait = 0;                    ///< bit n: issue only once scoreboard n is free
  std::uint8_t reuse = 0;                   ///< bit n: source slot n is kept in the operand cache

  friend bool operator==(const Control&, const Control&) = default;
};

struct Instruction {
  const Format* format = nullptr;       ///< of AllFormats()
  std::vector<std::uint64_t> values{};  ///< of format->fields
  std::uint8_t guard = kTrue;
  bool guard_negated = false;
  Control control{};

  std::uint64_t Value(std::uint8_t field) const { return values[field]; }
};

Control ReadControl(const Word& word);
void WriteControl(Word& word, const Control& control);

/// Nothing when no row of the table fits the word on that architecture.
std::optional<Instruction> Decode(const Word& word, unsigned sm);

/// The word of an instruction. Its values have been checked by Verify.
Word Encode(const Instruction& instruction);

/// Whether the table lets it be: each value fits its field and has a name where it is a choice, scoreboards are 0-5 or
/// none.
Status Verify(const Instruction& instruction);

}  // namespace gridloom::machine
