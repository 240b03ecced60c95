#include "rewriter/analysis/access.h"

#include <algorithm>
#include <charconv>

namespace gridloom::analysis {

using ptx::Instruction;
using ptx::Mod;
using ptx::StateSpace;
using ptx::Trait;

namespace {

std::vector<const ptx::AddressOperand*> AddressesOf(const Instruction& instruction) {
  std::vector<const ptx::AddressOperand*> addresses;
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind == ptx::OperandKind::kAddress && operand.address != nullptr)
      addresses.push_back(operand.address.get());
  }
  return addresses;
}

bool MayBeGlobal(StateSpace space) {
  return space == StateSpace::kNone || space == StateSpace::kGlobal || space == StateSpace::kGeneric;
}

/// ld, st, atom and the like: one address, the type says how many bytes.
AccessClass Typed(const Instruction& instruction) {
  AccessClass result;
  const StateSpace space = instruction.space();
  if (!MayBeGlobal(space)) return result;
  const auto addresses = AddressesOf(instruction);
  const std::uint32_t bytes = ptx::BytesOf(instruction.type()) * instruction.vector_width();
  if (addresses.size() != 1 || bytes == 0) {
    result.unknown = "its address cannot be read";
    return result;
  }
  const bool reads = instruction.Has(Trait::kReads | Trait::kAtomic), writes = instruction.Has(Trait::kWrites);
  result.accesses.push_back({reads, writes, addresses[0], bytes, space != StateSpace::kGlobal});
  return result;
}

/// cp.async.{ca,cg}.shared.global [to], [from], bytes: reads `bytes` from `from`. What is bulk has its size in a
/// register.
AccessClass Copy(const Instruction& instruction) {
  AccessClass result;
  const auto addresses = AddressesOf(instruction);
  if (addresses.empty()) return result;  // commit_group, wait_group
  const bool plain = !instruction.Has(Mod::kBulk) && instruction.Has(Mod::kAsync) && addresses.size() == 2 &&
                     instruction.operands.size() >= 3 && instruction.operands[2].kind == ptx::OperandKind::kInt;
  if (plain) {
    result.accesses.push_back(
        {true, false, addresses[1], static_cast<std::uint32_t>(instruction.operands[2].int_literal.value), false});
  } else if (std::ranges::any_of(instruction.modifiers, [](const ptx::Modifier& m) { return m.text == "global"; }) ||
             instruction.Has(Mod::kTensor)) {
    result.unknown = "its extent is not in the instruction";
  }
  return result;
}

struct Shape {
  std::uint32_t m = 0, n = 0, k = 0;
};

/// The shape that a modifier such as m16n16k16 says; zeros when there is none.
Shape ShapeOf(const Instruction& instruction) {
  for (const ptx::Modifier& modifier : instruction.modifiers) {
    Shape shape;
    const char *at = modifier.text.data(), *end = at + modifier.text.size();
    const auto number = [&](char letter, std::uint32_t& value) {
      if (at == end || *at != letter) return false;
      const auto [next, error] = std::from_chars(at + 1, end, value);
      at = next;
      return error == std::errc();
    };
    if (number('m', shape.m) && number('n', shape.n) && number('k', shape.k) && at == end) return shape;
  }
  return {};
}

bool IsFragmentAccess(const Instruction& instruction) {
  return instruction.Has(Mod::kLoad) || instruction.Has(Mod::kStore);
}

/// wmma.load.a, .b, .c and wmma.store.d (ISA 9.7.14.4): fragments are an m by k, k by n or m by n matrix, one row or
/// column of which is contiguous.
AccessClass Matrix(const Instruction& instruction) {
  AccessClass result;
  const auto has = [&](std::string_view text) {
    return std::ranges::any_of(instruction.modifiers,
                               [&](const ptx::Modifier& modifier) { return modifier.text == text; });
  };
  const StateSpace space = instruction.space();
  const auto addresses = AddressesOf(instruction);
  if (addresses.empty() || !MayBeGlobal(space)) return result;
  const Shape shape = ShapeOf(instruction);
  const std::uint32_t element = ptx::BitsOf(instruction.type()) / 8;
  const bool load = has("load");
  if (addresses.size() != 1 || shape.m == 0 || element == 0 || (!load && !has("store"))) {
    result.unknown = "its extent is not known";
    return result;
  }
  const std::uint32_t rows = has("b") ? shape.k : shape.m, columns = has("a") ? shape.k : shape.n;
  MemoryAccess access{load, !load, addresses[0], (has("col") ? rows : columns) * element, space != StateSpace::kGlobal};
  access.rows = has("col") ? columns : rows;
  access.element_bytes = element;
  access.default_stride = has("col") ? rows : columns;
  if (instruction.operands.size() > 2) access.stride = &instruction.operands[2];
  result.accesses.push_back(access);
  return result;
}

/// Whatever else names memory: no access when it names another space.
AccessClass Other(const Instruction& instruction) {
  AccessClass result;
  if (!AddressesOf(instruction).empty() && MayBeGlobal(instruction.space()))
    result.unknown = "its accesses are not known";
  return result;
}

}  // namespace

AccessClass ClassifyAccess(const Instruction& instruction) {
  if (instruction.Has(Trait::kTyped)) return Typed(instruction);
  if (instruction.Has(Trait::kCopies)) return Copy(instruction);
  if (instruction.Has(Trait::kHint | Trait::kRows)) return {};
  switch (instruction.info().cls) {
    case ptx::OpClass::kTensor: return IsFragmentAccess(instruction) ? Matrix(instruction) : Other(instruction);
    case ptx::OpClass::kMbarrier:  // in shared memory
    case ptx::OpClass::kTexture:
    case ptx::OpClass::kCall:
    case ptx::OpClass::kBranch: return {};
    case ptx::OpClass::kUnknown: {
      AccessClass result;
      result.unknown = "the instruction is not known";
      return result;
    }
    default: return Other(instruction);
  }
}

}  // namespace gridloom::analysis
