#include "rewriter/machine/registers.h"

#include <bit>

namespace gridloom::machine {
namespace {

constexpr unsigned kTypeBit = 73, kAddressBit = 72, kResultSizeBit = 75, kSourceSizeBit = 84, kClockBit = 80,
                   kMaskBit = 72;
constexpr unsigned kCalledFrom = 4, kCalledTo = 15, kStack = 1, kReturnTo = 20;

class UseReader {
 public:
  explicit UseReader(const Instruction& instruction) : instruction_(instruction), word_(Encode(instruction)) {}

  unsigned LengthOf(const Operand& operand) const { return Length(operand); }
  RegisterUse Read() {
    for (const Operand& operand : instruction_.format->operands) Visit(operand, operand.written);
    if (instruction_.guard != kTrue) {
      RegisterSet& read = use_.read;
      (instruction_.format->uniform_guard ? read.uniform_predicates : read.predicates).set(instruction_.guard);
    }
    // The ABI of calls: arguments from R4 on, the stack in R1, the way back in R20 and R21.
    if (instruction_.format->flow == Flow::kOutside) {
      for (unsigned reg = kCalledFrom; reg <= kCalledTo; ++reg) use_.read.general.set(reg);
      for (const unsigned reg : {kStack, kReturnTo, kReturnTo + 1}) use_.read.general.set(reg);
    }
    AddPredicateFile();
    return use_;
  }

 private:
  void Visit(const Operand& operand, bool written) {
    for (const Operand& part : operand.parts) Visit(part, false);
    if (operand.value == kNoField) return;
    RegisterSet& set = written ? use_.written : use_.read;
    const auto number = static_cast<unsigned>(instruction_.Value(operand.value));
    if (operand.kind == OperandKind::kRegister && number != kZeroRegister) {
      for (unsigned reg = number; reg < number + Length(operand) && reg < kZeroRegister; ++reg) set.general.set(reg);
    } else if (operand.kind == OperandKind::kUniformRegister && number != kUniformZeroRegister) {
      for (unsigned reg = number; reg < number + Length(operand) && reg < kUniformZeroRegister; ++reg)
        set.uniform.set(reg);
    } else if (operand.kind == OperandKind::kPredicate && number != kTrue) {
      set.predicates.set(number);
    } else if (operand.kind == OperandKind::kUniformPredicate && number != kTrue) {
      set.uniform_predicates.set(number);
    }
  }

  unsigned Length(const Operand& operand) const {
    if (operand.length != 0) return IsPair(operand) ? 2 : operand.length;
    const std::uint64_t type = word_.Get(kTypeBit, 3);
    switch (operand.measure) {
      case 'm': return type == 6 ? 4 : type == 5 ? 2 : 1;                  // .128, .64
      case 'a': return type == 2 || type == 5 || type == 6 ? 2 : 1;        // .64, .S64, .F64
      case 'f': return word_.Get(kTypeBit, 4) == 15 ? 2 : 1;               // .F64
      case 'c': return word_.Get(kClockBit, 1) != 0 ? 2 : 1;               // no .32
      case 'd': return word_.Get(kResultSizeBit, 2) == 3 ? 2 : 1;          // .F64, .S64
      case 's': return word_.Get(kSourceSizeBit, 2) == 3 ? 2 : 1;          // .F64, .S64
      case 'e': return word_.Get(kAddressBit, 1) != 0 ? 2 : 1;             // .E
      case 'q': return word_.Get(kTypeBit, 1) != 0 ? 2 : 1;                // .U64
      case 't': return std::popcount(word_.Get(kMaskBit, 4)) > 1 ? 2 : 1;  // of a texture's channels
      default: return 1;
    }
  }
  bool IsPair(const Operand& operand) const {
    for (const Suffix& suffix : operand.suffixes) {
      if (instruction_.format->fields[suffix.field].names[instruction_.Value(suffix.field)] == ".64") return true;
    }
    return false;
  }
  /// P2R reads, R2P writes predicates of a mask: here all that it can be, and none that is sure.
  void AddPredicateFile() {
    constexpr std::uint64_t kAll = 0x7F;
    const auto& operands = instruction_.format->operands;
    for (const Operand& operand : operands) {
      if (operand.kind != OperandKind::kWord || operand.prefix != "PR" || &operand == &operands.front()) continue;
      const Operand& mask = operands.back();
      use_.read.predicates |=
          std::bitset<8>(kAll & (mask.kind == OperandKind::kNumber ? instruction_.Value(mask.value) : kAll));
    }
  }

  const Instruction& instruction_;
  Word word_;
  RegisterUse use_{};
};

template <std::size_t kCount>
void AppendNames(const std::bitset<kCount>& set, const char* file, std::string& text) {
  for (std::size_t number = 0; number < kCount; ++number) {
    if (set[number]) text += (text.empty() ? "" : " ") + (file + std::to_string(number));
  }
}

}  // namespace

RegisterSet& RegisterSet::operator|=(const RegisterSet& other) {
  general |= other.general;
  uniform |= other.uniform;
  predicates |= other.predicates;
  uniform_predicates |= other.uniform_predicates;
  return *this;
}

RegisterSet& RegisterSet::operator-=(const RegisterSet& other) {
  general &= ~other.general;
  uniform &= ~other.uniform;
  predicates &= ~other.predicates;
  uniform_predicates &= ~other.uniform_predicates;
  return *this;
}

std::string RegisterSet::text() const {
  std::string text;
  AppendNames(general, "R", text);
  AppendNames(uniform, "UR", text);
  AppendNames(predicates, "P", text);
  AppendNames(uniform_predicates, "UP", text);
  return text;
}

RegisterUse UseOf(const Instruction& instruction) { return UseReader(instruction).Read(); }

unsigned RegistersOf(const Instruction& instruction, const Operand& operand) {
  return UseReader(instruction).LengthOf(operand);
}

}  // namespace gridloom::machine
