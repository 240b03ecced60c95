#include "sim/exec/compiler/lift_flush.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

#include "sim/exec/compiler/promote_registers.h"

namespace gridloom::exec {
namespace {

constexpr const char* kFlushMark = "gl.flush.f32";

using Visited = llvm::SmallPtrSet<const llvm::Value*, 16>;

// Whether an f32, or the i32 that holds its bits, is never subnormal. Values on a cycle of phis count as such until one
// is found that may be.
bool IsNormal(const llvm::Value* value, const llvm::Function* mark, Visited& visited) {
  if (!visited.insert(value).second) return true;
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantFP>(value)) return !constant->getValueAPF().isDenormal();
  if (const auto* bits = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    const std::uint64_t word = bits->getZExtValue();
    return (word & 0x7f800000) != 0 || (word & 0x7fffffff) == 0;
  }
  if (const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) return IsNormal(cast->getOperand(0), mark, visited);
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(value)) {
    return llvm::all_of(phi->incoming_values(), [&](const llvm::Use& use) { return IsNormal(use, mark, visited); });
  }
  if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(value)) {
    return IsNormal(select->getTrueValue(), mark, visited) && IsNormal(select->getFalseValue(), mark, visited);
  }
  if (const auto* call = llvm::dyn_cast<llvm::CallInst>(value)) {
    if (call->getCalledFunction() == mark) return true;
    const llvm::Intrinsic::ID id = call->getIntrinsicID();
    return (id == llvm::Intrinsic::fabs || id == llvm::Intrinsic::copysign) &&
           IsNormal(call->getArgOperand(0), mark, visited);
  }
  if (const auto* unary = llvm::dyn_cast<llvm::UnaryOperator>(value)) {
    return unary->getOpcode() == llvm::Instruction::FNeg && IsNormal(unary->getOperand(0), mark, visited);
  }
  if (const auto* extend = llvm::dyn_cast<llvm::FPExtInst>(value)) return extend->getSrcTy()->isHalfTy();
  return llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst>(value);
}

// Two vector instructions on AVX-512: a test of the exponent bits, a masked `and`.
void Expand(llvm::CallInst& call) {
  llvm::IRBuilder<> b(&call);
  llvm::Value* bits = b.CreateBitCast(call.getArgOperand(0), b.getInt32Ty());
  llvm::Value* tiny = b.CreateICmpEQ(b.CreateAnd(bits, 0x7f800000), b.getInt32(0));
  llvm::Value* flushed = b.CreateSelect(tiny, b.CreateAnd(bits, 0x80000000), bits);
  call.replaceAllUsesWith(b.CreateBitCast(flushed, b.getFloatTy()));
  call.eraseFromParent();
}

}  // namespace

llvm::Value* MarkFlush(llvm::IRBuilder<>& builder, llvm::Value* x) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantFP>(x)) {
    const llvm::APFloat& value = constant->getValueAPF();
    return value.isDenormal() ? llvm::ConstantFP::getZero(x->getType(), value.isNegative()) : constant;
  }
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  llvm::FunctionCallee mark = module.getOrInsertFunction(kFlushMark, x->getType(), x->getType());
  auto* function = llvm::cast<llvm::Function>(mark.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  return builder.CreateCall(mark, {x});
}

void ExpandFlushes(llvm::Module& module) {
  llvm::Function* mark = module.getFunction(kFlushMark);
  if (!mark) return;
  llvm::SmallPtrSet<llvm::Function*, 8> functions;
  for (llvm::User* user : mark->users()) functions.insert(llvm::cast<llvm::Instruction>(user)->getFunction());
  for (llvm::Function* function : functions) PromoteRegisters(*function);
  // Calls that go away make no other value subnormal, so one round in any order is enough.
  std::vector<llvm::CallInst*> marks;
  for (llvm::User* user : mark->users()) marks.push_back(llvm::cast<llvm::CallInst>(user));
  std::vector<llvm::CallInst*> needed;
  for (llvm::CallInst* call : marks) {
    Visited visited;
    if (IsNormal(call->getArgOperand(0), mark, visited)) {
      call->replaceAllUsesWith(call->getArgOperand(0));
      call->eraseFromParent();
    } else {
      needed.push_back(call);
    }
  }
  for (llvm::CallInst* call : needed) Expand(*call);
  mark->eraseFromParent();
}

}  // namespace gridloom::exec
