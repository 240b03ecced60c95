// Fetching what lanes are about to go through (fetch_ahead.h).

#include "sim/exec/compiler/warp_fetch_ahead.h"

#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr std::uint64_t kCacheLine = 64;
/// Between the first lane and the last one: beyond, lanes do not lie side by side.
constexpr std::uint64_t kMostSpan = 4096;

}  // namespace

/// How far the warps have fetched that this call of the function runs, of an array: i64.
llvm::AllocaInst* FetchAheadEmitter::FetchedUntil(std::uint64_t array) {
  llvm::AllocaInst*& slot = until_[array];
  if (!slot) {
    llvm::IRBuilder<> at(w_.entry, w_.entry->begin());
    slot = at.CreateAlloca(at.getInt64Ty(), nullptr, "fetched");
    at.CreateStore(at.getInt64(0), slot);
  }
  return slot;
}

/// The lowest and the highest of the active lanes' addresses, where these lie apart: i64. Else null.
std::pair<Value*, Value*> FetchAheadEmitter::ExtentOf(Value* address) {
  const Shape& shape = values_.ShapeOf(address);
  if (!shape.vector() && !(shape.kind == ShapeKind::kIndexed && values_.ShapeOf(shape.index).vector())) return {};
  const FoundLanes found = values_.FoundLanesOf(address);
  auto* type = llvm::cast<llvm::FixedVectorType>(found.lanes->getType());
  const bool is_signed = found.base && found.index_signed;
  const unsigned bits = type->getScalarSizeInBits();
  const auto end = [&](bool highest) -> Value* {
    const llvm::APInt least = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getZero(bits);
    const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
    Value* lanes = w_.divergent ? b_.CreateSelect(w_.MaskLanes(), found.lanes,
                                                  llvm::ConstantInt::get(type, highest ? least : most))
                                : found.lanes;
    Value* chosen = highest ? b_.CreateIntMaxReduce(lanes, is_signed) : b_.CreateIntMinReduce(lanes, is_signed);
    if (!found.base) return chosen;
    Value* wide = is_signed ? b_.CreateSExt(chosen, b_.getInt64Ty()) : b_.CreateZExt(chosen, b_.getInt64Ty());
    return b_.CreateAdd(found.base, b_.CreateMul(wide, b_.getInt64(static_cast<std::uint64_t>(found.unit))));
  };
  return {end(false), end(true)};
}

/// Fetches from the first lane's place to the last one's and as far again, but for what has been fetched. An address
/// that is nobody's does no harm.
void FetchAheadEmitter::FetchAhead(const llvm::CallInst& call, std::uint64_t array) {
  const auto [low, high] = ExtentOf(call.getArgOperand(0));
  if (!low) return;
  llvm::AllocaInst* const slot = FetchedUntil(array);
  Value* until = b_.CreateLoad(b_.getInt64Ty(), slot);
  Value* span = b_.CreateSub(high, low);
  Value* end = b_.CreateAdd(b_.CreateAdd(high, span), b_.getInt64(kCacheLine));
  Value* fetched =
      b_.CreateAnd(b_.CreateICmpUGE(until, low), b_.CreateICmpULE(until, b_.CreateAdd(end, b_.getInt64(kCacheLine))));
  Value* from = b_.CreateSelect(fetched, until, low);
  Value* wanted = b_.CreateAnd(b_.CreateICmpULE(span, b_.getInt64(kMostSpan)), b_.CreateICmpULT(from, end));
  BasicBlock *before = b_.GetInsertBlock(), *fetch = w_.NewBlock("fetch"), *done = w_.NewBlock("fetched");
  b_.CreateCondBr(wanted, fetch, done);
  b_.SetInsertPoint(fetch);
  auto* at = b_.CreatePHI(b_.getInt64Ty(), 2);
  at->addIncoming(from, before);
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {b_.CreateIntToPtr(at, b_.getPtrTy()), b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  Value* next = b_.CreateAdd(at, b_.getInt64(kCacheLine));
  at->addIncoming(next, fetch);
  b_.CreateStore(next, slot);
  b_.CreateCondBr(b_.CreateICmpULT(next, end), fetch, done);
  b_.SetInsertPoint(done);
}

}  // namespace gridloom::exec
