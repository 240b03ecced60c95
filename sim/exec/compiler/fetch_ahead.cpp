#include "sim/exec/compiler/fetch_ahead.h"

#include <llvm/IR/InstIterator.h>

#include <vector>

#include "sim/exec/compiler/loop_pass.h"

namespace gridloom::exec {
namespace {

using llvm::CallInst;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;
using llvm::Value;

/// Bytes or elements that a lane goes on in a round at most.
constexpr std::int64_t kMostStep = 64;

class Starts : LoopPass {
 public:
  Starts(SpmdModule& spmd, llvm::Function& function) : LoopPass(spmd, function, "ahead") {}

  void Run() {
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      if (loop->isInnermost() && loop->getLoopPreheader()) Place(*loop);
    }
  }

 private:
  void Place(const Loop& loop);
  const SCEV* StartOf(const Loop& loop, Value* address);
  std::uint64_t ArrayOf(const SCEV* start);

  std::vector<const Value*> arrays_;
};

/// The address in the first round, where it goes on by small steps from there; else null.
const SCEV* Starts::StartOf(const Loop& loop, Value* address) {
  const SCEV* const whole = evolution_.getSCEV(address);
  bool goes_on = false, in_small_steps = true;
  const auto look = [&](const SCEV* part) {
    const auto* const going_on = llvm::dyn_cast<SCEVAddRecExpr>(part);
    if (!going_on) return false;
    const auto* const step = llvm::dyn_cast<llvm::SCEVConstant>(going_on->getOperand(1));
    goes_on = true;
    in_small_steps &= going_on->getLoop() == &loop && going_on->isAffine() && step != nullptr &&
                      step->getAPInt().abs().ule(kMostStep);
    return false;
  };
  llvm::SCEVExprContains(whole, look);
  if (!goes_on || !in_small_steps) return nullptr;
  llvm::LoopToScevMapT first_round;
  first_round[&loop] = evolution_.getZero(llvm::Type::getInt64Ty(address->getContext()));
  const SCEV* const start = llvm::SCEVLoopAddRecRewriter::rewrite(whole, first_round, evolution_);
  const llvm::Instruction* const at = loop.getLoopPreheader()->getTerminator();
  return start->getExpressionSize() <= kMostTerms && expander_.isSafeToExpandAt(start, at) ? start : nullptr;
}

/// A number for the parameter that the address is made of: loops that follow each other go through one array.
std::uint64_t Starts::ArrayOf(const SCEV* start) {
  const Value* array = nullptr;
  llvm::SCEVExprContains(start, [&](const SCEV* part) {
    const auto* const unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part);
    const auto* const made = unknown ? llvm::dyn_cast<llvm::Instruction>(unknown->getValue()) : nullptr;
    const MarkerInfo* const info = made && made->getType()->isIntegerTy(64) ? MarkerOf(*made) : nullptr;
    if (info && info->kind == MarkerKind::kParam) array = made;
    return array != nullptr;
  });
  const auto known = array ? std::ranges::find(arrays_, array) : arrays_.end();
  const auto number = static_cast<std::uint64_t>(known - arrays_.begin());
  if (known == arrays_.end()) arrays_.push_back(array);
  return number;
}

void Starts::Place(const Loop& loop) {
  std::vector<const SCEV*> starts;
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      const MarkerInfo* const info = MarkerOf(instruction);
      if (!info || info->kind != MarkerKind::kLoad || (info->space != Space::kGlobal && info->space != Space::kGeneric))
        continue;
      const SCEV* const start = StartOf(loop, llvm::cast<CallInst>(instruction).getArgOperand(0));
      const auto beside = [&](const SCEV* other) {
        return llvm::isa<llvm::SCEVConstant>(evolution_.getMinusSCEV(start, other));
      };
      if (start && std::ranges::none_of(starts, beside)) starts.push_back(start);
    }
  }
  llvm::Instruction* const at = loop.getLoopPreheader()->getTerminator();
  for (const SCEV* start : starts) {
    Value* const address = expander_.expandCodeFor(start, start->getType(), at);
    llvm::IRBuilder<> b(at);
    b.CreateCall(
        spmd_.Marker({.kind = MarkerKind::kFetchAhead, .imm = ArrayOf(start)}, b.getVoidTy(), {b.getInt64Ty()}),
        {address});
  }
}

}  // namespace

void PlaceFetchAhead(SpmdModule& spmd) {
  for (llvm::Function& function : spmd.ir()) {
    if (!function.isDeclaration()) Starts(spmd, function).Run();
  }
}

}  // namespace gridloom::exec
