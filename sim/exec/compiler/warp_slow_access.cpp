// Loads and stores that fail the check: one out-of-line function per access size, which hands all lanes to a runtime helper.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// <32*n x iB> @gl.load_slow.B(ptr warp, i32 mask, i32 line, i64 imm, <32 x i64> addresses): calls the helper. One per
/// access size; out of line, because every access has such a path in both copies of its block.
llvm::Function* WarpFunction::SlowLoadFunction(unsigned bytes) {
  const std::string name = "gl.load_slow." + std::to_string(bytes);
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Type* data = llvm::FixedVectorType::get(b_.getIntNTy(std::min(bytes, 8u) * 8), kWarpSize * std::max(1u, bytes / 8));
  llvm::Function* function = OutOfLine(name, data, {});
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  Value* out = AlignedAlloca(b, data);
  Value* addresses = AlignedAlloca(b, function->getArg(4)->getType());
  b.CreateAlignedStore(function->getArg(4), addresses, llvm::Align(64));
  CallHelperFrom(b, function, Helper::kLoadSlow, {out, addresses});
  b.CreateRet(b.CreateAlignedLoad(data, out, llvm::Align(64)));
  return function;
}

/// iB @gl.load_one_slow.B: the same where all lanes load from one address (i64), 8 bytes or less.
llvm::Function* WarpFunction::SlowLoadOneFunction(unsigned bytes) {
  const std::string name = "gl.load_one_slow." + std::to_string(bytes);
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Type* data = b_.getIntNTy(bytes * 8);
  llvm::Function* function = OutOfLine(name, data, {}, b_.getInt64Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  Value* out = AlignedAlloca(b, llvm::ArrayType::get(data, kWarpSize));
  Value* addresses = AlignedAlloca(b, WarpType(b_.getInt64Ty()));
  b.CreateAlignedStore(b.CreateVectorSplat(kWarpSize, function->getArg(4)), addresses, llvm::Align(64));
  CallHelperFrom(b, function, Helper::kLoadSlow, {out, addresses});
  Value* lane = b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, function->getArg(1), b.getTrue());
  b.CreateRet(b.CreateLoad(data, b.CreateGEP(data, out, lane)));
  return function;
}

/// The same for stores: one more argument, the data lane by lane.
llvm::Function* WarpFunction::SlowStoreFunction(unsigned bytes) {
  const std::string name = "gl.store_slow." + std::to_string(bytes);
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Type* data = llvm::FixedVectorType::get(b_.getIntNTy(std::min(bytes, 8u) * 8), kWarpSize * std::max(1u, bytes / 8));
  llvm::Function* function = OutOfLine(name, b_.getVoidTy(), {data});
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  Value* addresses = AlignedAlloca(b, function->getArg(4)->getType());
  Value* values = AlignedAlloca(b, data);
  b.CreateAlignedStore(function->getArg(4), addresses, llvm::Align(64));
  b.CreateAlignedStore(function->getArg(5), values, llvm::Align(64));
  CallHelperFrom(b, function, Helper::kStoreSlow, {addresses, values});
  b.CreateRetVoid();
  return function;
}

Value* WarpFunction::SlowImm(const Access& access) {
  return access.imm ? access.imm : b_.getInt64(SlowAccessImm(access.bytes, access.space, access.strong, access.site));
}

std::vector<Value*> WarpFunction::SlowLoad(Value* host, const Access& access) {
  if (half_warp()) host = Unpack(host);
  Value* raw = b_.CreateCall(SlowLoadFunction(access.bytes), {warp_, WarpMask(), access.line, SlowImm(access), host});
  auto* wide = llvm::FixedVectorType::get(access.element, kWarpSize * access.count);
  std::vector<Value*> parts = Deinterleave(b_.CreateBitCast(raw, wide), access.count);
  if (half_warp())
    for (Value*& part : parts) part = Pack(part);
  return parts;
}

/// What all active lanes load from one place.
std::vector<Value*> WarpFunction::SlowLoadOne(Value* host, const Access& access) {
  const WholeWarp whole(*this);
  std::vector<Value*> parts;
  if (access.bytes > 8) {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_, b_.getTrue());
    for (Value* part : SlowLoad(Splat(host), access)) parts.push_back(b_.CreateExtractElement(part, lane));
    return parts;
  }
  Value* raw = b_.CreateCall(SlowLoadOneFunction(access.bytes), {warp_, mask_, access.line, SlowImm(access), host});
  Value* wide = b_.CreateBitCast(raw, llvm::FixedVectorType::get(access.element, access.count));
  for (unsigned part = 0; part < access.count; ++part) parts.push_back(b_.CreateExtractElement(wide, part));
  return parts;
}

void WarpFunction::SlowStore(Value* host, const Access& access, std::vector<Value*> values) {
  if (half_warp()) {
    host = Unpack(host);
    for (Value*& value : values) value = Unpack(value);
  }
  llvm::Function* function = SlowStoreFunction(access.bytes);
  Value* data = b_.CreateBitCast(Interleave(values), function->getArg(5)->getType());
  b_.CreateCall(function, {warp_, WarpMask(), access.line, SlowImm(access), host, data});
}

}  // namespace gridloom::exec
