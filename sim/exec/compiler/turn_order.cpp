#include "sim/exec/compiler/turn_order.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/CFG.h>

#include <algorithm>
#include <iterator>

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr std::uint32_t kNoStep = ~0u;
constexpr std::uint64_t kFrameAlign = 64;

}  // namespace

void TurnPlaces::FindRegions() {
  for (TurnRegion& region : regions) {
    llvm::MapVector<BasicBlock*, unsigned> steps;  // nearest first
    steps.insert({region.head, 0});
    for (unsigned i = 0; i < steps.size(); ++i) {
      const auto [block, away] = *std::next(steps.begin(), i);
      if (const auto stop = stop_of.find(block); stop != stop_of.end()) {
        region.stops.emplace_back(stop->second, away);
        continue;
      }
      if (block == done) {
        region.ends = true;
        region.end_away = away;
        continue;
      }
      for (BasicBlock* next : llvm::successors(block)) steps.insert({next, away + 1});
    }
  }
}

llvm::SmallVector<unsigned, 4> TurnPlaces::RegionsBefore(unsigned stop) const {
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> found;  // how far away, and the region
  for (unsigned i = 0; i < regions.size(); ++i) {
    if (stop == stops.size() && regions[i].ends) found.emplace_back(regions[i].end_away, i);
    for (const auto& [end, away] : regions[i].stops)
      if (end == stop) found.emplace_back(away, i);
  }
  llvm::sort(found);
  llvm::SmallVector<unsigned, 4> before;
  for (const auto& [away, region] : found) before.push_back(region);
  return before;
}

unsigned TurnPlaces::LikelyStop(unsigned region) const {
  const TurnRegion& from = regions[region];
  for (const auto& [stop, away] : from.stops)
    if (stops[stop].whole) return stop;
  return from.ends || from.stops.empty() ? static_cast<unsigned>(stops.size()) : from.stops.front().first;
}

bool TurnPlaces::AlwaysInStep() const {
  for (const TurnRegion& region : regions)
    if (region.stops.size() + (region.ends ? 1 : 0) != 1) return false;
  for (unsigned i = 0; i < stops.size(); ++i)
    if (RegionsBefore(i).size() != 1) return false;
  return true;
}

TurnOrder::TurnOrder(llvm::Function& function, TurnPlaces& places, const TurnFrames& frames, BasicBlock* start,
                     Value* warp, Value* frame)
    : function_(function),
      places_(places),
      layout_(frames),
      start_(start),
      warp_(warp),
      frame_(frame),
      always_in_step_(places.AlwaysInStep()) {}

/// Where a turn is that began with `region` and whose warps stop at `stop`.
llvm::ConstantInt* TurnOrder::Step(unsigned region, unsigned stop) {
  const auto stops = static_cast<std::uint32_t>(places_.stops.size()) + 1;
  return llvm::ConstantInt::get(llvm::Type::getInt32Ty(function_.getContext()), region * stops + stop);
}

void TurnOrder::BeginRegion(TurnRegion& region) {
  Builder b(region.head, region.head->begin());
  region.warp = b.CreatePHI(b.getPtrTy(), 2, "warp");
  region.frame = b.CreatePHI(b.getPtrTy(), 2, "frame");
  b.SetInsertPoint(region.head, region.head->getFirstNonPHIIt());
  region.note = b.CreateStore(region.warp, b.CreateIntToPtr(function_.getArg(3), b.getPtrTy()), true);
}

/// Room for all frames.
void TurnOrder::PrepareFrames() {
  BasicBlock& entry = function_.getEntryBlock();
  Builder b(&entry, entry.begin());
  frames_ = b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), layout_.bytes * layout_.warps), nullptr, "frames");
  frames_->setAlignment(llvm::Align(kFrameAlign));
  if (always_in_step_) return;
  step_ = b.CreateAlloca(b.getInt32Ty(), nullptr, "step");
  waiting_ = b.CreateAlloca(b.getInt32Ty(), nullptr, "waiting");
  b.SetInsertPoint(start_->getTerminator());
  b.CreateStore(Step(0, places_.LikelyStop(0)), step_);
}

void TurnOrder::Enter(Builder& b, TurnRegion& region, Value* warp, Value* frame) {
  region.warp->addIncoming(warp, b.GetInsertBlock());
  region.frame->addIncoming(frame, b.GetInsertBlock());
  b.CreateBr(region.head);
}

