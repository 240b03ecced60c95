// What code that counts ended threads does: instructions of execute.h, and those that ended.cpp has beside them. A
// Domain has, beside what execute.h wants,
//   Value Or(Value, Value), And(Value, Value), ShiftLeft(Value, Value), PopCount(Value)
//   Value Carry(Value, Value)   of their sum: 0 or 1
//   Value Any(Value)            0 or 1: whether a bit is set
//   Value Active(unsigned n)    bits of the lanes that have come here together, behind n conditional ends
#pragma once

#include "rewriter/machine/slice/execute.h"

namespace gridloom::machine {

template <typename Domain>
class EndedExecutor : public Executor<Domain> {
 public:
  using Value = typename Domain::Value;
  using Base = Executor<Domain>;
  using Base::Base;

  /// What is added to the word at an address of global memory.
  struct Addition {
    Value low, high, by;
    Value descriptor_low, descriptor_high;  ///< of the uniform registers that it names
  };

  std::map<unsigned, Value> predicates{};
  std::vector<Addition> additions{};
  unsigned conditional_ends = 0;  ///< the caller counts them

  Status StepEnded(const Instruction& instruction) {
    const std::string_view name = instruction.format->name;
    if (name == "VOTE") return Vote(instruction);
    if (name == "LOP3.LUT") return Logic(instruction);
    if (name == "POPC" && !Base::IsNegated(instruction, 1))
      return Base::Set(instruction, Base::domain_.PopCount(Base::Source(instruction, 1)));
    if (name == "LEA") return ShiftAndAdd(instruction);
    if (name == "IADD3.X") return AddCarry(instruction);
    if (name == "ULDC" && HasModifier(instruction, ".64")) return LoadPair(instruction);
    if (name == "RED" || name == "REDG") return Add(instruction);
    return Base::Step(instruction);
  }

 private:
  /// A predicate among the operands: its number, with 8 added when it is negated.
  static unsigned PredicateOf(const Instruction& instruction, std::size_t number) {
    const Operand& operand = Base::OperandOf(instruction, number);
    const auto predicate = static_cast<unsigned>(instruction.Value(operand.value));
    return predicate + (operand.negate != kNoField && instruction.Value(operand.negate) != 0 ? 8 : 0);
  }
  static constexpr unsigned kFalse = kTrue + 8;
  static bool HasNoModifierBut(const Instruction& instruction, std::initializer_list<std::string_view> allowed) {
    return std::ranges::all_of(instruction.format->modifiers, [&](std::uint8_t field) {
      const std::string_view name = instruction.format->fields[field].names[instruction.Value(field)];
      return name.empty() || std::ranges::find(allowed, name) != allowed.end();
    });
  }
  static std::uint64_t NumberOf(const Instruction& instruction, std::size_t number) {
    return instruction.Value(Base::OperandOf(instruction, number).value);
  }

