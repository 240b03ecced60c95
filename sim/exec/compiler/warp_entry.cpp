// Entry values: scalars that are the same in every block a warp runs, because they come from nothing but the launch,
// the CTA and the warp (parameters, special registers, addresses of variables, and plain arithmetic on those). They are
// computed once at the warp's start and need no slot; a slot would become a phi at every block the dispatcher can
// enter.
#include <algorithm>

#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

/// Cheap, and harmless for operands that a branch of the program would have kept from it.
bool IsPlain(const llvm::Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
    case llvm::Instruction::LShr:
    case llvm::Instruction::AShr:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::SExt:
    case llvm::Instruction::ICmp:
    case llvm::Instruction::Select:
    case llvm::Instruction::Freeze: return instruction.getType()->isIntegerTy();
    case llvm::Instruction::Call:
      return instruction.getType()->isIntegerTy() &&
             llvm::cast<llvm::CallInst>(instruction).hasFnAttr(llvm::Attribute::Speculatable);
    default: return false;
  }
}

}  // namespace

bool WarpValues::IsEntryValue(const Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction) return llvm::isa<llvm::Constant>(value);
  if (const auto it = is_entry_value_.find(instruction); it != is_entry_value_.end()) return it->second;
  bool is = false;
  if (const Shape& shape = ShapeOf(instruction); !shape.vector()) {
    const auto operands = [&] {
      return std::all_of(instruction->op_begin(), instruction->op_end(),
                         [&](const llvm::Use& use) { return IsEntryValue(use.get()); });
    };
    if (const MarkerInfo* info = module_.MarkerOf(*instruction)) {
      const bool fixed = info->kind == MarkerKind::kSpecial || info->kind == MarkerKind::kSymbol ||
                         info->kind == MarkerKind::kToGeneric ||
                         (info->kind == MarkerKind::kParam && llvm::isa<llvm::Constant>(instruction->getOperand(0)));
      is = fixed && operands();
    } else if (shape.kind == ShapeKind::kIndexed && llvm::isa<llvm::CastInst>(instruction)) {
      is = true;  // its base is zero, whatever its index
    } else {
      is = IsPlain(*instruction) && operands();
    }
  }
  is_entry_value_[instruction] = is;
  return is;
}

/// The scalar of an entry value, computed in the entry block.
Value* WarpValues::EntryBase(llvm::Instruction* instruction) {
  return w_.AtEntry("value" + std::to_string(reinterpret_cast<std::uintptr_t>(instruction)), [&] {
    // Operands must come from the entry block, too, not from the block that is being emitted.
    llvm::DenseMap<const Value*, Value*> bases = std::move(w_.base_cache);
    w_.base_cache.clear();
    EmitInstruction(*instruction);
    Value* value = w_.base_cache[instruction];
    w_.base_cache = std::move(bases);
    return value;
  });
}

}  // namespace gridloom::exec
