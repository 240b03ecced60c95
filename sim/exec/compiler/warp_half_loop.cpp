// Half warps: with 16 lanes or fewer left in a loop that lanes leave one by one (warp_lane_loop.cpp), those are brought
// together in half a warp, and one gather of 16 does what two do for a whole one. The loop is emitted once more, at
// that width.
#include <llvm/IR/IntrinsicsX86.h>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_lane_loop.h"
#include "sim/exec/compiler/warp_memory.h"
#include "sim/exec/compiler/warp_slow_access.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// With so few lanes left each runs the rest alone.
constexpr unsigned kFewOfHalf = 4;

}  // namespace

/// Begins a half warp with the lanes of what the loop uses.
void LaneLoopEmitter::PackLiveIn(const llvm::Loop& loop, const LiveIn& live_in) {
  std::vector<std::pair<Value*, Value*>> lanes;
  const auto bring = [&](Value* value) {
    if (values_.ShapeOf(value).vector()) lanes.emplace_back(value, values_.Lanes(value));
    const Value* index = values_.ShapeOf(value).kind == ShapeKind::kIndexed ? values_.ShapeOf(value).index : nullptr;
    const auto* made = llvm::dyn_cast_or_null<llvm::Instruction>(index);
    if (made && !loop.contains(made) && values_.ShapeOf(index).vector())
      lanes.emplace_back(const_cast<Value*>(index), values_.Lanes(const_cast<Value*>(index)));
  };
  for (Value* value : live_in.lanes) bring(value);
  for (BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      if (values_.ShapeOf(&instruction).kind == ShapeKind::kIndexed) bring(&instruction);
    }
  }
  w_.lanes_cache.clear();
  w_.BeginHalfWarp();
  for (const auto& [value, whole] : lanes) {
    if (!w_.lanes_cache.contains(value)) w_.lanes_cache[value] = w_.Pack(whole);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The loop
// ---------------------------------------------------------------------------------------------------------------------

/// An iteration has one way through, but for exits. Others could run as half a warp, too, but where an if is part of
/// the loop (BFS) it lost 10 % against a whole warp and lanes one by one.
bool LaneLoopEmitter::RunsAsHalf(const llvm::Loop& loop) {
  return llvm::all_of(loop.blocks(), [&](const BasicBlock* block) {
    return llvm::count_if(llvm::successors(block), [&](const BasicBlock* next) { return loop.contains(next); }) == 1;
  });
}

/// One iteration for the lanes of `active`: returns those that go on, never none. Where lanes leave, `results` takes
/// what they take along; `left` is where the last of them did.
Value* LaneLoopEmitter::EmitHalfIteration(const llvm::Loop& loop, Value* active, std::vector<Value*>& results,
                                          const std::function<BasicBlock*()>& left) {
  BasicBlock* exit = loop.getUniqueExitBlock();
  const auto find = [&](Value* value) {
    return values_.ShapeOf(value).vector() ? values_.Lanes(value) : values_.Base(value);
  };
  for (BasicBlock* block : source_.order.blocks) {
    if (!loop.contains(block)) continue;
    w_.mask = active;
    w_.mask_lanes = nullptr;
    for (llvm::Instruction& instruction : *block) {
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
        if (block != loop.getHeader())
          (values_.ShapeOf(phi).vector() ? w_.lanes_cache : w_.base_cache)[phi] = find(phi->getIncomingValue(0));
      } else if (!instruction.isTerminator() && !values_.IsEntryValue(&instruction)) {
        values_.EmitInstruction(instruction);
      }
    }
    const auto* branch = llvm::cast<llvm::BranchInst>(block->getTerminator());
    if (!branch->isConditional()) continue;
    Value* condition = branch->getCondition();
    Value* taken = values_.ShapeOf(condition).uniform()
                       ? b_.CreateSelect(values_.Base(condition), active, b_.getInt32(0))
                       : b_.CreateAnd(w_.ToBits(values_.Lanes(condition)), active);
    Value* leaving = branch->getSuccessor(0) == exit ? taken : b_.CreateXor(taken, active);
    active = b_.CreateXor(leaving, active);
    std::size_t number = 0;
    for (llvm::PHINode& phi : exit->phis()) {
      Value*& result = results[number++];
      result = b_.CreateSelect(w_.ToLaneMask(leaving), values_.Lanes(phi.getIncomingValueForBlock(block)), result);
    }
    BasicBlock* next = w_.NewBlock("half_stays");
    Value* none = b_.CreateICmpEQ(active, b_.getInt32(0));
    BasicBlock* done = left();
    b_.CreateCondBr(none, done, next);
    b_.SetInsertPoint(next);
  }
  return active;
}