/// Out of step: to where the frame says that its warp goes on.
void TurnOrder::EnterLikely(Builder& b, llvm::ArrayRef<unsigned> likely, Value* warp, Value* frame) {
  Value* const state = likely.empty() ? nullptr : b.CreateLoad(b.getInt32Ty(), Slot(b, frame, layout_.state_offset));
  for (const unsigned number : likely) {
    TurnRegion& region = places_.regions[number];
    BasicBlock* const other = NewBlock("other_place");
    region.warp->addIncoming(warp, b.GetInsertBlock());
    region.frame->addIncoming(frame, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpEQ(state, b.getInt32(number)), region.head, other);
    b.SetInsertPoint(other);
  }
  Enter(b, dispatch_, warp, frame);
}

/// Goes to the second of two new blocks where `next` is `end`, and to the first one where there is such a warp.
std::pair<BasicBlock*, BasicBlock*> TurnOrder::NextWarp(Builder& b, Value* next, Value* end) {
  BasicBlock *const more = NewBlock("next_warp"), *const over = NewBlock("turn_over");
  b.CreateCondBr(b.CreateICmpEQ(next, end), over, more);
  return {more, over};
}

/// Out of step: on to the next warp. Returns where all have had their turn.
BasicBlock* TurnOrder::GoOn(Builder& b, Value* warp, Value* frame, llvm::ArrayRef<unsigned> likely) {
  Value* const next = b.CreateInBoundsGEP(b.getInt8Ty(), warp, function_.getArg(2));
  Value* const next_frame = Slot(b, frame, layout_.bytes);
  const auto [more, over] = NextWarp(b, next, function_.getArg(1));
  b.SetInsertPoint(more);
  EnterLikely(b, likely, next, next_frame);
  return over;
}

/// Out of step: all warps have stopped or ended, and not all of them ended.
void TurnOrder::BeginTurn(Builder& b, llvm::ArrayRef<unsigned> likely) {
  b.CreateStore(b.getInt32(0), waiting_);
  EnterLikely(b, likely, function_.getArg(0), frames_);
}

/// In step: a turn in which all warps begin with `region`.
void TurnOrder::BeginStep(Builder& b, unsigned region) {
  if (step_) b.CreateStore(Step(region, places_.LikelyStop(region)), step_);
  Enter(b, places_.regions[region], function_.getArg(0), frames_);
}

/// Behind the last warp that has something to do in a turn that begins with `region` and ends as is likely.
Value* TurnOrder::EndOfStep(unsigned region) {
  const unsigned count = places_.regions[region].idle_from;
  Value* const end = function_.getArg(1);
  if (count == 0 || count >= layout_.warps) return end;
  Builder b(start_->getTerminator());
  Value* const first_idle =
      b.CreateInBoundsGEP(b.getInt8Ty(), function_.getArg(0), b.CreateMul(function_.getArg(2), b.getInt64(count)));
  return b.CreateSelect(b.CreateICmpULT(first_idle, end), first_idle, end);
}

/// In step, a warp that began with `region` has come to `stop`: on to the next one, or to the next turn.
void TurnOrder::StepOn(Builder& b, unsigned region, unsigned stop) {
  Value* const next = b.CreateInBoundsGEP(b.getInt8Ty(), warp_, function_.getArg(2));
  Value* const next_frame = Slot(b, frame_, layout_.bytes);
  const bool likely = stop == places_.LikelyStop(region);
  const auto [more, over] = NextWarp(b, next, likely ? EndOfStep(region) : function_.getArg(1));
  b.SetInsertPoint(more);
  Enter(b, places_.regions[region], next, next_frame);
  b.SetInsertPoint(over);
  if (stop == places_.stops.size()) EndCta(b);
  else BeginStep(b, stop + 1);
}

