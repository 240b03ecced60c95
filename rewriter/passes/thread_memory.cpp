#include "rewriter/passes/thread_memory.h"

#include <algorithm>

#include "rewriter/ptx/defuse.h"

namespace gridloom::passes {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::Variable;

namespace {

constexpr std::size_t kMostOrigins = 32;  // of a pointer; with more it may lead anywhere

bool IsOwn(const Operand& operand) {
  if (operand.kind != OperandKind::kSymbol || operand.variable == nullptr) return false;
  return operand.variable->space == StateSpace::kLocal || operand.variable->space == StateSpace::kParam;
}

const Operand* AddressOf(const Instruction& instruction) {
  const auto it = std::ranges::find(instruction.operands, OperandKind::kAddress, &Operand::kind);
  return it == instruction.operands.end() || it->address == nullptr ? nullptr : &*it;
}

bool Is64(const Instruction& instruction) {
  return ptx::BitsOf(instruction.type()) == 64 && instruction.vector_width() == 1;
}

/// Whether an instruction only computes: what it does with a pointer shows in its results.
bool OnlyComputes(const Instruction& instruction) { return ptx::IsArithmetic(instruction.info().cls); }

}  // namespace

const Operand* ArgumentsOf(const Instruction& call) {
  const Operand* const target = analysis::CallTargetOf(call);
  if (target == nullptr) return nullptr;
  const std::size_t at = static_cast<std::size_t>(target - call.operands.data()) + 1;
  return at < call.operands.size() && call.operands[at].kind == OperandKind::kList ? &call.operands[at] : nullptr;
}

const Operand* ResultsOf(const Instruction& call) {
  const Operand* const target = analysis::CallTargetOf(call);
  if (target == nullptr || target == call.operands.data()) return nullptr;
  return call.operands[0].kind == OperandKind::kList ? &call.operands[0] : nullptr;
}

const Operand* ArgumentOf(const Instruction& call, std::size_t number) {
  const Operand* const list = ArgumentsOf(call);
  return list != nullptr && number < list->elements.size() ? &list->elements[number] : nullptr;
}

ThreadMemory::ThreadMemory(const analysis::Cfg& cfg, Written written) : cfg_(cfg), written_(written) {
  for (std::uint32_t i = 0; i < cfg.instructions().size(); ++i) {
    const Instruction& instruction = *cfg.instructions()[i].instruction;
    ptx::VisitDefs(instruction, [&](const Operand& reg) {
      if (reg.variable == nullptr) return;
      const analysis::RegisterId id = registers_.Add(*reg.variable, reg.index);
      if (id >= writers_.size()) writers_.resize(id + 1);
      if (writers_[id].empty() || writers_[id].back() != i) writers_[id].push_back(i);
    });
    if (!instruction.Has(ptx::Trait::kCalls)) continue;
    const auto note = [&](const Operand* list, bool result) {
      for (std::size_t n = 0; list != nullptr && n < list->elements.size(); ++n) {
        const Operand& element = list->elements[n];
        if (element.kind == OperandKind::kSymbol && element.variable != nullptr)
          calls_with_[element.variable].push_back({.call = i, .result = result, .number = n});
      }
    };
    note(ResultsOf(instruction), true);
    note(ArgumentsOf(instruction), false);
  }
}

analysis::RegisterId ThreadMemory::IdOf(const Operand& reg) const {
  return reg.variable == nullptr ? analysis::kNoRegister : registers_.Find(*reg.variable, reg.index);
}

const std::vector<std::uint32_t>& ThreadMemory::Writers(const Operand& reg) const {
  static const std::vector<std::uint32_t> kNone;
  const analysis::RegisterId id = IdOf(reg);
  return id == analysis::kNoRegister || id >= writers_.size() ? kNone : writers_[id];
}

const std::vector<CallArgument>& ThreadMemory::CallsWith(const Variable& param) const {
  static const std::vector<CallArgument> kNone;
  const auto it = calls_with_.find(&param);
  return it == calls_with_.end() ? kNone : it->second;
}

// A register that is written once has that value wherever it has one. Sums and conversions of addresses lead on.
std::optional<Place> ThreadMemory::PointsTo(const Operand& value, int depth) const {
  if (IsOwn(value) && value.IsPlain()) return Place{value.variable, value.offset};
  if (!value.IsPlainRegister() || depth == 0) return std::nullopt;
  const auto& writers = Writers(value);
  if (writers.size() != 1) return std::nullopt;
  const Instruction& from = *cfg_.instructions()[writers[0]].instruction;
  const auto& operands = from.operands;
  if (from.guard || !Is64(from) || operands.size() < 2) return std::nullopt;
  if (from.opcode == Opcode::kMov || (from.opcode == Opcode::kCvta && from.space() == StateSpace::kLocal))
    return PointsTo(operands[1], depth - 1);
  if ((from.opcode != Opcode::kAdd && from.opcode != Opcode::kSub) || operands.size() != 3) return std::nullopt;
  const bool minus = from.opcode == Opcode::kSub;
  const bool turned = !minus && operands[1].kind == OperandKind::kInt;
  const Operand &base = operands[turned ? 2 : 1], &step = operands[turned ? 1 : 2];
  if (step.kind != OperandKind::kInt || step.int_literal.value + 0x8000'0000u > 0xffff'ffffu) return std::nullopt;
  auto place = PointsTo(base, depth - 1);
  const auto distance = static_cast<std::int64_t>(step.int_literal.value);
  if (place) place->offset += minus ? -distance : distance;
  return place;
}

std::optional<Place> ThreadMemory::Named(const Instruction& access) const {
  const Operand* const operand = AddressOf(access);
  if (operand == nullptr || !operand->address->elements.empty() || operand->address->base.size() != 1)
    return std::nullopt;
  auto place = PointsTo(operand->address->base[0]);
  if (place) place->offset += operand->address->offset;
  return place;
}

const ThreadMemory::Use& ThreadMemory::UseOf(const Variable& variable) {
  const auto it = uses_.find(&variable);
  return it != uses_.end() ? it->second : uses_.emplace(&variable, Follow(variable)).first->second;
}

/// Registers that may hold an address in the variable, and what is done with them, whichever way control goes.
ThreadMemory::Use ThreadMemory::Follow(const Variable& variable) const {
  Use use;
  Pointers pointers(registers_.size());
  for (bool more = true; more && use.wild == nullptr;) {
    more = false;
    use.accesses.clear();
    use.loose.clear();
    for (std::uint32_t i = 0; i < cfg_.instructions().size(); ++i)
      more = FollowOperands(i, variable, pointers, use) || more;
  }
  std::ranges::stable_sort(use.accesses, {}, &PlaceAccess::instruction);
  return use;
}

/// Where in the variable an operand's pointers come from; nothing when it has none.
std::set<std::int64_t> ThreadMemory::From(const Operand& operand, const Variable& variable,
                                          const Pointers& pointers) const {
  std::set<std::int64_t> from;
  if (const auto place = PointsTo(operand); place && place->variable == &variable) return {place->offset};
  if (operand.variable == &variable) from.insert(operand.offset);
  if (operand.kind == OperandKind::kRegister) {
    const analysis::RegisterId id = IdOf(operand);
    if (id != analysis::kNoRegister) from.insert(pointers[id].begin(), pointers[id].end());
  }
  for (const Operand& element : operand.elements) from.merge(From(element, variable, pointers));
  return from;
}

/// A pointer that a call gets: what the callee writes there is an access. False when that is not known.
bool ThreadMemory::PassesKnown(std::uint32_t call, std::size_t argument, const Operand& pointer,
                               const Variable& variable, Use& use) const {
  const ptx::Function* const callee = analysis::CalleeOf(*cfg_.instructions()[call].instruction);
  const auto place = PointsTo(pointer);
  const auto bytes = callee != nullptr ? written_(*callee, argument) : std::nullopt;
  if (!place || place->variable != &variable || !bytes) return false;
  use.accesses.push_back(
      {.instruction = call, .offset = place->offset, .bytes = *bytes, .writes = true, .whole = true});
  return true;
}

/// A load or store that may be one of the variable.
void ThreadMemory::FollowAccess(std::uint32_t at, const Operand& address, const Variable& variable,
                                const Pointers& pointers, Use& use) const {
  const Instruction& instruction = *cfg_.instructions()[at].instruction;
  std::set<std::int64_t> from;
  for (const Operand& base : address.address->base) from.merge(From(base, variable, pointers));
  if (from.empty()) return;
  const bool writes = instruction.opcode == Opcode::kSt;
  const std::uint32_t bytes = ptx::BytesOf(instruction.type()) * instruction.vector_width();
  const auto place = Named(instruction);
  if (!writes && instruction.opcode != Opcode::kLd) use.wild = &instruction;
  else if (place && place->variable == &variable)
    use.accesses.push_back({.instruction = at,
                            .offset = place->offset,
                            .bytes = bytes,
                            .writes = writes,
                            .whole = instruction.vector_width() == 1});
  else use.loose.push_back({.instruction = at, .from = std::move(from), .bytes = bytes, .writes = writes});
}

/// True when a register may hold a pointer that it was not known to hold.
bool ThreadMemory::FollowSum(const Instruction& instruction, const Variable& variable,
                             const std::set<std::int64_t>& from, Pointers& pointers, Use& use) const {
  bool more = false;
  ptx::VisitDefs(instruction, [&](const Operand& reg) {
    const analysis::RegisterId id = IdOf(reg);
    if (id == analysis::kNoRegister || registers_[id].is_predicate()) return;
    const auto place = PointsTo(reg);
    const std::size_t before = pointers[id].size();
    if (place && place->variable == &variable) pointers[id].insert(place->offset);
    else pointers[id].insert(from.begin(), from.end());
    more = more || pointers[id].size() != before;
    if (pointers[id].size() > kMostOrigins) use.wild = &instruction;
  });
  return more;
}

/// True when it found a further pointer.
bool ThreadMemory::FollowOperands(std::uint32_t at, const Variable& variable, Pointers& pointers, Use& use) const {
  const Instruction& instruction = *cfg_.instructions()[at].instruction;
  if (const Operand* const address = AddressOf(instruction)) FollowAccess(at, *address, variable, pointers, use);
  if (instruction.Has(ptx::Trait::kCalls)) {
    const Operand* const list = ArgumentsOf(instruction);
    for (std::size_t n = 0; list != nullptr && n < list->elements.size(); ++n) {
      const bool pointer = !From(list->elements[n], variable, pointers).empty();
      if (pointer && !PassesKnown(at, n, list->elements[n], variable, use)) use.wild = &instruction;
    }
    return false;
  }
  const ptx::Form* const form = ptx::FormOf(instruction);
  std::set<std::int64_t> from;
  for (std::size_t n = 0; n < instruction.operands.size(); ++n) {
    if (ptx::detail::UseOf(instruction, form, n).reads) from.merge(From(instruction.operands[n], variable, pointers));
  }
  if (from.empty()) return false;
  if (OnlyComputes(instruction)) return FollowSum(instruction, variable, from, pointers, use);
  // st.param [argument], pointer
  const auto place = Named(instruction);
  const bool argument = instruction.opcode == Opcode::kSt && instruction.operands.size() > 1 && place &&
                        place->variable->space == StateSpace::kParam && place->offset == 0;
  const bool known =
      argument && !CallsWith(*place->variable).empty() &&
      std::ranges::all_of(CallsWith(*place->variable), [&](const CallArgument& call) {
        return !call.result && PassesKnown(call.call, call.number, instruction.operands[1], variable, use);
      });
  if (!known) use.wild = &instruction;
  return false;
}

}  // namespace gridloom::passes
