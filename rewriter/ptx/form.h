// The precise half of the instruction table: what each operand of an instruction is, by opcode and modifiers
// (forms.def). Liveness, the verifier and passes ask here; none keeps a list of opcodes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {

enum class Access : std::uint8_t {
  kRead,
  kWrite,
  kReadWrite,  ///< read and written: the accumulator of wgmma
  kMemory,     ///< an address in brackets; its registers are read
  kImmediate,  ///< a constant
  kLabel,      ///< a branch target
  kTargets,    ///< a .branchtargets list
};

/// Where the type of an operand comes from.
enum class TypeRule : std::uint8_t {
  kAny,
  kFixed,     ///< OperandForm::type
  kModifier,  ///< the n-th type modifier of the instruction
  kWide,      ///< that, twice as wide (mul.wide)
};

struct OperandForm {
  Access access = Access::kRead;
  TypeRule rule = TypeRule::kAny;
  std::uint8_t modifier = 0;            ///< kModifier, kWide: which type modifier
  ScalarType type = ScalarType::kNone;  ///< kFixed
  bool per_vector = false;              ///< one register per .vN of the instruction
  bool list = false;                    ///< a brace-enclosed list of any length
  bool wider_ok = false;                ///< a register wider than the type will do
  bool negatable = false;               ///< !p or -a
  bool pair = false;                    ///< may be d|p with a predicate p
  bool optional = false;
  bool discardable = false;  ///< `_` will do as the destination

  bool writes() const { return access == Access::kWrite || access == Access::kReadWrite; }
  bool reads() const { return access == Access::kRead || access == Access::kReadWrite; }
};

/// First PTX version (major * 10 + minor) and target that have something.
struct Requirement {
  std::uint16_t ptx = 0;
  std::uint16_t sm = 0;
  bool specific = false;  ///< only architecture- or family-specific targets: sm_90a, sm_100f
};

struct Form {
  Opcode opcode = Opcode::kUnknown;
  std::vector<std::string_view> modifiers = {};     ///< all of them make an instruction match
  unsigned type_count = 0;                          ///< "#2": exactly that many type modifiers; 0: any number
  unsigned address_at = 0;                          ///< "[2": that operand is an address; 0: not asked
  std::vector<std::vector<ScalarType>> types = {};  ///< allowed n-th type modifier; empty: anything
  std::vector<OperandForm> operands = {};
  Requirement needs;

  std::size_t min_operands() const;
  /// Form of the n-th of `count` operands, null when there are more than the form has. Of the operands that may be left
  /// out, the last ones are missing first.
  const OperandForm* At(std::size_t n, std::size_t count) const;
};

/// The form of an instruction; null when its opcode is unknown or has no form (call).
const Form* FormOf(const Instruction& instruction);

/// The type an operand of that form has in this instruction; kNone when any will do.
ScalarType TypeOf(const OperandForm& form, const Instruction& instruction);

/// What the instruction needs: its form and whatever its modifiers add.
Requirement NeedsOf(const Instruction& instruction, const Form& form);

/// The first modifier of an instruction that no table knows, null when all are known. Shapes of matrices (m64n128k16)
/// are.
const Modifier* UnknownModifierOf(const Instruction& instruction);

/// All forms of an opcode, in the order they are tried.
std::span<const Form> FormsOf(Opcode opcode);

}  // namespace gridloom::ptx