/// A warp has come to `stop`, and the step of its turn is another. The first warp of a turn decides where it goes; a
/// later one has lost step.
void TurnOrder::EmitUnexpected(Builder& b, unsigned stop, llvm::ArrayRef<unsigned> before, Value* step,
                               BasicBlock* again) {
  const auto stops = static_cast<std::uint32_t>(places_.stops.size()) + 1;
  const auto lose = [&] {
    lose_step_.warp->addIncoming(warp_, b.GetInsertBlock());
    lose_step_.frame->addIncoming(frame_, b.GetInsertBlock());
    lost_at_->addIncoming(b.getInt32(stop), b.GetInsertBlock());
    return lose_step_.head;
  };
  if (before.empty()) return static_cast<void>(b.CreateBr(lose()));
  BasicBlock *const decides = NewBlock("decides_step"), *const known = NewBlock("known_step");
  b.CreateCondBr(b.CreateICmpEQ(warp_, function_.getArg(0)), decides, lose());
  b.SetInsertPoint(decides);
  Value* const region = b.CreateUDiv(step, b.getInt32(stops));
  llvm::SwitchInst* const choose = b.CreateSwitch(region, lose());
  for (const unsigned number : before) choose->addCase(b.getInt32(number), known);
  b.SetInsertPoint(known);
  b.CreateStore(b.CreateAdd(b.CreateMul(region, b.getInt32(stops)), b.getInt32(stop)), step_);
  b.CreateBr(again);
}

/// Where warps may lose step: compares the step of the turn with those that the regions before `stop` have here.
/// Leaves the builder where warps are out of step.
void TurnOrder::EndInStep(Builder& b, unsigned stop, llvm::ArrayRef<unsigned> before) {
  BasicBlock* const again = NewBlock("in_step");
  b.CreateBr(again);
  b.SetInsertPoint(again);
  // A load for each compare: of compares of one value a table of jumps would be made.
  const auto step = [&] { return b.CreateLoad(b.getInt32Ty(), step_, /*isVolatile=*/true); };
  for (const unsigned region : before) {
    BasicBlock *const same = NewBlock("same_step"), *const other = NewBlock("other_step");
    b.CreateCondBr(b.CreateICmpEQ(step(), Step(region, stop)), same, other);
    b.SetInsertPoint(same);
    StepOn(b, region, stop);
    b.SetInsertPoint(other);
  }
  BasicBlock *const none = NewBlock("no_step"), *const unexpected = NewBlock("unexpected");
  Value* const seen = step();
  b.CreateCondBr(b.CreateICmpEQ(seen, b.getInt32(kNoStep)), none, unexpected);
  b.SetInsertPoint(unexpected);
  EmitUnexpected(b, stop, before, seen, again);
  b.SetInsertPoint(none);
}

/// Regions that end at `stop` and may be of a CTA in step: those of whole warps, the likely ones first.
llvm::SmallVector<unsigned, 4> TurnOrder::InStepBefore(unsigned stop) const {
  constexpr std::size_t kMost = 2;
  llvm::SmallVector<unsigned, 4> regions;
  if (stop < places_.stops.size() && !places_.stops[stop].whole) return regions;
  for (const unsigned region : places_.RegionsBefore(stop))
    if (region == 0 || places_.stops[region - 1].whole) regions.push_back(region);
  std::ranges::stable_partition(regions, [&](unsigned region) { return places_.LikelyStop(region) == stop; });
  regions.resize(std::min(regions.size(), kMost));
  return regions;
}

/// Ends regions at `stop`; stops.size() is where warps end.
void TurnOrder::EndBy(unsigned stop) {
  const bool ends = stop == places_.stops.size();
  BasicBlock* const before = ends ? places_.done : places_.stops[stop].before;
  before->getTerminator()->eraseFromParent();
  Builder b(before);
  llvm::SmallVector<unsigned, 4> regions = places_.RegionsBefore(stop);
  if (regions.empty()) return static_cast<void>(b.CreateUnreachable());
  if (always_in_step_) return StepOn(b, regions.front(), stop);
  constexpr std::size_t kMostLikely = 3;
  regions.resize(std::min(regions.size(), kMostLikely));
  EndInStep(b, stop, InStepBefore(stop));
  b.CreateStore(b.getInt32(StateAt(stop)), Slot(b, frame_, layout_.state_offset));
  if (ends) return EmitOver(GoOn(b, warp_, frame_, {}));
  b.CreateStore(b.getInt32(1), waiting_);
  b.SetInsertPoint(GoOn(b, warp_, frame_, regions));
  BeginTurn(b, {stop + 1});
}

