#include "rewriter/passes/param_reads.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::ScalarType;
using ptx::Statement;

bool IsParam(const Function& kernel, const ptx::Variable* variable) {
  return std::ranges::any_of(kernel.params, [&](const ptx::Variable& param) { return &param == variable; });
}

/// The operand that names the place, when this is a load of a parameter.
const ptx::AddressOperand* ParamRead(const Function& kernel, const Instruction& instruction) {
  if (instruction.opcode != Opcode::kLd || instruction.operands.size() != 2) return nullptr;
  const Operand& address = instruction.operands[1];
  if (address.kind != OperandKind::kAddress || address.address->base.size() != 1 || !address.address->elements.empty())
    return nullptr;
  return IsParam(kernel, address.address->base[0].variable) ? address.address.get() : nullptr;
}

/// Registers that a load writes, each a whole one.
bool CanReplace(const Instruction& load) {
  const Operand& to = load.operands[0];
  const auto whole = [](const Operand& one) {
    return one.kind == OperandKind::kRegister && one.variable != nullptr && one.variable->vector == 1 &&
           one.element == 0 && one.variable->bytes() >= 2 && one.variable->bytes() <= 8;
  };
  const auto whole_or_none = [&](const Operand& one) { return one.kind == OperandKind::kSink || whole(one); };
  return to.kind == OperandKind::kVector ? std::ranges::all_of(to.elements, whole_or_none) : whole(to);
}

/// A register of any type, moved or loaded as bits.
ScalarType BitsLike(const ptx::Variable& variable) {
  switch (variable.bytes()) {
    case 2: return ScalarType::kB16;
    case 4: return ScalarType::kB32;
    default: return ScalarType::kB64;
  }
}

/// One function's reads.
class Reads {
 public:
  Reads(FunctionEditor& editor, std::string base, std::uint32_t first, std::string_view space)
      : editor_(editor),
        base_(std::move(base)),
        space_(space),
        first_(first),
        layout_(ptx::LayoutParams(editor.function())) {}

  std::string Replace() {
    EditStatements(*editor_.function().body, [this](Statement& statement, Replacement& replacement) {
      auto* const instruction = std::get_if<Instruction>(&statement);
      const auto* const address = instruction == nullptr ? nullptr : ParamRead(editor_.function(), *instruction);
      if (address == nullptr) return;
      Move(*instruction, Loaded(*instruction, *address), replacement);
      replacement.drop = true;
    });
    return text_;
  }

 private:
  std::uint32_t OffsetOf(const ptx::AddressOperand& address) const {
    const auto& params = editor_.function().params;
    const auto param =
        std::ranges::find_if(params, [&](const ptx::Variable& one) { return &one == address.base[0].variable; });
    return layout_.offsets[static_cast<std::size_t>(param - params.begin())] +
           static_cast<std::uint32_t>(address.offset + address.base[0].offset);
  }

  /// The registers that a load like this one has loaded.
  const std::vector<std::string>& Loaded(const Instruction& load, const ptx::AddressOperand& address) {
    const bool vector = load.operands[0].kind == OperandKind::kVector;
    std::vector<Operand> whole;
    if (!vector) whole.push_back(load.operands[0]);
    const std::vector<Operand>& to = vector ? load.operands[0].elements : whole;
    std::string name = space_.empty() ? "ld." : "ld." + std::string(space_) + ".";
    if (load.vector_width() > 1) name += "v" + std::to_string(load.vector_width()) + ".";
    name += ptx::Info(load.type()).text;
    std::string bits;
    for (const Operand& one : to) bits += one.kind == OperandKind::kSink ? "_" : std::to_string(one.variable->bytes());
    const std::uint32_t offset = OffsetOf(address);
    auto& registers = loaded_[{offset, name, bits}];
    if (!registers.empty()) return registers;
    std::string list;
    for (const Operand& one : to) {
      registers.push_back(one.kind == OperandKind::kSink ? "_"
                                                         : editor_.NewRegister(BitsLike(*one.variable), "parameter"));
      list += (list.empty() ? "" : ", ") + registers.back();
    }
    text_ += name + " " + (vector ? "{" + list + "}" : list) + ", [" + base_ + "+" + std::to_string(first_ + offset) +
             "];\n";
    return registers;
  }

  void Move(const Instruction& load, const std::vector<std::string>& from, Replacement& replacement) {
    std::vector<Operand> whole;
    const bool vector = load.operands[0].kind == OperandKind::kVector;
    if (!vector) whole.push_back(load.operands[0]);
    const std::vector<Operand>& to = vector ? load.operands[0].elements : whole;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i].kind == OperandKind::kSink) continue;
      const std::string type = "b" + std::to_string(8 * to[i].variable->bytes());
      auto moves = editor_.Text("mov." + type + " " + from[i] + ", " + from[i] + ";", load.loc);
      auto& move = std::get<Instruction>(moves.front());
      move.operands[0] = to[i];
      move.guard = load.guard;
      replacement.before.push_back(std::move(moves.front()));
    }
  }

  FunctionEditor& editor_;
  const std::string base_;
  const std::string_view space_;
  const std::uint32_t first_;
  const ptx::ParamLayout layout_;
  std::map<std::tuple<std::uint32_t, std::string, std::string>, std::vector<std::string>> loaded_;
  std::string text_;
};

}  // namespace

const Instruction* OtherParamUse(const Function& kernel) {
  const Instruction* other = nullptr;
  ptx::VisitStatements(*kernel.body, [&](const Statement& statement) {
    const auto* const instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr || other != nullptr) return;
    if (ParamRead(kernel, *instruction) != nullptr && CanReplace(*instruction)) return;
    for (const Operand& operand : instruction->operands) {
      ptx::VisitOperand(operand, [&](const Operand& one) {
        if (one.kind == OperandKind::kSymbol && IsParam(kernel, one.variable)) other = instruction;
      });
    }
  });
  return other;
}

std::string ReplaceParamReads(FunctionEditor& editor, const std::string& base, std::uint32_t first,
                              std::string_view space) {
  return Reads(editor, base, first, space).Replace();
}

}  // namespace gridloom::passes
