#include "sim/exec/compiler/pending_set.h"

#include <llvm/IR/Module.h>

#include "sim/exec/compiler/out_of_line.h"

namespace gridloom::exec {
namespace {

using llvm::BasicBlock;
using llvm::Value;

constexpr unsigned kMostWordsInLine = 4;
constexpr unsigned kMostElementsInLine = 64;  // that are stored one by one

/// Both within one word, first <= last.
std::uint64_t BitsFromTo(unsigned first, unsigned last) {
  return (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
}

unsigned CountOf(const llvm::AllocaInst* array) {
  return static_cast<unsigned>(llvm::cast<llvm::ArrayType>(array->getAllocatedType())->getNumElements());
}

Value* WordOf(llvm::IRBuilder<>& b, llvm::AllocaInst* set, unsigned word) {
  return b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP2_32(set->getAllocatedType(), set, 0, word));
}

/// A function that looks at a set and changes nothing: (set, `numbers` times an i64) -> i64.
llvm::Function* SetFunction(llvm::IRBuilder<>& b, const char* name, unsigned numbers, llvm::IRBuilder<>& inside) {
  llvm::SmallVector<llvm::Type*, 4> types(1 + numbers, b.getInt64Ty());
  types[0] = b.getPtrTy();
  llvm::Function* function = FunctionBeside(b, name, llvm::FunctionType::get(b.getInt64Ty(), types, false), inside);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::WillReturn);
  function->setMemoryEffects(llvm::MemoryEffects::argMemOnly(llvm::ModRefInfo::Ref));
  return function;
}

/// i64 @gl.any_between(ptr set, i64 from, i64 to)
llvm::Function* AnyBetweenFunction(llvm::IRBuilder<>& caller) {
  llvm::IRBuilder<> b(caller.getContext());
  llvm::Function* const function = SetFunction(caller, "gl.any_between", 2, b);
  if (!b.GetInsertBlock()) return function;
  Value *const set = function->getArg(0), *const from = function->getArg(1), *const to = function->getArg(2);
  Value* const all = b.getInt64(~std::uint64_t{0});
  Value *const first = b.CreateLShr(from, 6), *const last = b.CreateLShr(to, 6);
  BasicBlock *const entry = b.GetInsertBlock(), *const loop = BasicBlock::Create(b.getContext(), "word", function),
                    *const end = BasicBlock::Create(b.getContext(), "end", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode *const at = b.CreatePHI(b.getInt64Ty(), 2), *const before = b.CreatePHI(b.getInt64Ty(), 2);
  Value* bits = b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), set, at));
  Value* const above = b.CreateShl(all, b.CreateAnd(from, 63));
  Value* const below = b.CreateLShr(all, b.CreateSub(b.getInt64(63), b.CreateAnd(to, 63)));
  bits = b.CreateAnd(bits, b.CreateSelect(b.CreateICmpEQ(at, first), above, all));
  bits = b.CreateAnd(bits, b.CreateSelect(b.CreateICmpEQ(at, last), below, all));
  Value* const any = b.CreateOr(before, bits);
  Value* const next = b.CreateAdd(at, b.getInt64(1));
  at->addIncoming(first, entry);
  at->addIncoming(next, loop);
  before->addIncoming(b.getInt64(0), entry);
  before->addIncoming(any, loop);
  b.CreateCondBr(b.CreateICmpEQ(at, last), end, loop);
  b.SetInsertPoint(end);
  b.CreateRet(any);
  return function;
}

