// Code that memcheck adds (docs/memcheck.md). A global access has a number and, in the unit's memory, the bounds of
// what it touched last: inside of them it needs nobody. Every access to shared memory is told to the runtime, which
// answers whether the code may go ahead or has to go lane by lane.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cstddef>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

WarpFunction::Window WarpFunction::SiteWindow(const llvm::CallInst& call, Access& access) {
  const auto [it, inserted] = module_.site_of.try_emplace(&call, module_.check_sites);
  if (inserted) ++module_.check_sites;
  access.site = it->second;
  Value* sites = WarpField(offsetof(WarpCtx, check_sites), b_.getPtrTy());
  const auto word = [&](std::uint64_t n) {
    return b_.CreateLoad(b_.getInt64Ty(),
                         b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), sites, access.site * 2ull + n));
  };
  Window window{word(0), word(1), nullptr, 0};
  window.changes = true;
  return window;
}

namespace {

/// Sets the pattern of rows of `lanes` lanes when the lanes stand so.
bool StandInRows(const LanePattern& pattern, unsigned lanes, SharedAccessImm& imm) {
  bool uniform = true, consecutive = true;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::int64_t offset = pattern[lane] - pattern[lane / lanes * lanes];
    uniform &= offset == 0;
    consecutive &= offset == static_cast<std::int64_t>(lane % lanes) * imm.bytes;
  }
  if (!uniform && !consecutive) return false;
  imm.pattern = uniform ? SharedAccessImm::kUniform : SharedAccessImm::kConsecutive;
  imm.row_lanes = static_cast<std::uint8_t>(lanes);
  return true;
}

}  // namespace

/// i1: the runtime has nothing against the access and has noted it.
Value* WarpFunction::SharedChecked(Value* address, const Access& access, AccessKind kind) {
  SharedAccessImm imm;
  imm.bytes = static_cast<std::uint8_t>(access.bytes);
  imm.kind = kind;
  imm.strong = access.strong && kind != AccessKind::kAtomic ? 1 : 0;
  const std::optional<Linear> linear = AsLinear(address);
  const unsigned lengths[] = {kWarpSize, kWarpSize / 2, kWarpSize / 4};
  const bool in_rows = linear && !linear->valid && std::ranges::any_of(lengths, [&](unsigned lanes) {
                         return StandInRows(linear->pattern, lanes, imm);
                       });
  Value* offsets = nullptr;
  if (!in_rows) {
    offsets = Lanes(address);
  } else {
    offsets = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt64Ty(), kWarpSize / imm.row_lanes));
    for (unsigned row = 0; row < kWarpSize / imm.row_lanes; ++row) {
      Value* first =
          b_.CreateAdd(linear->base, b_.getInt64(static_cast<std::uint64_t>(linear->pattern[row * imm.row_lanes])));
      offsets = b_.CreateInsertElement(offsets, first, row);
    }
  }
  Value* answer = b_.CreateCall(SharedCheckFunction(offsets->getType()),
                                {warp_, mask_, access.line, b_.getInt64(PackImm(imm)), offsets});
  return b_.CreateICmpNE(answer, b_.getInt32(0));
}

/// i32 @gl.check_shared.N(ptr warp, i32 mask, i32 line, i64 imm, <N x i64> offsets): of 32 lanes, or of the first lane
/// of each row.
llvm::Function* WarpFunction::SharedCheckFunction(llvm::Type* offsets_type) {
  const std::string name =
      "gl.check_shared." + std::to_string(llvm::cast<llvm::FixedVectorType>(offsets_type)->getNumElements());
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getInt32Ty(), {}, offsets_type);
  function->removeFnAttr(llvm::Attribute::Cold);
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  Value* out = b.CreateAlloca(b.getInt32Ty());
  Value* offsets = AlignedAlloca(b, function->getArg(4)->getType());
  b.CreateStore(function->getArg(4), offsets);
  CallHelperFrom(b, function, Helper::kCheckShared, {out, offsets});
  b.CreateRet(b.CreateLoad(b.getInt32Ty(), out));
  return function;
}

// ---------------------------------------------------------------------------------------------------------------------
// Invalid bits (invalid_values.h). The runtime is asked by warps that have read what nobody had written.
// ---------------------------------------------------------------------------------------------------------------------

/// `then` where one of the lanes (i32) is not 0.
void WarpFunction::IfAny(Value* lanes, const std::function<void()>& then) {
  BasicBlock* some = NewBlock("invalid");
  BasicBlock* done = NewBlock("valid");
  b_.CreateCondBr(b_.CreateICmpNE(lanes, b_.getInt32(0)), some, done, Unlikely());
  {
    Scope scope(*this);
    b_.SetInsertPoint(some);
    then();
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

/// What a warp reads that has met nothing but valid memory is valid.
void WarpFunction::EmitLoadedBits(llvm::CallInst& call, const MarkerInfo& info) {
  llvm::Type* const type = WarpType(call.getType());
  Value* const addresses = Lanes(call.getArgOperand(0));
  Value* const flag = b_.CreateLoad(
      b_.getInt32Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, invalid_reads)));
  const auto ask = [&]() -> std::vector<Value*> {
    return {CallRarely(LoadedBitsFunction(call.getType()),
                       {warp_, mask_, call.getArgOperand(call.arg_size() - 1), b_.getInt64(info.imm), addresses})};
  };
  const auto none = [&]() -> std::vector<Value*> { return {llvm::Constant::getNullValue(type)}; };
  Define(&call, FastOrSlow(b_.CreateICmpEQ(flag, b_.getInt32(0)), none, ask)[0]);
}

