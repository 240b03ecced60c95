#include "sim/exec/compiler/turns.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/exec/compiler/warp_source.h"

namespace gridloom::exec {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr const char* kMarkNames[] = {"gl.turns.begin", "gl.turn", "gl.turns.end"};
constexpr const char* kSharedBuffer = "gl.shared_buffer";
constexpr unsigned kLine = 64;

bool IsMark(const Instruction& instruction, TurnMark mark) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName() == kMarkNames[static_cast<unsigned>(mark)];
}

/// A place where a warp stops until all others have come to a barrier or ended.
struct Stop {
  BasicBlock *before, *after;
};

/// What a warp runs in one turn: from its start, or from behind a stop.
struct Region {
  explicit Region(BasicBlock* head = nullptr) : head(head) {}

  BasicBlock* head;
  llvm::SmallVector<std::pair<unsigned, unsigned>, 2> stops;  ///< that end it, and how many blocks away
  bool ends = false;                                          ///< a warp may end in it
  llvm::PHINode *warp = nullptr, *frame = nullptr;
  Instruction* note = nullptr;  ///< of the warp that runs
};

/// A value that is needed behind stops.
struct Kept {
  explicit Kept(Instruction& value) : value(&value) {}

  Instruction* value;
  llvm::SmallVector<unsigned, 4> taken;  ///< stops behind which it is needed
  llvm::SmallVector<unsigned, 4> kept;   ///< those of them before which it may not be in the frame yet
  bool made_again = false;               ///< in place of being kept: it is little work
  std::uint64_t offset = 0;              ///< in the frame
};

/// The turns of one function. `warp_` and `frame_` stand for the running warp and its frame until the end.
class Turns {
 public:
  Turns(llvm::Function& function, unsigned warps)
      : function_(function), layout_(function.getDataLayout()), warps_(warps) {}

  void Take();

 private:
  void Split();
  void MoveCommon();
  void MoveBuffers();
  void ReplaceBuffer(Instruction& pointer, const std::function<Value*(llvm::IRBuilder<>&)>& make);
  void FindRegions();
  void FindKept();
  void FindStopsBefore(Kept& kept, const llvm::SmallPtrSet<const BasicBlock*, 16>& live) const;
  bool IsCommon(const Value* value) const;
  bool IsLittleWork(const Value* value, int& budget) const;
  Value* MakeAgain(Value* value, llvm::IRBuilder<>& b, unsigned region, llvm::DenseMap<Value*, Value*>& made);
  std::uint64_t Place(std::uint64_t bytes, std::uint64_t align);
  void Keep();
  void TakeKept();
  void Connect();
  void BeginRegion(Region& region);
  void PrepareFrames();
  void EndBy(const Stop& stop, unsigned number);
  void EndAtDone();
  BasicBlock* GoOn(llvm::IRBuilder<>& b, Value* warp, Value* frame, llvm::ArrayRef<unsigned> likely);
  void EnterLikely(llvm::IRBuilder<>& b, llvm::ArrayRef<unsigned> likely, Value* warp, Value* frame);
  static void Enter(llvm::IRBuilder<>& b, Region& region, Value* warp, Value* frame);
  void BeginTurn(llvm::IRBuilder<>& b, llvm::ArrayRef<unsigned> likely);
  void EmitDispatch();
  void EmitOver(BasicBlock* over);
  void ReplaceTurnValues();
  bool InStep() const;
  llvm::SmallVector<unsigned, 4> RegionsBefore(unsigned stop) const;
  Value* Slot(llvm::IRBuilder<>& b, Value* frame, std::uint64_t offset) const {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), frame, offset);
  }

  llvm::Function& function_;
  const llvm::DataLayout& layout_;
  const unsigned warps_;
  BasicBlock* entry_ = nullptr;
  Instruction *warp_ = nullptr, *frame_ = nullptr;
  llvm::AllocaInst *frames_ = nullptr, *waiting_ = nullptr;
  std::vector<Stop> stops_;
  llvm::DenseMap<BasicBlock*, unsigned> stop_of_;  ///< by the block before it
  BasicBlock* done_ = nullptr;
  std::vector<Region> regions_;  ///< of the start, then of each stop
  std::vector<Kept> kept_;
  std::uint64_t frame_bytes_ = 0;
  std::uint64_t state_offset_ = 0;
  bool in_step_ = false;
  Region dispatch_;  ///< where a frame says how to go on
};

