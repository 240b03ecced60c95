// Code that memcheck adds for invalid values, barriers and .sync instructions (docs/memcheck.md). The checks of
// accesses are in warp_window.cpp.
#include "sim/exec/compiler/warp_memcheck.h"

#include <cstddef>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// What a warp reads that has met nothing but valid memory is valid.
void MemcheckEmitter::EmitLoadedBits(llvm::CallInst& call, const MarkerInfo& info) {
  llvm::Type* const type = WarpType(call.getType());
  Value* const addresses = values_.Lanes(call.getArgOperand(0));
  Value* const flag = b_.CreateLoad(
      b_.getInt32Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), w_.warp, offsetof(WarpCtx, invalid_reads)));
  const auto ask = [&]() -> std::vector<Value*> {
    return {calls_.CallRarely(
        LoadedBitsFunction(call.getType()),
        {w_.warp, w_.mask, call.getArgOperand(call.arg_size() - 1), b_.getInt64(info.imm), addresses})};
  };
  const auto none = [&]() -> std::vector<Value*> { return {llvm::Constant::getNullValue(type)}; };
  values_.Define(&call, FastOrSlow(w_, b_.CreateICmpEQ(flag, b_.getInt32(0)), none, ask)[0]);
}

/// <32 x iN> @gl.loaded_bits.N(ptr warp, i32 mask, i32 line, i64 imm, <32 x i64> addresses)
llvm::Function* MemcheckEmitter::LoadedBitsFunction(llvm::Type* element) {
  const std::string name = "gl.loaded_bits." + std::to_string(element->getScalarSizeInBits());
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  llvm::Type* const type = WarpType(element);
  llvm::Function* function = calls_.OutOfLine(name, type, {});
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  Value* out = AlignedAlloca(b, type);
  Value* addresses = AlignedAlloca(b, function->getArg(4)->getType());
  b.CreateStore(function->getArg(4), addresses);
  CallHelperFrom(b, function, Helper::kLoadedBits, {out, addresses});
  b.CreateRet(b.CreateLoad(type, out));
  return function;
}

void MemcheckEmitter::EmitStoredBits(llvm::CallInst& call, const MarkerInfo& info) {
  Value* const addresses = values_.Lanes(call.getArgOperand(0));
  llvm::SmallVector<Value*, 12> arguments{w_.warp, nullptr, call.getArgOperand(call.arg_size() - 1),
                                          b_.getInt64(info.imm), addresses};
  Value* any = nullptr;
  for (unsigned i = 1; i + 1 < call.arg_size(); ++i) {
    Value* const bits = values_.Lanes(call.getArgOperand(i));
    arguments.push_back(bits);
    any = any ? b_.CreateOr(any, bits) : bits;
  }
  arguments[1] = b_.CreateAnd(w_.ToBits(b_.CreateIsNotNull(any)), w_.mask);
  IfAny(w_, arguments[1],
        [&] { calls_.CallRarely(StoredBitsFunction(any->getType(), call.arg_size() - 2), arguments); });
}

/// void @gl.stored_bits.N.count(ptr warp, i32 mask, i32 line, i64 imm, <32 x i64> addresses, <32 x iN>…)
llvm::Function* MemcheckEmitter::StoredBitsFunction(llvm::Type* bits, unsigned count) {
  const std::string name =
      "gl.stored_bits." + std::to_string(bits->getScalarSizeInBits()) + "." + std::to_string(count);
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  llvm::Function* function = calls_.OutOfLine(name, b_.getVoidTy(), llvm::SmallVector<llvm::Type*, 8>(count, bits));
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  llvm::SmallVector<Value*, 8> arguments;
  for (unsigned i = 4; i < function->arg_size(); ++i) {
    arguments.push_back(AlignedAlloca(b, function->getArg(i)->getType()));
    b.CreateStore(function->getArg(i), arguments.back());
  }
  CallHelperFrom(b, function, Helper::kStoredBits, arguments);
  b.CreateRetVoid();
  return function;
}

void MemcheckEmitter::EmitUseInvalid(llvm::CallInst& call, const MarkerInfo& info) {
  Value* const lanes = b_.CreateAnd(w_.ToBits(values_.Lanes(call.getArgOperand(0))), w_.mask);
  IfAny(w_, lanes, [&] {
    calls_.CallRarely(UseInvalidFunction(),
                      {w_.warp, lanes, call.getArgOperand(call.arg_size() - 1), b_.getInt64(info.imm), b_.getInt32(0)});
  });
}

/// void @gl.use_invalid(ptr warp, i32 mask, i32 line, i64 imm, i32 nothing)
llvm::Function* MemcheckEmitter::UseInvalidFunction() {
  const std::string name = "gl.use_invalid";
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  llvm::Function* function = calls_.OutOfLine(name, b_.getVoidTy(), {}, b_.getInt32Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  CallHelperFrom(b, function, Helper::kUseInvalid, {});
  b.CreateRetVoid();
  return function;
}

// ---------------------------------------------------------------------------------------------------------------------
// Barriers and .sync instructions (sync_checks.h)
// ---------------------------------------------------------------------------------------------------------------------

/// The marks that need no call, or one only while lanes of the warp wait. False: it is none of these.
bool MemcheckEmitter::EmitSyncCheck(const llvm::CallInst& call, const MarkerInfo& info) {
  if (info.helper == Helper::kEnterSync) {
    // While all lanes are together they miss nobody, and a mask of all lanes holds those that are there.
    const auto* members = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
    return !w_.divergent && members && members->isMinusOne() &&
           !UnpackImm<SyncCheckImm>(info.imm).has(SyncCheckImm::kCounted);
  }
  const bool passes = info.helper == Helper::kPassSync && UnpackImm<PassSyncImm>(info.imm).counted == 0;
  if (info.helper != Helper::kLeaveSync && !passes) return false;
  IfAny(w_,
        b_.CreateLoad(b_.getInt32Ty(),
                      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), w_.warp, offsetof(WarpCtx, sync_waits))),
        [&] { calls_.CallHelper(info.helper, w_.mask, call.getArgOperand(call.arg_size() - 1), info.imm, {}); });
  return true;
}

}  // namespace gridloom::exec