  Status Vote(const Instruction& instruction) {
    if (!HasModifier(instruction, ".ANY") || PredicateOf(instruction, 1) != kTrue ||
        PredicateOf(instruction, 2) != kTrue)
      return Base::Unknown(instruction);
    return Base::Set(instruction, Base::domain_.Active(conditional_ends));
  }
  Status Logic(const Instruction& instruction) {
    constexpr std::uint64_t kOr = 0xFC, kAnd = 0xC0;
    const std::uint64_t table = NumberOf(instruction, 5);
    const unsigned to = PredicateOf(instruction, 0);
    if ((table != kOr && table != kAnd) || to == kTrue || !Base::IsZero(instruction, 1) ||
        !Base::IsZero(instruction, 4) || PredicateOf(instruction, 6) != kFalse)
      return Base::Unknown(instruction);
    const Value a = Base::Source(instruction, 2), b = Base::Source(instruction, 3);
    const Value both = table == kOr ? Base::domain_.Or(a, b) : Base::domain_.And(a, b);
    predicates.insert_or_assign(to, Base::domain_.Any(both));
    return {};
  }
  Status ShiftAndAdd(const Instruction& instruction) {
    if (Base::IsNegated(instruction, 2) || Base::IsNegated(instruction, 3)) return Base::Unknown(instruction);
    const Value by = Base::domain_.Number(static_cast<std::uint32_t>(NumberOf(instruction, 4)));
    const Value shifted = Base::domain_.ShiftLeft(Base::Source(instruction, 2), by);
    const Value added = Base::Source(instruction, 3);
    if (const unsigned to = PredicateOf(instruction, 1); to != kTrue)
      predicates.insert_or_assign(to, Base::domain_.Carry(shifted, added));
    return Base::Set(instruction, Base::domain_.Add(shifted, added));
  }
  /// One source, and one predicate.
  Status AddCarry(const Instruction& instruction) {
    const auto carry = predicates.find(PredicateOf(instruction, 6));
    if (PredicateOf(instruction, 1) != kTrue || PredicateOf(instruction, 2) != kTrue || !Base::IsZero(instruction, 3) ||
        !Base::IsZero(instruction, 5) || Base::IsNegated(instruction, 3) || Base::IsNegated(instruction, 4) ||
        Base::IsNegated(instruction, 5) || PredicateOf(instruction, 7) != kFalse || carry == predicates.end())
      return Base::Unknown(instruction);
    return Base::Set(instruction, Base::domain_.Add(Base::Source(instruction, 4), carry->second));
  }
  Status LoadPair(const Instruction& instruction) {
    const auto reads = ConstantReadsOf(instruction);
    const std::uint64_t to = NumberOf(instruction, 0);
    if (reads.size() != 1 || reads[0].bank != 0 || reads[0].indexed || reads[0].unknown || reads[0].bytes != 8 ||
        !HasNoModifierBut(instruction, {".64"}) || to + 1 >= kUniformZeroRegister)
      return Base::Unknown(instruction);
    Base::uniform.insert_or_assign(static_cast<unsigned>(to), Base::domain_.Constant(reads[0].offset));
    Base::uniform.insert_or_assign(static_cast<unsigned>(to + 1), Base::domain_.Constant(reads[0].offset + 4));
    return {};
  }

  struct Place {
    std::optional<unsigned> general{}, uniform{};
    bool plain = true;  ///< 64 bits, no offset
  };
  static void Find(const Instruction& instruction, const Operand& operand, Place& place) {
    for (const Operand& part : operand.parts) Find(instruction, part, place);
    if (operand.value == kNoField) return;
    const auto value = static_cast<unsigned>(instruction.Value(operand.value));
    if (operand.kind == OperandKind::kUniformRegister) place.uniform = value;
    if (operand.kind == OperandKind::kNumber) place.plain &= value == 0;
    if (operand.kind != OperandKind::kRegister) return;
    place.general = value;
    for (const Suffix& suffix : operand.suffixes)
      place.plain &= instruction.format->fields[suffix.field].names[instruction.Value(suffix.field)] == ".64";
  }
  Status Add(const Instruction& instruction) {
    Place place;
    Find(instruction, Base::OperandOf(instruction, 0), place);
    if (instruction.format->operands.size() > 2) Find(instruction, Base::OperandOf(instruction, 2), place);
    const bool global = HasModifier(instruction, ".E") && HasModifier(instruction, ".ADD") &&
                        HasModifier(instruction, ".STRONG.GPU") &&
                        HasNoModifierBut(instruction, {".E", ".ADD", ".STRONG.GPU"});
    if (!global || !place.plain || !place.general || *place.general + 1 >= kZeroRegister)
      return Base::Unknown(instruction);
    Addition made{Base::Register(*place.general), Base::Register(*place.general + 1), Base::Source(instruction, 1),
                  Base::domain_.Number(0), Base::domain_.Number(0)};
    if (place.uniform) {
      made.descriptor_low = Base::Uniform(*place.uniform);
      made.descriptor_high = Base::Uniform(*place.uniform + 1);
    }
    additions.push_back(std::move(made));
    return {};
  }
};

}  // namespace gridloom::machine