/// Stops are at the ends of blocks, and the start of a warp at the beginning of one.
void Turns::Split() {
  std::vector<Instruction*> turns;
  Instruction* end = nullptr;
  for (Instruction& instruction : llvm::instructions(function_)) {
    if (IsMark(instruction, TurnMark::kBegin)) warp_ = &instruction;
    if (IsMark(instruction, TurnMark::kTurn)) turns.push_back(&instruction);
    if (IsMark(instruction, TurnMark::kEnd)) end = &instruction;
  }
  entry_ = &function_.getEntryBlock();
  regions_.emplace_back(entry_->splitBasicBlock(warp_, "warp"));
  for (Instruction* turn : turns) {
    BasicBlock* before = turn->getParent();
    BasicBlock* after = before->splitBasicBlock(turn->getNextNode(), "turn");
    turn->eraseFromParent();
    stops_.push_back({before, after});
    regions_.emplace_back(after);
  }
  for (unsigned i = 0; i < stops_.size(); ++i) stop_of_[stops_[i].before] = i;
  if (end) {
    done_ = end->getParent();
    end->eraseFromParent();
  }
  llvm::IRBuilder<> b(warp_->getParent(), std::next(warp_->getIterator()));
  frame_ = EmitTurnMark(b, TurnMark::kBegin);
}

/// A value that is the same for all warps and there before the first one starts.
bool Turns::IsCommon(const Value* value) const {
  const auto* instruction = llvm::dyn_cast<Instruction>(value);
  return !instruction || instruction->getParent() == entry_;
}

/// Scalars of launch and CTA are made once, before the warps. What only some ways need is made too where it is cheap
/// and harmless, as the addresses of buffers are.
void Turns::MoveCommon() {
  for (BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
    if (block == entry_) continue;
    for (Instruction& instruction : llvm::make_early_inc_range(*block)) {
      if (auto* buffer = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
        buffer->moveBefore(*entry_, entry_->begin());
        continue;
      }
      if (llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator() || instruction.getType()->isVectorTy())
        continue;
      const bool reads =
          block == regions_.front().head && instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load);
      if (!reads && (instruction.mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(&instruction))) continue;
      if (std::all_of(instruction.op_begin(), instruction.op_end(),
                      [&](const llvm::Use& use) { return IsCommon(use.get()); }))
        instruction.moveBefore(entry_->getTerminator());
    }
  }
}

std::uint64_t Turns::Place(std::uint64_t bytes, std::uint64_t align) {
  const std::uint64_t offset = llvm::alignTo(frame_bytes_, align);
  frame_bytes_ = offset + bytes;
  return offset;
}

/// Puts what `make` gives in the place of `pointer`, which does not depend on the warp, wherever that is used.
void Turns::ReplaceBuffer(Instruction& pointer, const std::function<Value*(llvm::IRBuilder<>&)>& make) {
  for (llvm::Use& use : llvm::make_early_inc_range(pointer.uses())) {
    auto* user = llvm::cast<Instruction>(use.getUser());
    if (user->getParent() == entry_ && llvm::isa<llvm::GetElementPtrInst>(user)) {
      ReplaceBuffer(*user, [&](llvm::IRBuilder<>& b) {
        Value* const base = make(b);
        Instruction* const copy = user->clone();
        copy->replaceUsesOfWith(&pointer, base);
        return b.Insert(copy);
      });
      user->eraseFromParent();
      continue;
    }
    auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
    llvm::IRBuilder<> b(phi ? phi->getIncomingBlock(use)->getTerminator() : user);
    use.set(make(b));
  }
}

/// Buffers whose content may be needed behind a barrier go into the frames.
void Turns::MoveBuffers() {
  std::vector<llvm::AllocaInst*> buffers;
  for (Instruction& instruction : *entry_) {
    auto* buffer = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (buffer && !buffer->hasMetadata(kSharedBuffer)) buffers.push_back(buffer);
  }
  for (llvm::AllocaInst* buffer : buffers) {
    const std::uint64_t offset =
        Place(layout_.getTypeAllocSize(buffer->getAllocatedType()), buffer->getAlign().value());
    ReplaceBuffer(*buffer, [&](llvm::IRBuilder<>& b) { return Slot(b, frame_, offset); });
    buffer->eraseFromParent();
  }
}

