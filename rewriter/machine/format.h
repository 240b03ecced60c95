// What an instruction's word is made of: a format is a row of the table (table/*.def) for one operand form. Decoder,
// printer, encoder and verifier read it; none knows an opcode by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/machine/word.h"
#include "rewriter/support/result.h"

namespace gridloom::machine {

/// A number in the word: `width` bits from `first` on, with `width2` more bits from `first2` on above them.
struct Field {
  std::uint8_t first = 0;
  std::uint8_t width = 0;
  std::uint8_t first2 = 0;
  std::uint8_t width2 = 0;
  bool power_of_two = false;              ///< no other values
  std::optional<std::uint64_t> only{};    ///< no other value
  std::vector<std::string_view> names{};  ///< by value, when it is a choice; "!" for values that are none

  std::uint64_t Read(const Word& word) const;
  void Write(Word& word, std::uint64_t value) const;
  bool Allows(std::uint64_t value) const;
  unsigned bits() const { return width + width2; }
};

inline constexpr std::uint8_t kNoField = 0xFF;

/// How a number is written.
enum class Style : std::uint8_t { kHex, kSigned, kDecimal, kFloat, kDouble, kHalves, kBfloats };

enum class OperandKind : std::uint8_t {
  kRegister,          ///< R0 … R254, RZ
  kUniformRegister,   ///< UR0 … UR62, URZ
  kPredicate,         ///< P0 … P6, PT
  kUniformPredicate,  ///< UP0 … UP6, UPT
  kConvergence,       ///< B0 … B15: the barriers of BSSY and BSYNC
  kScoreboard,        ///< SB0 … SB5
  kNumber,
  kTarget,     ///< of a branch: bytes from the next instruction on, as the field has it in units of `scale`
  kName,       ///< a choice that is an operand: special registers and the like
  kSet,        ///< numbers of the bits that are set: {5,4,0}
  kWord,       ///< always the same: PR
  kBracketed,  ///< parts in brackets: addresses, constants
};

struct Suffix {
  std::uint8_t field = kNoField;
};

struct Operand {
  OperandKind kind = OperandKind::kNumber;
  Style style = Style::kHex;
  bool written = false;          ///< else read
  bool silent = false;           ///< not printed
  bool glued = false;            ///< behind a space instead of a comma
  bool optional = false;         ///< not printed when it has its default: PT, RZ, 0
  bool default_true = true;      ///< of an optional predicate: PT, else !PT
  bool always_inverted = false;  ///< negation is ~ and not -
  std::uint8_t scale = 1;
  std::uint8_t value = kNoField;
  std::uint8_t negate = kNoField;
  std::uint8_t absolute = kNoField;
  std::uint8_t reuse = kNoField;  ///< which of the reuse bits of the control field is this operand's
  std::uint8_t length = 1;        ///< registers one after the other; 0: as `measure` has it
  char measure = 0;               ///< what says how many, when length is 0: registers.cpp
  std::vector<Suffix> suffixes{};
  std::string_view prefix{};     ///< of a bracketed one: "desc", "c"; of a word, itself
  std::vector<Operand> parts{};  ///< of a bracketed one, joined by +
};

/// Where control goes on behind an instruction.
enum class Flow : std::uint8_t {
  kNext,
  kBranch,    ///< to its target
  kIndirect,  ///< to one of a table in memory
  kCall,      ///< of code in the same section
  kOutside,   ///< a call of other code, which comes back to the next instruction
  kReturn,    ///< behind a call
  kExit,
};

struct Format {
  std::string_view name{};
  unsigned first_sm = 0, last_sm = 0;
  std::uint16_t opcode = 0;  ///< bits 0-11, with the operand form in 9-11
  Flow flow = Flow::kNext;
  bool uniform_guard = false;  ///< its guard is a uniform predicate
  std::vector<Field> fields{};
  std::vector<std::uint8_t> modifiers{};  ///< fields whose names follow the mnemonic, in the order of printing
  std::vector<Operand> operands{};
  Word mask{};  ///< bits that are as in `value`: the opcode, constants, and all that no field has
  Word value{};
};

/// A row of the table as it is written (docs/machine-code.md#table): which opcode, in which forms, of which
/// architectures.
struct Row {
  std::string_view name;
  std::uint16_t opcode;            ///< bits 0-8
  std::string_view forms;          ///< digits: values of bits 9-11
  std::string_view architectures;  ///< "75-90", "80-90", "90"
  std::string_view modifiers;
  std::string_view operands;
  std::string_view rest;  ///< constants and fields that are not printed
};

/// The row for one of its forms, or what is wrong with its text.
Result<Format> ParseRow(const Row& row, unsigned form);

}  // namespace gridloom::machine
