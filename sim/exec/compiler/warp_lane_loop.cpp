// Loops that lanes leave one by one, at places in memory of their own: a gather takes as long for one lane as for all,
// so when few lanes are left they run the rest of the loop one after the other, as scalar code. Threads of a warp are
// independent where nothing makes them wait, so any order of theirs is right.
#include "sim/exec/compiler/warp_lane_loop.h"

#include <llvm/IR/IntrinsicInst.h>

#include <cstddef>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_guard.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_memory.h"
#include "sim/exec/compiler/warp_slow_access.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr unsigned kMostInstructions = 80, kMostBlocks = 8;

bool IsPlainType(const llvm::Type* type) {
  return type->isFloatTy() || type->isDoubleTy() || type->isIntegerTy(8) || type->isIntegerTy(16) ||
         type->isIntegerTy(32) || type->isIntegerTy(64);
}

/// Instructions whose scalar form is code of a few instructions, never a call, and is defined for every operand.
bool IsPlainOperation(const llvm::Instruction& instruction) {
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    switch (intrinsic->getIntrinsicID()) {
      case llvm::Intrinsic::smax:
      case llvm::Intrinsic::smin:
      case llvm::Intrinsic::umax:
      case llvm::Intrinsic::umin:
      case llvm::Intrinsic::fshl:
      case llvm::Intrinsic::fshr:
      case llvm::Intrinsic::fma:
      case llvm::Intrinsic::fabs:
      case llvm::Intrinsic::sqrt: return IsPlainType(instruction.getType());
      default: return false;
    }
  }
  switch (instruction.getOpcode()) {
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SDiv:
    case llvm::Instruction::URem:
    case llvm::Instruction::SRem: return false;
    case llvm::Instruction::PHI:
    case llvm::Instruction::ICmp:
    case llvm::Instruction::FCmp:
    case llvm::Instruction::Select:
    case llvm::Instruction::FNeg:
    case llvm::Instruction::ExtractValue: break;
    default:
      if (!instruction.isBinaryOp() && !instruction.isCast()) return false;
  }
  return IsPlainType(instruction.getType()) || instruction.getType()->isIntegerTy(1);
}

}  // namespace

/// `loop` is small, has one exit, leaves it depending on data of each lane, and gathers.
bool LaneLoopEmitter::RunsLaneByLane(const llvm::Loop& loop) {
  if (module_.memcheck() || !source_.shapes.InStep(loop.getHeader()) || !loop.isInnermost() ||
      loop.getNumBlocks() > kMostBlocks)
    return false;
  const BasicBlock* exit = loop.getUniqueExitBlock();
  if (!exit) return false;
  for (const llvm::PHINode& phi : exit->phis()) {
    if (!values_.ShapeOf(&phi).vector() || !IsPlainType(phi.getType())) return false;
  }
  for (const llvm::PHINode& phi : loop.getHeader()->phis()) {
    if (!values_.ShapeOf(&phi).uniform() && !IsPlainType(phi.getType())) return false;
  }
  unsigned instructions = 0;
  bool gathers = false, leaves_by_data = false;
  for (const BasicBlock* block : loop.blocks()) {
    for (const llvm::Instruction& instruction : *block) {
      ++instructions;
      for (const Value* operand : instruction.operands()) {
        if (llvm::isa<llvm::Argument>(operand)) return false;
        if (IsLiveIn(loop, operand) && !values_.ShapeOf(operand).uniform() && !IsPlainType(operand->getType()))
          return false;
      }
      if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(&instruction)) {
        if (!branch->isConditional() || !loop.isLoopExiting(block)) continue;
        const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
        leaves_by_data |=
            compare && source_.shapes.IsDivergent(branch) &&
            (values_.ShapeOf(compare->getOperand(0)).vector() || values_.ShapeOf(compare->getOperand(1)).vector());
        continue;
      }
      if (IsSameAllAlong(&instruction)) continue;
      const MarkerInfo* info = module_.MarkerOf(instruction);
      if (!info) {
        if (!IsPlainOperation(instruction)) return false;
        continue;
      }
      if (info->kind != MarkerKind::kLoad && info->kind != MarkerKind::kStore) return false;
      const auto& call = llvm::cast<llvm::CallInst>(instruction);
      if (info->strong || info->space == Space::kLocal || LeftToHelper(windows_.AccessOf(call, *info))) return false;
      const Shape& shape = values_.ShapeOf(call.getArgOperand(0));
      gathers |= info->kind == MarkerKind::kLoad &&
                 (shape.vector() || (shape.kind == ShapeKind::kIndexed && values_.ShapeOf(shape.index).vector()));
    }
  }
  return instructions <= kMostInstructions && gathers && leaves_by_data;
}

