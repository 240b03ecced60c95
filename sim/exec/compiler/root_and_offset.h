// Addresses as something plus a constant.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace gridloom::exec {

/// address = root + offset
struct RootAndOffset {
  llvm::Value* root;
  std::int64_t offset;
};

inline RootAndOffset Resolve(llvm::Value* address) {
  auto* add = llvm::dyn_cast<llvm::BinaryOperator>(address);
  const auto* constant = add && add->getOpcode() == llvm::Instruction::Add
                             ? llvm::dyn_cast<llvm::ConstantInt>(add->getOperand(1))
                             : nullptr;
  return constant ? RootAndOffset{add->getOperand(0), constant->getSExtValue()} : RootAndOffset{address, 0};
}

/// The same of all constants in it, also where it was widened behind an addition. Addresses with one root are as far
/// from each other as their offsets. The root is null of a constant, and may be narrower than the address.
inline RootAndOffset ResolveAll(llvm::Value* address) {
  RootAndOffset at{address, 0};
  bool wide = true;
  for (;;) {
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(at.root))
      return {nullptr,
              at.offset + static_cast<std::int64_t>(wide ? constant->getSExtValue() : constant->getZExtValue())};
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(at.root);
    if (!instruction) return at;
    if (wide && llvm::isa<llvm::ZExtInst>(instruction)) {
      wide = false;
      at.root = instruction->getOperand(0);
      continue;
    }
    const bool is_or = instruction->getOpcode() == llvm::Instruction::Or;
    if (!is_or && instruction->getOpcode() != llvm::Instruction::Add) return at;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(instruction->getOperand(1));
    const bool exact = is_or ? llvm::cast<llvm::PossiblyDisjointInst>(instruction)->isDisjoint()
                             : wide || instruction->hasNoUnsignedWrap();
    if (!constant || !exact) return at;
    at.offset += wide ? constant->getSExtValue() : static_cast<std::int64_t>(constant->getZExtValue());
    at.root = instruction->getOperand(0);
  }
}

}  // namespace gridloom::exec