/// The head of the loop: phis for the lanes that are in it, for what goes round, and for what lanes that have left took
/// along.
HalfLoop LaneLoopEmitter::BeginHalfLoop(const llvm::Loop& loop) {
  BasicBlock* before = b_.GetInsertBlock();
  HalfLoop half;
  half.head = w_.NewBlock("half_head");
  half.in_turn = w_.NewBlock("in_turn");
  half.body = w_.NewBlock("half_body");
  half.done = w_.NewBlock("half_done");
  std::vector<Value*> starts;
  for (llvm::PHINode& phi : loop.getHeader()->phis())
    starts.push_back(values_.ShapeOf(&phi).vector() ? values_.Lanes(&phi) : values_.Base(&phi));
  b_.CreateBr(half.head);

  b_.SetInsertPoint(half.head);
  half.active = b_.CreatePHI(b_.getInt32Ty(), 2);
  half.active->addIncoming(w_.mask, before);
  for (llvm::PHINode& phi : loop.getHeader()->phis()) {
    Value* start = starts[half.carried.size()];
    auto* copy = b_.CreatePHI(start->getType(), 2);
    copy->addIncoming(start, before);
    (values_.ShapeOf(&phi).vector() ? w_.lanes_cache : w_.base_cache)[&phi] = copy;
    half.carried.emplace_back(&phi, copy);
  }
  for (llvm::PHINode& phi : loop.getUniqueExitBlock()->phis()) {
    half.left.push_back(b_.CreatePHI(w_.LanesType(phi.getType()), 2));
    half.left.back()->addIncoming(llvm::Constant::getNullValue(half.left.back()->getType()), before);
  }
  w_.mask = half.active;
  w_.mask_lanes = nullptr;
  Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, half.active);
  b_.CreateCondBr(b_.CreateICmpULE(count, b_.getInt32(kFewOfHalf)), half.in_turn, half.body);
  return half;
}

/// One round, and back to the head with the lanes that go on. `results`: as of EmitHalfIteration.
void LaneLoopEmitter::EmitHalfRound(const llvm::Loop& loop, HalfLoop& half, std::vector<Value*>& results,
                                    const std::function<BasicBlock*()>& left) {
  Value* next = EmitHalfIteration(loop, half.active, results, left);
  // As CopyPhis: integers of lanes that have left may run on, numbers that could become subnormal do not.
  std::vector<Value*> nexts;
  for (const auto& [phi, copy] : half.carried) {
    Value* incoming = phi->getIncomingValueForBlock(loop.getLoopLatch());
    const bool vector = values_.ShapeOf(phi).vector();
    Value* value = vector ? values_.Lanes(incoming) : values_.Base(incoming);
    if (vector && !phi->getType()->isIntegerTy()) value = b_.CreateSelect(w_.ToLaneMask(next), value, copy);
    nexts.push_back(value);
  }
  BasicBlock* end = b_.GetInsertBlock();
  half.active->addIncoming(next, end);
  for (std::size_t i = 0; i < half.carried.size(); ++i) half.carried[i].second->addIncoming(nexts[i], end);
  for (std::size_t i = 0; i < half.left.size(); ++i) half.left[i]->addIncoming(results[i], end);
  b_.CreateBr(half.head);
}

/// The loop for the half warp, from its header until all lanes have left it: what each takes along, for each phi of the
/// exit.
std::vector<Value*> LaneLoopEmitter::EmitHalfLoop(const llvm::Loop& loop, const LiveIn& live_in) {
  HalfLoop half = BeginHalfLoop(loop);
  std::vector<Value*> results(half.left.begin(), half.left.end());
  std::vector<std::pair<BasicBlock*, std::vector<Value*>>> ends;
  {
    const Scope scope(w_);
    b_.SetInsertPoint(half.in_turn);
    std::vector<Value*> rest = EmitLanesInTurn(loop, live_in, results);
    ends.emplace_back(b_.GetInsertBlock(), std::move(rest));
    b_.CreateBr(half.done);
  }
  {
    const Scope scope(w_);
    b_.SetInsertPoint(half.body);
    EmitHalfRound(loop, half, results, [&] {
      ends.emplace_back(b_.GetInsertBlock(), results);
      return half.done;
    });
  }
  b_.SetInsertPoint(half.done);
  for (std::size_t i = 0; i < half.left.size(); ++i) {
    auto* phi = b_.CreatePHI(half.left[i]->getType(), static_cast<unsigned>(ends.size()));
    for (const auto& [from, values] : ends) phi->addIncoming(values[i], from);
    results[i] = phi;
  }
  return results;
}

}  // namespace gridloom::exec