/// `block` is where such a loop begins, and all lanes of a warp are few enough: the converged copy has nothing to do
/// there.
bool LaneLoopEmitter::AlwaysRunsLaneByLane(const BasicBlock* block) {
  const llvm::Loop* loop = source_.loops.getLoopFor(block);
  return module_.few_lanes >= kWarpSize && loop && loop->getHeader() == block && RunsLaneByLane(*loop);
}

/// An entry value whose lanes are fixed, too; those of an indexed one depend on an index that the loop may make.
bool LaneLoopEmitter::IsSameAllAlong(const Value* value) {
  return values_.IsEntryValue(value) && values_.ShapeOf(value).kind != ShapeKind::kIndexed;
}

/// A value that the loop uses and that is there when a lane begins.
bool LaneLoopEmitter::IsLiveIn(const llvm::Loop& loop, const Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  return instruction && (!loop.contains(instruction) || IsSameAllAlong(instruction));
}

/// One lane's load or store, with the mask of that lane set.
Value* LaneLoopEmitter::EmitLaneAccess(llvm::CallInst& call, const MarkerInfo& info,
                                       const std::function<Value*(Value*)>& scalar) {
  Access access = windows_.AccessOf(call, info);
  const Window window = windows_.WindowOf(call, access);
  Value* address = scalar(call.getArgOperand(0));
  Value* ok = memory_.LinearOk(call, {address, LanePattern{}, nullptr}, access, window);
  if (info.kind == MarkerKind::kLoad) return memory_.LoadScalar(address, ok, access, window, call.getType());
  std::vector<Value*> values;
  for (unsigned part = 0; part < access.count; ++part) values.push_back(scalar(call.getArgOperand(1 + part)));
  Value* host = window.host ? b_.CreateAdd(address, window.host) : address;
  const auto fast = [&] {
    for (unsigned part = 0; part < access.count; ++part) {
      Value* to = b_.CreateIntToPtr(b_.CreateAdd(host, b_.getInt64(part * access.element_bytes)), b_.getPtrTy());
      memory_.StoreScalar(values[part], to, access, memory_.StoresFlag(call, access));
    }
    return std::vector<Value*>{};
  };
  const auto slow = [&] {
    const WholeWarp whole(w_);
    std::vector<Value*> lanes;
    for (Value* value : values) lanes.push_back(w_.Splat(value));
    slow_.SlowStore({.lanes = w_.Splat(host)}, access, lanes);
    return std::vector<Value*>{};
  };
  FastOrSlow(w_, ok, fast, slow);
  return nullptr;
}

/// What `value` is for the lane.
Value* LaneLoopEmitter::ScalarOf(const OneLane& lane, Value* value) {
  if (llvm::isa<llvm::Constant>(value)) return value;
  return IsLiveIn(lane.loop, value) ? lane.outside(value) : lane.made.lookup(value);
}

void LaneLoopEmitter::EmitLaneInstruction(OneLane& lane, llvm::Instruction& instruction) {
  b_.SetCurrentDebugLocation(instruction.getDebugLoc());
  if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
    lane.made[phi] = b_.CreatePHI(phi->getType(), phi->getNumIncomingValues());
    return;
  }
  if (instruction.isTerminator() || IsSameAllAlong(&instruction)) return;
  if (const MarkerInfo* info = module_.MarkerOf(instruction)) {
    const auto scalar = [&](Value* value) { return ScalarOf(lane, value); };
    lane.made[&instruction] = EmitLaneAccess(llvm::cast<llvm::CallInst>(instruction), *info, scalar);
  } else {
    llvm::Instruction* copy = instruction.clone();
    for (llvm::Use& use : copy->operands()) {
      if (!llvm::isa<llvm::Constant>(use)) use.set(ScalarOf(lane, use.get()));
    }
    copy->setName("");
    copy->dropPoisonGeneratingFlags();
    copy->dropUnknownNonDebugMetadata();
    lane.made[&instruction] = b_.Insert(copy);
  }
}

