// Which registers an instruction reads and writes.
#pragma once

#include <bitset>

#include "rewriter/machine/instruction.h"

namespace gridloom::machine {

/// RZ, URZ, PT and UPT are never in one.
struct RegisterSet {
  std::bitset<256> general{};
  std::bitset<64> uniform{};
  std::bitset<8> predicates{};
  std::bitset<8> uniform_predicates{};

  bool none() const { return general.none() && uniform.none() && predicates.none() && uniform_predicates.none(); }
  RegisterSet& operator|=(const RegisterSet& other);
  RegisterSet& operator-=(const RegisterSet& other);
  friend bool operator==(const RegisterSet&, const RegisterSet&) = default;
  /// "R2 R3 P0": in the order of the files.
  std::string text() const;
};

struct RegisterUse {
  RegisterSet read;     ///< at most these, the guard's predicate among them
  RegisterSet written;  ///< all of these when the guard lets it; R2P, which writes by a mask, has none
};

RegisterUse UseOf(const Instruction& instruction);

/// How many registers one after the other an operand stands for.
unsigned RegistersOf(const Instruction& instruction, const Operand& operand);

}  // namespace gridloom::machine