void Turns::FindRegions() {
  for (Region& region : regions_) {
    llvm::MapVector<BasicBlock*, unsigned> steps;  // nearest first
    steps.insert({region.head, 0});
    for (unsigned i = 0; i < steps.size(); ++i) {
      const auto [block, away] = *std::next(steps.begin(), i);
      if (const auto stop = stop_of_.find(block); stop != stop_of_.end()) {
        region.stops.emplace_back(stop->second, away);
        continue;
      }
      region.ends |= block == done_;
      for (BasicBlock* next : llvm::successors(block)) steps.insert({next, away + 1});
    }
  }
  in_step_ = InStep();
}

/// The regions that `stop` ends, the nearest first.
llvm::SmallVector<unsigned, 4> Turns::RegionsBefore(unsigned stop) const {
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> found;  // how far away, and the region
  for (unsigned i = 0; i < regions_.size(); ++i)
    for (const auto& [end, away] : regions_[i].stops)
      if (end == stop) found.emplace_back(away, i);
  llvm::sort(found);
  llvm::SmallVector<unsigned, 4> regions;
  for (const auto& [away, region] : found) regions.push_back(region);
  return regions;
}

/// All warps go through the same stops, one after the other, and end behind the last one.
bool Turns::InStep() const {
  for (const Region& region : regions_)
    if (region.stops.size() + (region.ends ? 1 : 0) != 1) return false;
  for (unsigned i = 0; i < stops_.size(); ++i)
    if (RegionsBefore(i).size() != 1) return false;
  return true;
}

/// A stop that a warp reaches from where the value is made without another stop in between.
void Turns::FindStopsBefore(Kept& kept, const llvm::SmallPtrSet<const BasicBlock*, 16>& live) const {
  llvm::SetVector<BasicBlock*> seen;
  seen.insert(kept.value->getParent());
  for (unsigned i = 0; i < seen.size(); ++i) {
    if (const auto stop = stop_of_.find(seen[i]); stop != stop_of_.end()) {
      if (llvm::is_contained(kept.taken, stop->second)) kept.kept.push_back(stop->second);
      continue;
    }
    for (BasicBlock* next : llvm::successors(seen[i]))
      if (live.contains(next)) seen.insert(next);
  }
}

/// Made of what is there anyway by few operations.
bool Turns::IsLittleWork(const Value* value, int& budget) const {
  if (IsCommon(value) || value == warp_ || value == frame_) return true;
  const auto& instruction = *llvm::cast<Instruction>(value);
  constexpr int kVectorCost = 4;
  budget -= instruction.getType()->isVectorTy() ? kVectorCost : 1;
  if (budget < 0) return false;
  const bool plain =
      llvm::isa<llvm::GetElementPtrInst, llvm::CastInst, llvm::ICmpInst, llvm::InsertElementInst,
                llvm::ShuffleVectorInst>(instruction) ||
      (instruction.isBinaryOp() && instruction.getType()->isIntOrIntVectorTy() && !instruction.isIntDivRem());
  const bool field = instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load) &&
                     instruction.getOperand(0)->stripInBoundsConstantOffsets() == warp_;
  return (plain || field) && std::all_of(instruction.op_begin(), instruction.op_end(),
                                         [&](const llvm::Use& use) { return IsLittleWork(use.get(), budget); });
}

void Turns::FindKept() {
  constexpr int kLittleWork = 12;
  for (BasicBlock& block : function_) {
    if (&block == entry_) continue;
    for (Instruction& instruction : block) {
      if (&instruction == warp_ || &instruction == frame_ || !instruction.isUsedOutsideOfBlock(&block)) continue;
      const llvm::SmallPtrSet<const BasicBlock*, 16> live = BlocksThatNeed(instruction);
      Kept kept(instruction);
      for (unsigned stop = 0; stop < stops_.size(); ++stop)
        if (live.contains(stops_[stop].after)) kept.taken.push_back(stop);
      if (kept.taken.empty()) continue;
      int budget = kLittleWork;
      kept.made_again = IsLittleWork(&instruction, budget);
      if (!kept.made_again) FindStopsBefore(kept, live);
      kept_.push_back(std::move(kept));
    }
  }
}

