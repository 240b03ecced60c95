#include "sim/exec/compiler/lift_nan.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

#include "sim/exec/compiler/promote_registers.h"

namespace gridloom::exec {
namespace {

using llvm::Value;

constexpr const char* kRegisterCast = "gl.register";
constexpr const char* kConversion = "gl.conversion";
constexpr const char* kFloatPrefix = "gl.float.";
constexpr const char* kFlushPrefix = "gl.flush.";
constexpr std::uint32_t kNaN = 0x7fffffff;

llvm::StringRef CalleeOf(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() ? call->getCalledFunction()->getName() : llvm::StringRef();
}

bool IsFloatIntrinsic(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return call && call->getType()->isFloatingPointTy();
}

bool IsArithmetic(const llvm::Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
    case llvm::Instruction::FNeg: return true;
    default: return IsFloatIntrinsic(instruction) || CalleeOf(instruction).starts_with(kFloatPrefix);
  }
}

/// Whether a value is a result of arithmetic, or one of two that were chosen between.
bool IsResult(const Value& value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
  if (!instruction) return false;
  const auto* select = llvm::dyn_cast<llvm::SelectInst>(instruction);
  return select ? IsResult(*select->getTrueValue()) || IsResult(*select->getFalseValue()) : IsArithmetic(*instruction);
}

/// Whether the instruction computes an f32: its NaN is not an operand's. Changes of sign count, as those of a GPU do;
/// so does what is rounded from an exact result in f64, but not an f64 of the program's.
bool Computes(const llvm::Instruction& instruction) {
  if (!instruction.getType()->isFloatTy()) return false;
  switch (instruction.getOpcode()) {
    case llvm::Instruction::FPExt: return instruction.getOperand(0)->getType()->isHalfTy();
    case llvm::Instruction::FPTrunc: return IsResult(*instruction.getOperand(0));
    default: return IsArithmetic(instruction);
  }
}

/// Whether the instruction passes on one of its operands, bits and all.
bool Carries(const llvm::Instruction& instruction) {
  if (instruction.getType()->isFloatTy() && CalleeOf(instruction).starts_with(kFlushPrefix)) return true;
  if (llvm::isa<llvm::PHINode, llvm::SelectInst>(instruction)) return true;
  return llvm::isa<llvm::BitCastInst>(instruction) && instruction.getMetadata(kRegisterCast) != nullptr;
}

bool IsWord(const llvm::Type* type) { return type->isFloatTy() || type->isIntegerTy(32); }

/// Whether the instruction sees the bits of an operand. Arithmetic and the lifter's own casts do not.
bool Sees(const llvm::Instruction& instruction) {
  if (Computes(instruction) || Carries(instruction) || llvm::isa<llvm::FCmpInst, llvm::BitCastInst>(instruction))
    return false;
  if (llvm::isa<llvm::CastInst>(instruction))
    return instruction.getOperand(0)->getType()->isIntegerTy() || instruction.getMetadata(kConversion) != nullptr;
  return !IsFloatIntrinsic(instruction);
}

/// Whether the instruction gives no NaN, or one with the right bits: numbers made of integers, and what the lifter puts
/// together itself.
bool IsRightAnyway(const llvm::Instruction& instruction) {
  if (llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst>(instruction)) return true;
  return llvm::isa<llvm::BitCastInst>(instruction) && instruction.getMetadata(kRegisterCast) == nullptr;
}

class Canonicalizer {
 public:
  explicit Canonicalizer(llvm::Function& function) : function_(function) {}

  void Run() {
    FindComputed();
    if (reached_.empty()) return;
    std::vector<llvm::Instruction*> seers;
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
      for (llvm::Instruction& instruction : *block)
        if (Sees(instruction)) seers.push_back(&instruction);
    }
    for (llvm::Instruction* const seer : seers) Visit(*seer);
  }

 private:
  /// What may be a result of arithmetic: those, and what carries them.
  void FindComputed() {
    std::vector<Value*> pending;
    for (llvm::BasicBlock& block : function_)
      for (llvm::Instruction& instruction : block)
        if (Computes(instruction)) pending.push_back(&instruction);
    while (!pending.empty()) {
      Value* const value = pending.back();
      pending.pop_back();
      if (!reached_.insert(value).second) continue;
      for (llvm::User* user : value->users()) {
        auto* carrier = llvm::dyn_cast<llvm::Instruction>(user);
        if (carrier && Carries(*carrier) && IsWord(carrier->getType())) pending.push_back(carrier);
      }
    }
  }