/// The end of a block: on in the loop, or out of it to `done` with what the lane takes along.
void LaneLoopEmitter::EmitLaneBranch(OneLane& lane, BasicBlock* block, BasicBlock* done) {
  BasicBlock* exit = lane.loop.getUniqueExitBlock();
  auto* branch = llvm::cast<llvm::BranchInst>(block->getTerminator());
  lane.ends[block] = b_.GetInsertBlock();
  BasicBlock* targets[2] = {};
  for (unsigned way = 0; way < branch->getNumSuccessors(); ++way) {
    BasicBlock* next = branch->getSuccessor(way);
    targets[way] = next == exit ? w_.NewBlock("lane_leaves") : lane.starts[next];
  }
  if (branch->isConditional()) b_.CreateCondBr(ScalarOf(lane, branch->getCondition()), targets[0], targets[1]);
  else b_.CreateBr(targets[0]);
  for (unsigned way = 0; way < branch->getNumSuccessors(); ++way) {
    if (branch->getSuccessor(way) != exit) continue;
    b_.SetInsertPoint(targets[way]);
    for (llvm::PHINode& phi : exit->phis()) lane.leave(phi, ScalarOf(lane, phi.getIncomingValueForBlock(block)));
    b_.CreateBr(done);
  }
}

/// The loop for one lane, from its header to its end.
void LaneLoopEmitter::EmitLane(OneLane& lane) {
  std::vector<BasicBlock*> blocks;
  for (BasicBlock* block : source_.order.blocks) {
    if (!lane.loop.contains(block)) continue;
    blocks.push_back(block);
    lane.starts[block] = w_.NewBlock("lane_block");
  }
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* done = w_.NewBlock("lane_left");
  b_.CreateBr(lane.starts[lane.loop.getHeader()]);
  for (BasicBlock* block : blocks) {
    b_.SetInsertPoint(lane.starts[block]);
    for (llvm::Instruction& instruction : *block) EmitLaneInstruction(lane, instruction);
    EmitLaneBranch(lane, block, done);
  }
  for (BasicBlock* block : blocks) {
    for (llvm::PHINode& phi : block->phis()) {
      auto* copy = llvm::cast<llvm::PHINode>(lane.made[&phi]);
      for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
        const BasicBlock* from = phi.getIncomingBlock(i);
        if (lane.loop.contains(from)) copy->addIncoming(ScalarOf(lane, phi.getIncomingValue(i)), lane.ends[from]);
      }
      if (block == lane.loop.getHeader()) copy->addIncoming(lane.outside(&phi), before);
    }
  }
  b_.SetInsertPoint(done);
}

/// What the loop's lanes begin with.
LiveIn LaneLoopEmitter::LiveInOf(const llvm::Loop& loop) {
  LiveIn live_in;
  llvm::DenseSet<const Value*> seen;
  const auto need = [&](Value* value) {
    if (llvm::isa<llvm::Constant>(value) || !seen.insert(value).second) return;
    (values_.ShapeOf(value).uniform() ? live_in.uniform : live_in.lanes).push_back(value);
  };
  for (llvm::PHINode& phi : loop.getHeader()->phis()) need(&phi);
  for (BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      if (IsSameAllAlong(&instruction)) continue;
      for (Value* operand : instruction.operands()) {
        if (IsLiveIn(loop, operand)) need(operand);
      }
    }
    for (llvm::PHINode& phi : loop.getUniqueExitBlock()->phis()) {
      const int from = phi.getBasicBlockIndex(block);
      if (from >= 0 && IsLiveIn(loop, phi.getIncomingValue(static_cast<unsigned>(from))))
        need(phi.getIncomingValue(static_cast<unsigned>(from)));
    }
  }
  return live_in;
}

/// Whose faults those of the code that follows are.
void LaneLoopEmitter::NoteLane(Value* number) {
  Value* field = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), w_.warp, offsetof(WarpCtx, access_lane));
  b_.CreateStore(number, field, /*isVolatile=*/true);
}