/// i64 @gl.next_after(ptr set, i64 words, i64 current, i64 but_not): from the word of `current` around to it, which is
/// looked at twice: first at the bits behind `current`, in the end at the others.
llvm::Function* NextAfterFunction(llvm::IRBuilder<>& caller) {
  llvm::IRBuilder<> b(caller.getContext());
  llvm::Function* const function = SetFunction(caller, "gl.next_after", 3, b);
  if (!b.GetInsertBlock()) return function;
  Value *const set = function->getArg(0), *const words = function->getArg(1);
  Value *const current = function->getArg(2), *const but_not = function->getArg(3);
  Value* const all = b.getInt64(~std::uint64_t{0});
  Value* const home = b.CreateLShr(current, 6);
  Value* const upto = b.CreateLShr(all, b.CreateSub(b.getInt64(63), b.CreateAnd(current, 63)));
  Value* const other = b.CreateNot(b.CreateShl(b.getInt64(1), b.CreateAnd(but_not, 63)));
  BasicBlock *const entry = b.GetInsertBlock(), *const loop = BasicBlock::Create(b.getContext(), "word", function),
                    *const found = BasicBlock::Create(b.getContext(), "found", function);
  BasicBlock *const next = BasicBlock::Create(b.getContext(), "next", function), *const end = BasicBlock::Create(
                                                                                     b.getContext(), "none", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* const step = b.CreatePHI(b.getInt64Ty(), 2);
  Value* const sum = b.CreateAdd(home, step);
  Value* const at = b.CreateSelect(b.CreateICmpUGE(sum, words), b.CreateSub(sum, words), sum);
  Value* bits = b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), set, at));
  bits = b.CreateAnd(bits, b.CreateSelect(b.CreateICmpEQ(step, b.getInt64(0)), b.CreateNot(upto), all));
  bits = b.CreateAnd(bits, b.CreateSelect(b.CreateICmpEQ(step, words), upto, all));
  bits = b.CreateAnd(bits, b.CreateSelect(b.CreateICmpEQ(at, b.CreateLShr(but_not, 6)), other, all));
  b.CreateCondBr(b.CreateICmpNE(bits, b.getInt64(0)), found, next);
  b.SetInsertPoint(next);
  Value* const plus = b.CreateAdd(step, b.getInt64(1));
  step->addIncoming(b.getInt64(0), entry);
  step->addIncoming(plus, next);
  b.CreateCondBr(b.CreateICmpUGT(plus, words), end, loop);
  b.SetInsertPoint(found);
  b.CreateRet(b.CreateAdd(b.CreateShl(at, 6), b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b.getFalse())));
  b.SetInsertPoint(end);
  b.CreateRet(but_not);
  return function;
}

}  // namespace

Value* AnyBetween(llvm::IRBuilder<>& b, llvm::AllocaInst* set, unsigned from, unsigned to) {
  if (to / 64 - from / 64 >= kMostWordsInLine)
    return b.CreateCall(AnyBetweenFunction(b), {set, b.getInt64(from), b.getInt64(to)});
  Value* any = nullptr;
  for (unsigned word = from / 64; word <= to / 64; ++word) {
    const unsigned first = word == from / 64 ? from % 64 : 0;
    const unsigned last = word == to / 64 ? to % 64 : 63;
    Value* bits = b.CreateAnd(WordOf(b, set, word), b.getInt64(BitsFromTo(first, last)));
    any = any ? b.CreateOr(any, bits) : bits;
  }
  return any;
}

Value* NextAfter(llvm::IRBuilder<>& b, llvm::AllocaInst* set, unsigned current, unsigned but_not) {
  const unsigned words = CountOf(set), home = current / 64;
  if (words > kMostWordsInLine)
    return b.CreateCall(NextAfterFunction(b), {set, b.getInt64(words), b.getInt64(current), b.getInt64(but_not)});
  Value* choice = b.getInt64(but_not);
  const auto prefer = [&](unsigned word, std::uint64_t bits) {
    if (but_not / 64 == word) bits &= ~(std::uint64_t{1} << (but_not % 64));
    if (bits == 0) return;
    Value* found = b.CreateAnd(WordOf(b, set, word), b.getInt64(bits));
    Value* index =
        b.CreateAdd(b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, found, b.getFalse()), b.getInt64(64 * word));
    choice = b.CreateSelect(b.CreateICmpNE(found, b.getInt64(0)), index, choice);
  };
  // Least preferred first: what comes before the current block, then what comes after it, nearest last.
  prefer(home, BitsFromTo(0, current % 64));
  for (unsigned word = home; word-- > 0;) prefer(word, ~std::uint64_t{0});
  for (unsigned word = words; word-- > home + 1;) prefer(word, ~std::uint64_t{0});
  prefer(home, ~BitsFromTo(0, current % 64));
  return choice;
}

void ClearArray(llvm::IRBuilder<>& b, llvm::AllocaInst* array) {
  const auto* type = llvm::cast<llvm::ArrayType>(array->getAllocatedType());
  if (CountOf(array) <= kMostElementsInLine) {
    b.CreateStore(llvm::Constant::getNullValue(array->getAllocatedType()), array);
  } else {
    b.CreateMemSet(array, b.getInt8(0),
                   std::uint64_t{CountOf(array)} * type->getElementType()->getScalarSizeInBits() / 8,
                   array->getAlign());
  }
}

}  // namespace gridloom::exec
