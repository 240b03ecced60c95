// Text of instructions, as nvdisasm writes it.
#pragma once

#include <cstdint>
#include <string>

#include "rewriter/machine/instruction.h"

namespace gridloom::machine {

/// "@!P0 IADD3 R2, R2, 0x1, RZ"; targets of branches as addresses, `address` being the instruction's own.
std::string Text(const Instruction& instruction, std::uint64_t address);

/// "0x000fe200078e0203000000ffff027224", most significant digit first.
std::string Hex(const Word& word);

/// "B--2-4- W1 R- Y S04": scoreboards waited for, write and read scoreboard, yield, stall;
/// docs/machine-code.md#control.
std::string Text(const Control& control);

}  // namespace gridloom::machine