/// <32 x iN> @gl.loaded_bits.N(ptr warp, i32 mask, i32 line, i64 imm, <32 x i64> addresses)
llvm::Function* WarpFunction::LoadedBitsFunction(llvm::Type* element) {
  const std::string name = "gl.loaded_bits." + std::to_string(element->getScalarSizeInBits());
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Type* const type = WarpType(element);
  llvm::Function* function = OutOfLine(name, type, {});
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  Value* out = AlignedAlloca(b, type);
  Value* addresses = AlignedAlloca(b, function->getArg(4)->getType());
  b.CreateStore(function->getArg(4), addresses);
  CallHelperFrom(b, function, Helper::kLoadedBits, {out, addresses});
  b.CreateRet(b.CreateLoad(type, out));
  return function;
}

void WarpFunction::EmitStoredBits(llvm::CallInst& call, const MarkerInfo& info) {
  Value* const addresses = Lanes(call.getArgOperand(0));
  llvm::SmallVector<Value*, 12> arguments{warp_, nullptr, call.getArgOperand(call.arg_size() - 1),
                                          b_.getInt64(info.imm), addresses};
  Value* any = nullptr;
  for (unsigned i = 1; i + 1 < call.arg_size(); ++i) {
    Value* const bits = Lanes(call.getArgOperand(i));
    arguments.push_back(bits);
    any = any ? b_.CreateOr(any, bits) : bits;
  }
  arguments[1] = b_.CreateAnd(ToBits(b_.CreateIsNotNull(any)), mask_);
  IfAny(arguments[1], [&] { CallRarely(StoredBitsFunction(any->getType(), call.arg_size() - 2), arguments); });
}

/// void @gl.stored_bits.N.count(ptr warp, i32 mask, i32 line, i64 imm, <32 x i64> addresses, <32 x iN>…)
llvm::Function* WarpFunction::StoredBitsFunction(llvm::Type* bits, unsigned count) {
  const std::string name =
      "gl.stored_bits." + std::to_string(bits->getScalarSizeInBits()) + "." + std::to_string(count);
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getVoidTy(), llvm::SmallVector<llvm::Type*, 8>(count, bits));
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  llvm::SmallVector<Value*, 8> arguments;
  for (unsigned i = 4; i < function->arg_size(); ++i) {
    arguments.push_back(AlignedAlloca(b, function->getArg(i)->getType()));
    b.CreateStore(function->getArg(i), arguments.back());
  }
  CallHelperFrom(b, function, Helper::kStoredBits, arguments);
  b.CreateRetVoid();
  return function;
}

void WarpFunction::EmitUseInvalid(llvm::CallInst& call, const MarkerInfo& info) {
  Value* const lanes = b_.CreateAnd(ToBits(Lanes(call.getArgOperand(0))), mask_);
  IfAny(lanes, [&] {
    CallRarely(UseInvalidFunction(),
               {warp_, lanes, call.getArgOperand(call.arg_size() - 1), b_.getInt64(info.imm), b_.getInt32(0)});
  });
}

/// void @gl.use_invalid(ptr warp, i32 mask, i32 line, i64 imm, i32 nothing)
llvm::Function* WarpFunction::UseInvalidFunction() {
  const std::string name = "gl.use_invalid";
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getVoidTy(), {}, b_.getInt32Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  CallHelperFrom(b, function, Helper::kUseInvalid, {});
  b.CreateRetVoid();
  return function;
}

// ---------------------------------------------------------------------------------------------------------------------
// Barriers and .sync instructions (sync_checks.h)
// ---------------------------------------------------------------------------------------------------------------------

/// The marks that need no call, or one only while lanes of the warp wait. False: it is none of these.
bool WarpFunction::EmitSyncCheck(const llvm::CallInst& call, const MarkerInfo& info) {
  if (info.helper == Helper::kEnterSync) {
    // While all lanes are together they miss nobody, and a mask of all lanes holds those that are there.
    const auto* members = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
    return !divergent_ && members && members->isMinusOne() && !UnpackImm<SyncCheckImm>(info.imm).counted;
  }
  const bool passes = info.helper == Helper::kPassSync && UnpackImm<PassSyncImm>(info.imm).counted == 0;
  if (info.helper != Helper::kLeaveSync && !passes) return false;
  IfAny(b_.CreateLoad(b_.getInt32Ty(),
                      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, sync_waits))),
        [&] { CallHelper(info.helper, mask_, call.getArgOperand(call.arg_size() - 1), info.imm, {}); });
  return true;
}

void WarpFunction::CheckOrder(std::uint64_t among) {
  CallHelper(Helper::kCheckOrder, mask_, b_.getInt32(0), among, {});
}

}  // namespace gridloom::exec