/// Gives each kept value its place, the largest first, and keeps it before the stops.
void Turns::Keep() {
  std::vector<Kept*> by_size;
  const auto bytes = [&](const Kept* kept) {
    return layout_.getTypeAllocSize(StorageType(kept->value->getType())).getFixedValue();
  };
  for (Kept& kept : kept_)
    if (!kept.made_again) by_size.push_back(&kept);
  std::ranges::stable_sort(by_size, std::greater{}, bytes);
  for (Kept* kept : by_size) {
    llvm::Type* const type = StorageType(kept->value->getType());
    kept->offset = Place(bytes(kept), std::min<std::uint64_t>(layout_.getPrefTypeAlign(type).value(), kLine));
    for (const unsigned stop : kept->kept) {
      llvm::IRBuilder<> b(stops_[stop].before->getTerminator());
      Value* stored = kept->value;
      if (type != stored->getType()) stored = b.CreateBitCast(stored, type);
      b.CreateStore(stored, Slot(b, frame_, kept->offset));
    }
  }
  if (!in_step_) state_offset_ = Place(4, 4);
  // An odd number of lines: frames at the same distance from each other would share few sets of the cache.
  frame_bytes_ = (llvm::alignTo(frame_bytes_, kLine) / kLine | 1) * kLine;
}

Value* Turns::MakeAgain(Value* value, llvm::IRBuilder<>& b, unsigned region, llvm::DenseMap<Value*, Value*>& made) {
  if (value == warp_) return regions_[region].warp;
  if (value == frame_) return regions_[region].frame;
  if (IsCommon(value)) return value;
  if (Value* there = made.lookup(value)) return there;
  Instruction* copy = llvm::cast<Instruction>(value)->clone();
  for (llvm::Use& use : copy->operands()) use.set(MakeAgain(use.get(), b, region, made));
  return made[value] = b.Insert(copy);
}

/// Behind each stop: what is needed is taken from the frame, or made again.
void Turns::TakeKept() {
  std::vector<llvm::DenseMap<Value*, Value*>> made(regions_.size());
  for (Kept& kept : kept_) {
    llvm::Type* const type = kept.value->getType();
    llvm::SSAUpdater updater;
    updater.Initialize(type, kept.value->getName());
    updater.AddAvailableValue(kept.value->getParent(), kept.value);
    llvm::SmallVector<llvm::Use*, 16> uses;
    for (llvm::Use& use : kept.value->uses()) uses.push_back(&use);
    for (const unsigned stop : kept.taken) {
      llvm::IRBuilder<> b(regions_[stop + 1].note);
      Value* taken = nullptr;
      if (kept.made_again) {
        taken = MakeAgain(kept.value, b, stop + 1, made[stop + 1]);
      } else {
        llvm::Type* const stored = StorageType(type);
        taken = b.CreateLoad(stored, Slot(b, regions_[stop + 1].frame, kept.offset));
        if (stored != type) taken = b.CreateBitCast(taken, type);
      }
      updater.AddAvailableValue(stops_[stop].after, taken);
    }
    for (llvm::Use* use : uses) {
      auto* user = llvm::cast<Instruction>(use->getUser());
      if (user->getParent() != kept.value->getParent() || llvm::isa<llvm::PHINode>(user))
        updater.RewriteUseAfterInsertions(*use);
    }
  }
}

void Turns::BeginRegion(Region& region) {
  llvm::IRBuilder<> b(region.head, region.head->begin());
  region.warp = b.CreatePHI(b.getPtrTy(), 2, "warp");
  region.frame = b.CreatePHI(b.getPtrTy(), 2, "frame");
  b.SetInsertPoint(region.head, region.head->getFirstNonPHIIt());
  region.note = b.CreateStore(region.warp, b.CreateIntToPtr(function_.getArg(3), b.getPtrTy()), true);
}

/// Room for all frames. Where they say how to go on, all warps are at their start.
void Turns::PrepareFrames() {
  llvm::IRBuilder<> b(entry_, entry_->begin());
  frames_ = b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), frame_bytes_ * warps_), nullptr, "frames");
  frames_->setAlignment(llvm::Align(kLine));
  if (in_step_) return;
  waiting_ = b.CreateAlloca(b.getInt32Ty(), nullptr, "waiting");
  for (unsigned warp = 0; warp < warps_; ++warp)
    b.CreateStore(b.getInt32(0), Slot(b, frames_, warp * frame_bytes_ + state_offset_));
  b.CreateStore(b.getInt32(0), waiting_);
}

