// Calls of functions of the program, by name and by address.
#include "sim/exec/compiler/warp_calls.h"

#include <llvm/Support/raw_ostream.h>

#include <cstddef>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

void DeviceCalls::EmitCall(llvm::CallInst& call) {
  llvm::Function* callee = call.getCalledFunction();
  llvm::Function* warp_callee = callee ? module_.warp_of.lookup(callee) : nullptr;
  if (!warp_callee) {
    module_.error = "call of '" + (callee ? callee->getName().str() : std::string("?")) + "', which has no body";
    return;
  }
  record_groups_.SaveRecordCursor();
  record_buffer_.ReturnRecordCursor();
  llvm::SmallVector<Value*, 8> args{w_.warp, w_.mask};
  for (const llvm::Use& arg : call.args()) args.push_back(values_.Lanes(arg.get()));
  Value* result = b_.CreateCall(warp_callee, args);
  record_buffer_.TakeRecordCursor();
  if (!call.getType()->isVoidTy()) values_.Define(&call, result);
}

/// R @gl.indirect(ptr warp, i32 mask, i64 target, lanes…): one call for lanes that agree on the target.
llvm::Function* DeviceCalls::IndirectTarget(llvm::FunctionType* type) {
  std::string name = "gl.indirect.";
  {
    llvm::raw_string_ostream out(name);
    out << *type;
  }
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, w_.target->getParent());
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  BasicBlock* bad = BasicBlock::Create(b_.getContext(), "bad", function);
  auto* choose = b.CreateSwitch(function->getArg(2), bad, 8);
  for (const auto& [index, target] : module_.address_taken) {
    llvm::Function* warp_target = module_.warp_of.lookup(target);
    if (!warp_target || warp_target->getReturnType() != type->getReturnType() ||
        warp_target->arg_size() + 1 != function->arg_size()) {
      continue;
    }
    bool same = true;
    for (unsigned i = 2; i < warp_target->arg_size(); ++i)
      same &= warp_target->getArg(i)->getType() == function->getArg(i + 1)->getType();
    if (!same) continue;
    BasicBlock* block = BasicBlock::Create(b_.getContext(), "call", function);
    choose->addCase(b.getInt64((std::uint64_t{index} + 1) * 16), block);
    llvm::IRBuilder<> at(block);
    llvm::SmallVector<Value*, 8> args{function->getArg(0), function->getArg(1)};
    for (unsigned i = 3; i < function->arg_size(); ++i) args.push_back(function->getArg(i));
    Value* result = at.CreateCall(warp_target, args);
    if (type->getReturnType()->isVoidTy()) {
      at.CreateRetVoid();
    } else {
      at.CreateRet(result);
    }
  }
  // A pointer that is no function of this signature: the runtime reports it and does not return.
  b.SetInsertPoint(bad);
  Value* target = b.CreateAlloca(b.getInt64Ty());
  b.CreateStore(function->getArg(2), target);
  Value* pointers = b.CreateAlloca(b.getPtrTy());
  b.CreateStore(target, pointers);
  const auto field = [&](Value* base, std::size_t offset) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  };
  Value* table = field(field(function->getArg(0), offsetof(WarpCtx, launch)), offsetof(LaunchCtx, helpers));
  auto* helper_type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getInt64Ty(), b.getPtrTy()}, false);
  b.CreateCall(helper_type, field(table, static_cast<std::size_t>(Helper::kInvalidCall) * sizeof(void*)),
               {function->getArg(0), function->getArg(1), b.getInt32(0), b.getInt64(0), pointers});
  b.CreateUnreachable();
  return function;
}

void DeviceCalls::EmitIndirectCall(llvm::CallInst& call) {
  record_groups_.SaveRecordCursor();
  llvm::Type* result_type = WarpType(call.getType());
  llvm::SmallVector<llvm::Type*, 8> types{b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty()};
  llvm::SmallVector<Value*, 8> values;
  for (unsigned i = 1; i < call.arg_size(); ++i) {
    values.push_back(values_.Lanes(call.getArgOperand(i)));
    types.push_back(values.back()->getType());
  }
  llvm::Function* target = IndirectTarget(llvm::FunctionType::get(result_type, types, false));
  const bool has_result = !call.getType()->isVoidTy();
  const auto invoke = [&](Value* mask, Value* pointer) {
    llvm::SmallVector<Value*, 8> args{w_.warp, mask, pointer};
    args.append(values.begin(), values.end());
    record_buffer_.ReturnRecordCursor();
    llvm::CallInst* const result = b_.CreateCall(target, args);
    record_buffer_.TakeRecordCursor();
    return result;
  };
  Value* pointer = call.getArgOperand(0);
  if (values_.ShapeOf(pointer).uniform()) {
    Value* result = invoke(w_.mask, values_.Base(pointer));
    if (has_result) values_.Define(&call, result);
    return;
  }
  // One call per distinct target, until every active lane has made its call.
  llvm::IRBuilder<> at(w_.entry, w_.entry->begin());
  Value* pointers = values_.Lanes(pointer);
  Value* buffer = AlignedAlloca(at, pointers->getType());
  llvm::AllocaInst* results = has_result ? at.CreateAlloca(result_type) : nullptr;
  b_.CreateStore(pointers, buffer);
  if (results) b_.CreateStore(llvm::Constant::getNullValue(result_type), results);
  WhileLanesAreLeft(w_, [&](Value* left) {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getTrue());
    Value* chosen = b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), buffer, lane));
    Value* again = b_.CreateLoad(pointers->getType(), buffer);
    Value* group = b_.CreateAnd(w_.ToBits(b_.CreateICmpEQ(again, w_.Splat(chosen))), left);
    Value* result = invoke(group, chosen);
    if (results)
      b_.CreateStore(w_.SelectLanes(w_.ToLaneMask(group), result, b_.CreateLoad(result_type, results)), results);
    return b_.CreateXor(left, group);
  });
  if (results) values_.Define(&call, b_.CreateLoad(result_type, results));
}

}  // namespace gridloom::exec
