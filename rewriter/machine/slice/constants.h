// What an instruction reads from constant banks.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/machine/instruction.h"

namespace gridloom::machine {

struct ConstantRead {
  std::uint32_t bank = 0;
  std::int32_t offset = 0;
  std::uint32_t bytes = 0;        ///< at most
  bool indexed = false;           ///< a register is added to the offset
  std::uint8_t field = kNoField;  ///< of the instruction: the offset
  bool unknown = false;           ///< the bank is not in the instruction

  bool Overlaps(std::int32_t first, std::int32_t end) const {
    return offset < end && offset + static_cast<std::int32_t>(bytes) > first;
  }
};

std::vector<ConstantRead> ConstantReadsOf(const Instruction& instruction);

/// The special register that it reads: "SR_CTAID.X"; empty when it reads none.
std::string_view SpecialReadOf(const Instruction& instruction);

/// Whether it has a modifier of that name.
bool HasModifier(const Instruction& instruction, std::string_view name);

}  // namespace gridloom::machine