/// The active lanes go round the loop one by one and on to its exit. `results`: what lanes that have left took along;
/// returns that of all. What differs between lanes goes through memory: values in one by one, results back.
std::vector<Value*> LaneLoopEmitter::EmitLanesInTurn(const llvm::Loop& loop, const LiveIn& live_in,
                                                     const std::vector<Value*>& results) {
  const auto buffer_of = [&](Value* lanes) {
    llvm::IRBuilder<> at(w_.entry, w_.entry->begin());
    Value* buffer = AlignedAlloca(at, lanes->getType());
    b_.CreateAlignedStore(lanes, buffer, llvm::Align(64));
    return buffer;
  };
  std::vector<Value*> buffers, ends;
  llvm::DenseMap<const Value*, Value*> uniform;
  llvm::DenseMap<const llvm::PHINode*, Value*> result_of;
  for (Value* value : live_in.lanes) buffers.push_back(buffer_of(values_.Lanes(value)));
  for (Value* value : live_in.uniform) uniform[value] = values_.Base(value);
  for (llvm::PHINode& phi : loop.getUniqueExitBlock()->phis()) {
    ends.push_back(buffer_of(results[ends.size()]));
    result_of[&phi] = ends.back();
  }
  Value* const outer_mask = w_.mask;
  ForEachActiveLane(w_, [&](Value* lane) {
    w_.mask = b_.CreateShl(b_.getInt32(1), b_.CreateTrunc(lane, b_.getInt32Ty()));
    w_.mask_lanes = nullptr;
    // Of the warp, not of the half that lanes were brought together in: its bit is the only one.
    Value* number = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, w_.WarpMask(), b_.getTrue());
    NoteLane(b_.CreateAdd(number, b_.getInt32(1)));
    llvm::DenseMap<const Value*, Value*> own = uniform;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      llvm::Type* type = live_in.lanes[i]->getType();
      own[live_in.lanes[i]] = b_.CreateLoad(type, b_.CreateGEP(type, buffers[i], lane));
    }
    OneLane one{
        .loop = loop,
        .outside = [&](Value* value) { return own.lookup(value); },
        .leave = [&](llvm::PHINode& phi,
                     Value* value) { b_.CreateStore(value, b_.CreateGEP(value->getType(), result_of[&phi], lane)); }};
    EmitLane(one);
    w_.mask = outer_mask;
    w_.mask_lanes = nullptr;
  });
  NoteLane(b_.getInt32(0));
  for (std::size_t i = 0; i < ends.size(); ++i)
    ends[i] = b_.CreateAlignedLoad(results[i]->getType(), ends[i], llvm::Align(64));
  return ends;
}

/// At the header of such a loop in the divergent copy: lanes that fill no more than half a warp run the rest of the
/// loop brought together (warp_half_loop.cpp), or one by one; with more, or where a base is not in device memory, the
/// header follows as usual.
void LaneLoopEmitter::EmitLaneLoop(const llvm::Loop& loop) {
  const bool as_half = module_.avx512 && module_.few_lanes < kWarpSize && RunsAsHalf(loop);
  BasicBlock* few = w_.NewBlock("few_lanes");
  BasicBlock* many = w_.NewBlock("many_lanes");
  Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, w_.mask);
  Value* is_few = b_.CreateICmpULE(count, b_.getInt32(as_half ? kWarpSize / 2 : module_.few_lanes));
  // Where all lanes go one by one there is no other loop to leave the tests to.
  const bool always = module_.few_lanes >= kWarpSize;
  Value* guarded = guards_.GuardOf(loop);
  b_.CreateCondBr(always ? is_few : b_.CreateAnd(is_few, guarded), few, many);
  b_.SetInsertPoint(few);
  const Scope scope(w_);
  Value* const warp_mask = w_.mask;
  const LiveIn live_in = LiveInOf(loop);
  BasicBlock* exit = loop.getUniqueExitBlock();
  std::vector<Value*> results;
  if (as_half) {
    guards_.relies_on_loop = true;
    PackLiveIn(loop, live_in);
    results = EmitHalfLoop(loop, live_in);
    guards_.relies_on_loop = false;
    for (Value*& result : results) result = w_.Unpack(result);
    w_.width = kWarpSize;
    w_.mask = warp_mask;
    w_.mask_lanes = w_.packed = w_.places = nullptr;
  } else {
    for (llvm::PHINode& phi : exit->phis()) results.push_back(llvm::Constant::getNullValue(WarpType(phi.getType())));
    const auto without_tests = [&] {
      guards_.relies_on_loop = true;
      std::vector<Value*> ends = EmitLanesInTurn(loop, live_in, results);
      guards_.relies_on_loop = false;
      return ends;
    };
    results = FastOrSlow(w_, always ? guarded : b_.getTrue(), without_tests,
                         [&] { return EmitLanesInTurn(loop, live_in, results); });
  }
  std::size_t number = 0;
  for (llvm::PHINode& phi : exit->phis()) values_.StoreSlot(&phi, results[number++], w_.mask);
  if (always) {
    BasicBlock* whole = w_.NewBlock("whole");
    BasicBlock* part = w_.NewBlock("part");
    b_.CreateCondBr(b_.CreateICmpEQ(w_.mask, b_.getInt32(-1)), whole, part);
    b_.SetInsertPoint(whole);
    b_.CreateStore(b_.getInt32(-1), frame_.mask);
    BasicBlock*& entry = copies_.entries[source_.order.IndexOf(exit)];
    if (!entry) entry = copies_.EntryTo(source_.order.IndexOf(exit));
    b_.CreateBr(entry);
    b_.SetInsertPoint(part);
  }
  // As from the header: lanes that left in earlier rounds wait at the exit, also where the loop is the only way to it.
  copies_.Arrive(source_.order.IndexOf(exit), w_.mask);
  b_.SetInsertPoint(many);
}

}  // namespace gridloom::exec