/// A warp has come to another stop than those before it in the turn: frames say from now on where their warps go on.
void TurnOrder::EmitLoseStep() {
  Builder b(lose_step_.head);
  const auto stops = static_cast<std::uint32_t>(places_.stops.size()) + 1;
  Value* const step = b.CreateLoad(b.getInt32Ty(), step_);
  Value* const began = b.CreateUDiv(step, b.getInt32(stops));
  Value* const stopped = b.CreateSub(step, b.CreateMul(began, b.getInt32(stops)));
  Value* const others = b.CreateICmpNE(lose_step_.frame, frames_);
  Value* const waits = b.CreateAnd(others, b.CreateICmpNE(stopped, b.getInt32(stops - 1)));
  Value* const stops_itself = b.CreateICmpNE(lost_at_, b.getInt32(stops - 1));
  b.CreateStore(b.CreateZExt(b.CreateOr(waits, stops_itself), b.getInt32Ty()), waiting_);
  b.CreateStore(b.getInt32(kNoStep), step_);
  Value* const state = b.CreateAdd(stopped, b.getInt32(1));
  for (unsigned warp = 0; warp < layout_.warps; ++warp) {
    Value* const frame = Slot(b, frames_, warp * layout_.bytes);
    Value* const ran = b.CreateICmpULT(frame, lose_step_.frame);
    b.CreateStore(b.CreateSelect(ran, state, began), Slot(b, frame, layout_.state_offset));
  }
  b.CreateStore(b.CreateAdd(lost_at_, b.getInt32(1)), Slot(b, lose_step_.frame, layout_.state_offset));
  EmitOver(GoOn(b, lose_step_.warp, lose_step_.frame, {}));
}

/// Out of step, behind the last warp of a turn that has ended: another turn where some have stopped.
void TurnOrder::EmitOver(BasicBlock* over) {
  Builder b(over);
  BasicBlock *const turn = NewBlock("next_turn"), *const last = NewBlock("all_ended");
  b.CreateCondBr(b.CreateICmpEQ(b.CreateLoad(b.getInt32Ty(), waiting_), b.getInt32(0)), last, turn);
  b.SetInsertPoint(turn);
  BeginTurn(b, {});
  b.SetInsertPoint(last);
  EndCta(b);
}

void TurnOrder::EndCta(Builder& b) {
  if (places_.over) b.CreateBr(places_.over);
  else b.CreateRetVoid();
}

/// Where a warp goes on as its frame says; warps that have ended are left out.
void TurnOrder::EmitDispatch() {
  Builder b(dispatch_.head);
  BasicBlock *const never = NewBlock("never"), *const skip = NewBlock("skip");
  Value* const state = b.CreateLoad(b.getInt32Ty(), Slot(b, dispatch_.frame, layout_.state_offset));
  llvm::SwitchInst* const go = b.CreateSwitch(state, never);
  for (unsigned i = 0; i < places_.regions.size(); ++i) {
    go->addCase(b.getInt32(i), places_.regions[i].head);
    places_.regions[i].warp->addIncoming(dispatch_.warp, dispatch_.head);
    places_.regions[i].frame->addIncoming(dispatch_.frame, dispatch_.head);
  }
  go->addCase(b.getInt32(StateAt(static_cast<unsigned>(places_.stops.size()))), skip);
  b.SetInsertPoint(never);
  b.CreateUnreachable();
  b.SetInsertPoint(skip);
  EmitOver(GoOn(b, dispatch_.warp, dispatch_.frame, {}));
}

void TurnOrder::Connect() {
  PrepareFrames();
  for (TurnRegion& region : places_.regions) BeginRegion(region);
  places_.regions.front().warp->addIncoming(function_.getArg(0), start_);
  places_.regions.front().frame->addIncoming(frames_, start_);
  if (!always_in_step_) {
    for (TurnRegion* const region : {&dispatch_, &lose_step_}) {
      Builder b(NewBlock(region == &dispatch_ ? "go_on" : "lose_step"));
      region->head = b.GetInsertBlock();
      region->warp = b.CreatePHI(b.getPtrTy(), 4);
      region->frame = b.CreatePHI(b.getPtrTy(), 4);
      if (region == &lose_step_) lost_at_ = b.CreatePHI(b.getInt32Ty(), 4);
    }
  }
  for (unsigned stop = 0; stop < places_.stops.size(); ++stop) EndBy(stop);
  if (places_.done) EndBy(static_cast<unsigned>(places_.stops.size()));
  if (always_in_step_) return;
  EmitDispatch();
  EmitLoseStep();
}

}  // namespace gridloom::exec