void Turns::Enter(llvm::IRBuilder<>& b, Region& region, Value* warp, Value* frame) {
  region.warp->addIncoming(warp, b.GetInsertBlock());
  region.frame->addIncoming(frame, b.GetInsertBlock());
  b.CreateBr(region.head);
}

/// Goes to where a warp goes on: in step, the only likely region; otherwise that which its frame says.
void Turns::EnterLikely(llvm::IRBuilder<>& b, llvm::ArrayRef<unsigned> likely, Value* warp, Value* frame) {
  if (in_step_) return Enter(b, regions_[likely.front()], warp, frame);
  Value* const state = likely.empty() ? nullptr : b.CreateLoad(b.getInt32Ty(), Slot(b, frame, state_offset_));
  for (const unsigned number : likely) {
    Region& region = regions_[number];
    BasicBlock* const other = BasicBlock::Create(b.getContext(), "other_place", &function_);
    region.warp->addIncoming(warp, b.GetInsertBlock());
    region.frame->addIncoming(frame, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpEQ(state, b.getInt32(number)), region.head, other);
    b.SetInsertPoint(other);
  }
  Enter(b, dispatch_, warp, frame);
}

/// On to the next warp. Returns where all have had their turn.
BasicBlock* Turns::GoOn(llvm::IRBuilder<>& b, Value* warp, Value* frame, llvm::ArrayRef<unsigned> likely) {
  Value* const next = b.CreateInBoundsGEP(b.getInt8Ty(), warp, function_.getArg(2));
  Value* const next_frame = Slot(b, frame, frame_bytes_);
  BasicBlock* const more = BasicBlock::Create(b.getContext(), "next_warp", &function_);
  BasicBlock* const over = BasicBlock::Create(b.getContext(), "turn_over", &function_);
  b.CreateCondBr(b.CreateICmpEQ(next, function_.getArg(1)), over, more);
  b.SetInsertPoint(more);
  EnterLikely(b, likely, next, next_frame);
  return over;
}

/// All warps have stopped or ended, and not all of them ended.
void Turns::BeginTurn(llvm::IRBuilder<>& b, llvm::ArrayRef<unsigned> likely) {
  if (!in_step_) b.CreateStore(b.getInt32(0), waiting_);
  EnterLikely(b, likely, function_.getArg(0), frames_);
}

void Turns::EndBy(const Stop& stop, unsigned number) {
  stop.before->getTerminator()->eraseFromParent();
  llvm::IRBuilder<> b(stop.before);
  if (!in_step_) {
    b.CreateStore(b.getInt32(number + 1), Slot(b, frame_, state_offset_));
    b.CreateStore(b.getInt32(1), waiting_);
  }
  constexpr std::size_t kMostLikely = 3;
  llvm::SmallVector<unsigned, 4> likely = RegionsBefore(number);
  likely.resize(std::min(likely.size(), kMostLikely));
  b.SetInsertPoint(GoOn(b, warp_, frame_, likely));
  BeginTurn(b, {number + 1});
}

/// Behind the last warp of a turn that has ended: another turn where some have stopped.
void Turns::EmitOver(BasicBlock* over) {
  llvm::IRBuilder<> b(over);
  BasicBlock* const turn = BasicBlock::Create(b.getContext(), "next_turn", &function_);
  BasicBlock* const last = BasicBlock::Create(b.getContext(), "all_ended", &function_);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateLoad(b.getInt32Ty(), waiting_), b.getInt32(0)), last, turn);
  b.SetInsertPoint(turn);
  BeginTurn(b, {});
  b.SetInsertPoint(last);
  b.CreateRetVoid();
}

void Turns::EndAtDone() {
  if (!done_) return;
  done_->getTerminator()->eraseFromParent();
  llvm::IRBuilder<> b(done_);
  if (!in_step_) {
    b.CreateStore(b.getInt32(static_cast<std::uint32_t>(regions_.size())), Slot(b, frame_, state_offset_));
    EmitOver(GoOn(b, warp_, frame_, {}));
    return;
  }
  const auto last = std::ranges::find_if(regions_, [](const Region& region) { return region.ends; });
  b.SetInsertPoint(GoOn(b, warp_, frame_, {static_cast<unsigned>(last - regions_.begin())}));
  b.CreateRetVoid();
}

