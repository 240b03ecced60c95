#include "sim/exec/compiler/warp_blocks.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

bool IsTrue(const Value* condition) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition);
  return constant && constant->isOne();
}

std::vector<Value*> FastOrSlow(WarpBuilder& w, Value* ok, const Parts& fast, const Parts& slow) {
  if (IsTrue(ok)) return fast();
  if (w.divergent) w.MaskLanes();
  BasicBlock* blocks[2] = {w.NewBlock("load"), w.NewBlock("load_slow")};
  BasicBlock* done = w.NewBlock("loaded");
  w.b.CreateCondBr(ok, blocks[0], blocks[1], w.Likely());
  std::vector<Value*> values[2];
  for (unsigned way = 0; way < 2; ++way) {
    Scope scope(w);
    w.b.SetInsertPoint(blocks[way]);
    values[way] = way == 0 ? fast() : slow();
    blocks[way] = w.b.GetInsertBlock();
    w.b.CreateBr(done);
  }
  w.b.SetInsertPoint(done);
  std::vector<Value*> parts;
  for (std::size_t part = 0; part < values[0].size(); ++part) {
    auto* phi = w.b.CreatePHI(values[0][part]->getType(), 2);
    for (unsigned way = 0; way < 2; ++way) phi->addIncoming(values[way][part], blocks[way]);
    parts.push_back(phi);
  }
  return parts;
}

void IfAny(WarpBuilder& w, Value* lanes, const std::function<void()>& then) {
  BasicBlock* some = w.NewBlock("invalid");
  BasicBlock* done = w.NewBlock("valid");
  w.b.CreateCondBr(w.b.CreateICmpNE(lanes, w.b.getInt32(0)), some, done, w.Unlikely());
  {
    Scope scope(w);
    w.b.SetInsertPoint(some);
    then();
    w.b.CreateBr(done);
  }
  w.b.SetInsertPoint(done);
}

void WhileLanesAreLeft(WarpBuilder& w, const std::function<Value*(Value* left)>& body) {
  BasicBlock* before = w.b.GetInsertBlock();
  BasicBlock* loop = w.NewBlock("lane");
  BasicBlock* done = w.NewBlock("lanes_done");
  w.b.CreateBr(loop);
  w.b.SetInsertPoint(loop);
  auto* left = w.b.CreatePHI(w.b.getInt32Ty(), 2);
  left->addIncoming(w.mask, before);
  Value* rest = body(left);
  left->addIncoming(rest, w.b.GetInsertBlock());
  w.b.CreateCondBr(w.b.CreateICmpEQ(rest, w.b.getInt32(0)), done, loop);
  w.b.SetInsertPoint(done);
}

/// A loop that counts is less work than one that looks for the next lane, and stays a loop: copies of its body would
/// each wait for a store to the place of the one before.
void ForEachNumber(WarpBuilder& w, unsigned count, const std::function<void(Value* number)>& body) {
  BasicBlock* before = w.b.GetInsertBlock();
  BasicBlock* loop = w.NewBlock("each_lane");
  BasicBlock* done = w.NewBlock("each_done");
  w.b.CreateBr(loop);
  w.b.SetInsertPoint(loop);
  auto* lane = w.b.CreatePHI(w.b.getInt64Ty(), 2);
  lane->addIncoming(w.b.getInt64(0), before);
  body(lane);
  Value* next = w.b.CreateAdd(lane, w.b.getInt64(1));
  lane->addIncoming(next, w.b.GetInsertBlock());
  w.b.CreateCondBr(w.b.CreateICmpEQ(next, w.b.getInt64(count)), done, loop);
  w.b.SetInsertPoint(done);
}

bool AllLanesRun(const WarpBuilder& w) {
  const auto* all = llvm::dyn_cast<llvm::ConstantInt>(w.mask);
  return all && all->isMinusOne() && !w.half_warp();
}

void ForEachActiveLane(WarpBuilder& w, const std::function<void(Value* lane)>& body) {
  if (AllLanesRun(w)) return ForEachNumber(w, kWarpSize, body);
  WhileLanesAreLeft(w, [&](Value* left) {
    body(w.b.CreateZExt(w.b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, w.b.getTrue()), w.b.getInt64Ty()));
    return w.b.CreateAnd(left, w.b.CreateSub(left, w.b.getInt32(1)));
  });
}

void CompilerFence(llvm::IRBuilder<>& b) {
  b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

}  // namespace gridloom::exec
