#include "sim/trace/meaning_builder.h"

#include <algorithm>
#include <vector>

#include "rewriter/ptx/defuse.h"

namespace gridloom::trace {
namespace {

using Kind = Term::Kind;

/// Calls `visit` for the operand's parts that say what is read: registers, constants, names. Those inside an address
/// are followed by its offset.
template <typename Visit>
void VisitParts(const ptx::Operand& operand, const Visit& visit) {
  visit(operand);
  for (const ptx::Operand& element : operand.elements) VisitParts(element, visit);
  if (operand.address == nullptr) return;
  for (const ptx::Operand& base : operand.address->base) VisitParts(base, visit);
  for (const ptx::Operand& element : operand.address->elements) VisitParts(element, visit);
}

}  // namespace

void MeaningBuilder::BeginFunction() {
  registers_.clear();
  carry_ = 0;
}

Term MeaningBuilder::RegisterOf(const ptx::Variable& variable, std::uint32_t index) {
  const auto [known, is_new] = registers_.try_emplace({&variable, index}, made_.registers + 1);
  if (is_new) ++made_.registers;
  return {Kind::kRegister, known->second};
}

Term MeaningBuilder::Carry() {
  if (carry_ == 0) carry_ = ++made_.registers;
  return {Kind::kRegister, carry_};
}

std::uint32_t MeaningBuilder::TextOf(std::string_view text) {
  const auto known = texts_.find(text);
  if (known != texts_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(made_.texts.size());
  made_.texts.emplace_back(text);
  texts_.emplace(text, number);
  return number;
}

void MeaningBuilder::AddSources(const ptx::Operand& operand, const Operands& reads, std::vector<Term>& sources) {
  VisitParts(operand, [&](const ptx::Operand& part) {
    switch (part.kind) {
      case ptx::OperandKind::kRegister:
        if (reads.contains(&part)) sources.push_back(RegisterOf(*part.variable, part.index));
        break;
      case ptx::OperandKind::kInt: sources.push_back({Kind::kNumber, part.int_literal.value}); break;
      case ptx::OperandKind::kFloat: sources.push_back({Kind::kNumber, part.float_literal.bits}); break;
      case ptx::OperandKind::kSpecial: sources.push_back({Kind::kName, TextOf(part.text)}); break;
      case ptx::OperandKind::kSymbol:
        sources.push_back({Kind::kName, TextOf(part.text)});
        if (part.offset != 0) sources.push_back({Kind::kOffset, static_cast<std::uint64_t>(part.offset)});
        break;
      default: break;
    }
  });
  if (operand.address != nullptr)
    sources.push_back({Kind::kOffset, static_cast<std::uint64_t>(operand.address->offset)});
}

void MeaningBuilder::Add(const ptx::Instruction& instruction, std::size_t entries) {
  std::vector<Term> results, sources;
  bool partial = instruction.guard.has_value(), plain = true;
  Operands reads;
  ptx::VisitUses(instruction, [&](const ptx::Operand& operand) { reads.insert(&operand); });
  ptx::VisitDefs(instruction, [&](const ptx::Operand& operand) {
    results.push_back(RegisterOf(*operand.variable, operand.index));
    partial |= operand.element != 0;
  });
  for (const ptx::Operand& operand : instruction.operands) {
    AddSources(operand, reads, sources);
    // What is taken of a register otherwise than whole, the text would not say.
    VisitParts(operand, [&](const ptx::Operand& part) { plain &= part.IsPlain(); });
  }
  if (ptx::WritesCarry(instruction)) results.push_back(Carry());
  if (ptx::ReadsCarry(instruction)) sources.push_back(Carry());
  const std::size_t unguarded = sources.size();
  ptx::VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
    sources.push_back(RegisterOf(variable, index));
  });
  constexpr std::size_t kMost = 255;
  if (results.size() > kMost || sources.size() > kMost) can_say_ = false;
  for (std::size_t i = 0; i < entries; ++i) {
    Meaning meaning;
    meaning.terms = static_cast<std::uint32_t>(made_.terms.size());
    if (entries == 1 && plain) meaning.text = TextOf(instruction.FullName());
    if (i + 1 == entries) meaning.results = static_cast<std::uint8_t>(std::min(results.size(), kMost));
    meaning.sources = static_cast<std::uint8_t>(std::min(sources.size(), kMost));
    if (sources.size() != unguarded) meaning.flags |= Meaning::kGuarded;
    if (partial) meaning.flags |= Meaning::kPartial;
    made_.terms.insert(made_.terms.end(), results.begin(), results.begin() + meaning.results);
    made_.terms.insert(made_.terms.end(), sources.begin(), sources.begin() + meaning.sources);
    made_.of.push_back(meaning);
  }
}

}  // namespace gridloom::trace
