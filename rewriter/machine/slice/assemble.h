// Instructions out of the table by name, for code that is added to a kernel.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "rewriter/machine/instruction.h"

namespace gridloom::machine {

/// Operand forms: bits 9-11 of a word.
inline constexpr unsigned kFormRegisters = 1, kFormImmediate = 4, kFormConstant = 5, kFormUniform = 6;

/// Of an instruction that waits for all that was begun before.
inline constexpr std::uint8_t kAllScoreboards = 0x3F;
/// Longer than any fixed latency of arithmetic that ptxas leaves room for but comparisons, with the yield bit as it has
/// it then.
inline constexpr std::uint8_t kLongStall = 12;

/// What stands for one operand of a row of the table, in the row's order.
struct Argument {
  enum class Kind : std::uint8_t {
    kDefault,   ///< RZ, PT, 0
    kNumber,    ///< a register, an immediate, the distance of a branch in the field's units
    kConstant,  ///< c[0x0][number]
    kAddress,   ///< memory at the 64 bits in a register and the one behind it
    kName,      ///< of a choice
  };
  Kind kind = Kind::kDefault;
  std::int64_t number = 0;
  bool negated = false;
  std::string_view name{};
  unsigned uniform = 0;

  static Argument Default() { return {}; }
  static Argument Register(unsigned number) { return {Kind::kNumber, number}; }
  static Argument Negated(unsigned number) { return {Kind::kNumber, number, true}; }
  static Argument Number(std::int64_t number) { return {Kind::kNumber, number}; }
  static Argument Constant(std::int64_t offset) { return {Kind::kConstant, offset}; }
  /// `uniform`: the register of the descriptor, where the operand has one.
  static Argument Address(unsigned number, unsigned uniform) { return {Kind::kAddress, number, false, {}, uniform}; }
  static Argument Name(std::string_view name) { return {Kind::kName, 0, false, name}; }
};

/// The instruction of that name in that operand form, with these modifiers and no others; arguments that are left out
/// at the end have their defaults. An error when the table has none for the architecture, or its word would be read as
/// another instruction.
Result<Instruction> Assemble(unsigned sm, std::string_view name, unsigned form, const std::vector<Argument>& arguments,
                             std::initializer_list<std::string_view> modifiers = {});

}  // namespace gridloom::machine