  void Visit(llvm::Instruction& seer) {
    for (llvm::Use& use : seer.operands()) {
      if (!IsWord(use->getType()) || !reached_.contains(use.get())) continue;
      const Origins origins = OriginsOf(use.get());
      if (origins.computed.empty()) continue;
      if (origins.others) {
        for (llvm::Instruction* const origin : origins.computed) CanonicalizeOrigin(*origin);
      } else {
        Value*& known = seen_[{use.get(), seer.getParent()}];
        if (!known) known = Canonical(*use.get(), &seer);
        use.set(known);
      }
    }
  }

  struct Origins {
    std::vector<llvm::Instruction*> computed;
    bool others = false;  ///< values that keep their bits
  };

  Origins OriginsOf(Value* value) const {
    Origins origins;
    llvm::SmallPtrSet<Value*, 16> visited;
    std::vector<Value*> pending{value};
    while (!pending.empty()) {
      Value* const at = pending.back();
      pending.pop_back();
      if (!visited.insert(at).second) continue;
      if (const auto* constant = llvm::dyn_cast<llvm::Constant>(at)) {
        origins.others |= IsOtherNaN(*constant);
        continue;
      }
      auto* const instruction = llvm::dyn_cast<llvm::Instruction>(at);
      if (!instruction || done_.contains(at)) {
        origins.others = true;
      } else if (Computes(*instruction)) {
        origins.computed.push_back(instruction);
      } else if (IsRightAnyway(*instruction)) {
        continue;
      } else if (Carries(*instruction)) {
        for (llvm::Use& operand : instruction->operands())
          if (IsWord(operand->getType())) pending.push_back(operand.get());
      } else {
        origins.others = true;
      }
    }
    return origins;
  }

  static bool IsOtherNaN(const llvm::Constant& constant) {
    if (llvm::isa<llvm::UndefValue>(constant)) return false;
    llvm::APInt bits(32, 0);
    if (const auto* number = llvm::dyn_cast<llvm::ConstantFP>(&constant)) bits = number->getValueAPF().bitcastToAPInt();
    else if (const auto* word = llvm::dyn_cast<llvm::ConstantInt>(&constant)) bits = word->getValue();
    else return true;
    return (bits.getZExtValue() & 0x7fffffff) > 0x7f800000 && bits != kNaN;
  }

  /// The value with a NaN's bits, as an f32 or as its bits.
  Value* Canonical(Value& value, llvm::Instruction* before) {
    llvm::IRBuilder<> b(before);
    Value* number = b.CreateBitCast(&value, b.getFloatTy());
    Value* bits = b.CreateBitCast(&value, b.getInt32Ty());
    Value* right = b.CreateSelect(b.CreateFCmpUNO(number, number), b.getInt32(kNaN), bits);
    Value* result = b.CreateBitCast(right, value.getType());
    done_.insert(result);
    return result;
  }

  /// Where results meet what was not computed, each has its bits from the beginning.
  void CanonicalizeOrigin(llvm::Instruction& origin) {
    if (!origins_done_.insert(&origin).second) return;
    std::vector<llvm::Use*> uses;
    for (llvm::Use& use : origin.uses()) {
      const auto& user = *llvm::cast<llvm::Instruction>(use.getUser());
      if (Carries(user) || Sees(user)) uses.push_back(&use);
    }
    Value* const result = Canonical(origin, origin.getNextNode());
    for (llvm::Use* const use : uses) use->set(result);
  }

  llvm::Function& function_;
  llvm::SmallPtrSet<Value*, 32> reached_;
  llvm::DenseMap<std::pair<Value*, llvm::BasicBlock*>, Value*> seen_;
  llvm::SmallPtrSet<Value*, 32> done_;
  llvm::SmallPtrSet<llvm::Instruction*, 8> origins_done_;
};

}  // namespace

void MarkRegisterCast(llvm::Value* cast) {
  auto* instruction = llvm::dyn_cast<llvm::BitCastInst>(cast);
  if (instruction) instruction->setMetadata(kRegisterCast, llvm::MDNode::get(instruction->getContext(), {}));
}

void MarkConversion(llvm::Value* extended) {
  auto* instruction = llvm::dyn_cast<llvm::FPExtInst>(extended);
  if (instruction) instruction->setMetadata(kConversion, llvm::MDNode::get(instruction->getContext(), {}));
}

void CanonicalizeNans(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    PromoteRegisters(function);
    Canonicalizer(function).Run();
  }
}

}  // namespace gridloom::exec