/// Where a warp goes on as its frame says; warps that have ended are left out.
void Turns::EmitDispatch() {
  llvm::IRBuilder<> b(dispatch_.head);
  BasicBlock* const never = BasicBlock::Create(b.getContext(), "never", &function_);
  BasicBlock* const skip = BasicBlock::Create(b.getContext(), "skip", &function_);
  Value* const state = b.CreateLoad(b.getInt32Ty(), Slot(b, dispatch_.frame, state_offset_));
  llvm::SwitchInst* const go = b.CreateSwitch(state, never);
  for (unsigned i = 0; i < regions_.size(); ++i) {
    go->addCase(b.getInt32(i), regions_[i].head);
    regions_[i].warp->addIncoming(dispatch_.warp, dispatch_.head);
    regions_[i].frame->addIncoming(dispatch_.frame, dispatch_.head);
  }
  go->addCase(b.getInt32(static_cast<std::uint32_t>(regions_.size())), skip);
  b.SetInsertPoint(never);
  b.CreateUnreachable();
  b.SetInsertPoint(skip);
  EmitOver(GoOn(b, dispatch_.warp, dispatch_.frame, {}));
}

/// From one warp to the next, and from one turn to the next.
void Turns::Connect() {
  PrepareFrames();
  for (Region& region : regions_) BeginRegion(region);
  regions_.front().warp->addIncoming(function_.getArg(0), entry_);
  regions_.front().frame->addIncoming(frames_, entry_);
  if (!in_step_) {
    llvm::IRBuilder<> b(BasicBlock::Create(function_.getContext(), "go_on", &function_));
    dispatch_.head = b.GetInsertBlock();
    dispatch_.warp = b.CreatePHI(b.getPtrTy(), 4);
    dispatch_.frame = b.CreatePHI(b.getPtrTy(), 4);
    EmitDispatch();
  }
  for (unsigned i = 0; i < stops_.size(); ++i) EndBy(stops_[i], i);
  EndAtDone();
}

/// Puts the warp that runs and its frame where a mark stands for them.
void Turns::ReplaceTurnValues() {
  for (Instruction* const mark : {warp_, frame_}) {
    llvm::SSAUpdater updater;
    updater.Initialize(mark->getType(), mark->getName());
    for (const Region& region : regions_)
      updater.AddAvailableValue(region.head, mark == warp_ ? region.warp : region.frame);
    for (llvm::Use& use : llvm::make_early_inc_range(mark->uses())) updater.RewriteUseAfterInsertions(use);
    mark->eraseFromParent();
  }
}

void Turns::Take() {
  Split();
  MoveCommon();
  MoveBuffers();
  FindRegions();
  FindKept();
  Keep();
  Connect();
  TakeKept();
  ReplaceTurnValues();
}

}  // namespace

llvm::CallInst* EmitTurnMark(llvm::IRBuilder<>& b, TurnMark mark) {
  llvm::Type* const type = mark == TurnMark::kBegin ? static_cast<llvm::Type*>(b.getPtrTy()) : b.getVoidTy();
  llvm::Module* const module = b.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(kMarkNames[static_cast<unsigned>(mark)], llvm::FunctionType::get(type, false));
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  for (const auto attribute : {llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn, llvm::Attribute::NoDuplicate,
                               llvm::Attribute::Convergent})
    function->addFnAttr(attribute);
  if (mark == TurnMark::kBegin) function->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  return b.CreateCall(callee);
}

void MarkShared(llvm::AllocaInst& buffer) {
  buffer.setMetadata(kSharedBuffer, llvm::MDNode::get(buffer.getContext(), {}));
}

void TakeTurns(llvm::Module& module, unsigned warps) {
  for (llvm::Function& function : module) {
    const bool turns = llvm::any_of(llvm::instructions(function), [](const Instruction& instruction) {
      return IsMark(instruction, TurnMark::kBegin);
    });
    if (turns) Turns(function, warps).Take();
  }
  for (const char* const name : kMarkNames)
    if (llvm::Function* const mark = module.getFunction(name)) mark->eraseFromParent();
}

}  // namespace gridloom::exec
