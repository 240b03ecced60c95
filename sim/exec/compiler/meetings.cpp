#include "sim/exec/compiler/meetings.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "sim/exec/compiler/block_order.h"
#include "sim/exec/compiler/shape.h"

namespace gridloom::exec {
namespace {

std::vector<llvm::CallInst*> CallsOf(llvm::Function& function, const SpmdModule& spmd, MarkerKind kind) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
    if (info && info->kind == kind) calls.push_back(call);
  }
  return calls;
}

void Lower(SpmdModule& spmd, llvm::CallInst& sync) {
  const auto imm = UnpackImm<SyncImm>(spmd.Find(sync.getCalledFunction())->imm);
  SpmdBuilder b(spmd);
  b.SetInsertPoint(&sync);
  b.line = static_cast<std::uint32_t>(
      llvm::cast<llvm::ConstantInt>(sync.getArgOperand(sync.arg_size() - 1))->getZExtValue());
  llvm::Value* members = sync.getArgOperand(0);
  const llvm::SmallVector<llvm::Value*, 4> inputs(sync.arg_begin() + 1, sync.arg_end() - 1);
  b.WarpSync(imm, members);
  if (llvm::Value* result = b.Exchange(imm, members, inputs)) sync.replaceAllUsesWith(result);
  sync.eraseFromParent();
}

/// What Exchange has made: the calls behind `sync`.
llvm::SmallVector<llvm::CallInst*, 2> ExchangeBehind(const SpmdModule& spmd, llvm::CallInst& sync, SyncOp op) {
  llvm::SmallVector<llvm::CallInst*, 2> calls;
  for (llvm::Instruction* at = sync.getNextNode(); at && calls.size() < Info(op).calls; at = at->getNextNode()) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(at);
    if (call && call->getCalledFunction() && spmd.Find(call->getCalledFunction())) calls.push_back(call);
  }
  return calls;
}

void MakeMeeting(SpmdModule& spmd, llvm::CallInst& sync) {
  const std::uint64_t imm = spmd.Find(sync.getCalledFunction())->imm;
  const auto op = UnpackImm<SyncImm>(imm).op;
  const auto exchange = ExchangeBehind(spmd, sync, op);
  SpmdBuilder b(spmd);
  b.SetInsertPoint(&sync);
  llvm::SmallVector<llvm::Value*, 4> values{sync.getArgOperand(0)};
  for (unsigned i = 0; i < Info(op).inputs; ++i) values.push_back(exchange[0]->getArgOperand(i));
  llvm::SmallVector<llvm::Type*, 4> types;
  for (llvm::Value* value : values) types.push_back(value->getType());
  b.CreateCall(spmd.Marker({.kind = MarkerKind::kMeet, .imm = imm}, b.getVoidTy(), types), values);
  if (!exchange.empty()) b.SetInsertPoint(exchange.back()->getNextNode());
  for (unsigned i = 0; i < exchange.size(); ++i) {
    llvm::CallInst* given = exchange[i];
    llvm::Type* type = given->getType();
    auto* met = b.CreateCall(spmd.Marker({.kind = MarkerKind::kMet, .imm = i}, type, {type}), {given});
    given->replaceUsesWithIf(met, [&](const llvm::Use& use) { return use.getUser() != met; });
  }
  llvm::Instruction* behind = sync.getNextNode();
  sync.eraseFromParent();
  llvm::SplitBlock(behind->getParent(), behind);
}

}  // namespace

void LowerSyncs(SpmdModule& spmd) {
  for (llvm::Function& function : spmd.ir()) {
    for (llvm::CallInst* sync : CallsOf(function, spmd, MarkerKind::kSync)) Lower(spmd, *sync);
  }
}

// A meeting lets groups of lanes overtake each other, so that further ones may be reached by part of the lanes: until
// none is left.
void PlaceMeetings(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options) {
  while (true) {
    std::vector<llvm::CallInst*> alone = CallsOf(function, spmd, MarkerKind::kWarpSync);
    if (alone.empty()) return;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    const BlockOrder order = ComputeBlockOrder(function, loops);
    const ShapeAnalysis shapes(function, spmd, loops, order, options);
    std::erase_if(alone, [&](const llvm::CallInst* sync) { return !shapes.MayLackLanes(sync->getParent()); });
    if (alone.empty()) return;
    // What is split off is moved: from the back, each instruction is moved once.
    for (llvm::CallInst* sync : llvm::reverse(alone)) MakeMeeting(spmd, *sync);
  }
}

}  // namespace gridloom::exec
