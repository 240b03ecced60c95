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
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "sim/exec/compiler/turn_order.h"
#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/contract/abi.h"

namespace gridloom::exec {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr const char* kMarkNames[] = {"gl.turns.begin", "gl.turn", "gl.turns.end"};
constexpr const char* kSharedBuffer = "gl.shared_buffer";
constexpr const char* kWholeTurn = "gl.whole_turn";
constexpr unsigned kLine = 64;

bool IsMark(const Instruction& instruction, TurnMark mark) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName() == kMarkNames[static_cast<unsigned>(mark)];
}

/// A value that is needed behind stops.
struct Kept {
  explicit Kept(Instruction& value) : value(&value) {}

  Instruction* value;
  llvm::SmallVector<unsigned, 4> taken;  ///< stops behind which it is needed
  llvm::SmallVector<unsigned, 4> kept;   ///< those of them before which it may not be in the frame yet
  bool made_again = false;               ///< in place of being kept: it is little work
  std::uint64_t offset = 0;              ///< in the frame
  llvm::SmallPtrSet<const BasicBlock*, 16> live;
  /// A phi in the place of one of the values that it takes: what is kept on the ways to it from blocks before.
  llvm::SmallVector<std::pair<BasicBlock*, Value*>, 2> edges;
  Kept* place_of = nullptr;  ///< whose place it has
  bool carries = false;      ///< it is needed only where it becomes another that is kept
};

/// The turns of one function. `warp_` and `frame_` stand for the running warp and its frame until the end.
class Turns {
 public:
  Turns(llvm::Function& function, unsigned warps, bool in_a_row)
      : function_(function), layout_(function.getDataLayout()), in_a_row_(in_a_row) {
    frames_.warps = warps;
  }

  /// False: the frames are too large.
  bool Take();

 private:
  void Split();
  void MoveCommon();
  void MoveBuffers();
  void ReplaceBuffer(Instruction& pointer, const std::function<Value*(llvm::IRBuilder<>&)>& make);
  void FindKept();
  void FindStopsBefore(Kept& kept) const;
  void AddCarriers();
  void SharePlaces();
  bool TakesPlaceOf(Kept& phi, Kept& other, llvm::ArrayRef<Kept*> there) const;
  bool Disturbs(const Kept& one, const Kept& other) const;
  llvm::SmallSetVector<BasicBlock*, 16> WithoutStop(BasicBlock* from) const;
  bool IsCommon(const Value* value) const;
  bool IsLittleWork(const Value* value, int& budget) const;
  Value* MakeAgain(Value* value, llvm::IRBuilder<>& b, unsigned region, llvm::DenseMap<Value*, Value*>& made);
  std::uint64_t Place(std::uint64_t bytes, std::uint64_t align);
  void FindIdle();
  unsigned IdleFrom(unsigned region) const;
  std::optional<std::pair<unsigned, bool>> IdleSide(const Value* condition) const;
  void KeepAt(BasicBlock& block, Value* value, std::uint64_t offset);
  void Keep();
  void TakeKept();
  void ReplaceTurnValues();
  Value* Slot(llvm::IRBuilder<>& b, Value* frame, std::uint64_t offset) const {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), frame, offset);
  }

  llvm::Function& function_;
  const llvm::DataLayout& layout_;
  const bool in_a_row_;  ///< thread number = its x
  BasicBlock* entry_ = nullptr;
  BasicBlock* start_ = nullptr;  ///< of a CTA: the entry, or the head of the loop over the CTAs of a row
  Instruction *warp_ = nullptr, *frame_ = nullptr;
  TurnPlaces places_;
  TurnFrames frames_;
  std::vector<Kept> kept_;
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
  start_ = warp_->getParent();
  places_.regions.emplace_back(start_->splitBasicBlock(warp_, "warp"));
  for (Instruction* turn : turns) {
    BasicBlock* before = turn->getParent();
    BasicBlock* after = before->splitBasicBlock(turn->getNextNode(), "turn");
    places_.stops.push_back({before, after, turn->hasMetadata(kWholeTurn)});
    turn->eraseFromParent();
    places_.regions.emplace_back(after);
  }
  for (unsigned i = 0; i < places_.stops.size(); ++i) places_.stop_of[places_.stops[i].before] = i;
  if (end) {
    places_.done = end->getParent();
    places_.over = places_.done->splitBasicBlock(end->getNextNode(), "over");
    end->eraseFromParent();
  }
  llvm::IRBuilder<> b(warp_->getParent(), std::next(warp_->getIterator()));
  frame_ = EmitTurnMark(b, TurnMark::kBegin);
}

/// A value that is the same for all warps and there before the first one starts.
bool Turns::IsCommon(const Value* value) const {
  const auto* instruction = llvm::dyn_cast<Instruction>(value);
  return !instruction || instruction->getParent() == entry_ || instruction->getParent() == start_;
}

/// Scalars of launch and CTA are made once, before the warps. What only some ways need is made too where it is cheap
/// and harmless, as the addresses of buffers are.
void Turns::MoveCommon() {
  for (BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
    if (block == entry_ || block == start_) continue;
    for (Instruction& instruction : llvm::make_early_inc_range(*block)) {
      if (auto* buffer = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
        buffer->moveBefore(*entry_, entry_->begin());
        continue;
      }
      if (llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator() || instruction.getType()->isVectorTy())
        continue;
      const bool reads =
          block == places_.regions.front().head && instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load);
      if (!reads && (instruction.mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(&instruction))) continue;
      if (std::all_of(instruction.op_begin(), instruction.op_end(),
                      [&](const llvm::Use& use) { return IsCommon(use.get()); }))
        instruction.moveBefore(start_->getTerminator());
    }
  }
}

std::uint64_t Turns::Place(std::uint64_t bytes, std::uint64_t align) {
  const std::uint64_t offset = llvm::alignTo(frames_.bytes, align);
  frames_.bytes = offset + bytes;
  return offset;
}

/// Puts what `make` gives in the place of `pointer`, which does not depend on the warp, wherever that is used.
void Turns::ReplaceBuffer(Instruction& pointer, const std::function<Value*(llvm::IRBuilder<>&)>& make) {
  for (llvm::Use& use : llvm::make_early_inc_range(pointer.uses())) {
    auto* user = llvm::cast<Instruction>(use.getUser());
    if (IsCommon(user) && llvm::isa<llvm::GetElementPtrInst>(user)) {
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

/// Where a warp may come from behind the beginning of `from` without a stop in between.
llvm::SmallSetVector<BasicBlock*, 16> Turns::WithoutStop(BasicBlock* from) const {
  llvm::SmallSetVector<BasicBlock*, 16> seen;
  const auto add = [&](BasicBlock* block) {
    if (places_.stop_of.contains(block) || block == places_.done) return;
    for (BasicBlock* next : llvm::successors(block)) seen.insert(next);
  };
  add(from);
  for (unsigned i = 0; i < seen.size(); ++i) add(seen[i]);
  return seen;
}

/// A stop that a warp reaches from where the value is made without another stop in between.
void Turns::FindStopsBefore(Kept& kept) const {
  llvm::SetVector<BasicBlock*> seen;
  seen.insert(kept.value->getParent());
  for (unsigned i = 0; i < seen.size(); ++i) {
    if (const auto stop = places_.stop_of.find(seen[i]); stop != places_.stop_of.end()) {
      if (llvm::is_contained(kept.taken, stop->second)) kept.kept.push_back(stop->second);
      continue;
    }
    for (BasicBlock* next : llvm::successors(seen[i]))
      if (kept.live.contains(next)) seen.insert(next);
  }
}

/// Whether `one` is kept where `other` is needed.
bool Turns::Disturbs(const Kept& one, const Kept& other) const {
  const auto needed = [&](const BasicBlock* block) { return other.live.contains(block); };
  if (!one.edges.empty()) return needed(one.value->getParent());
  return llvm::any_of(one.kept, [&](unsigned stop) { return needed(places_.stops[stop].after); });
}

/// Whether a phi can have the place of `other`, one of the values that it takes, and of those that are `there` already:
/// no two are needed at the same time. What it takes besides is kept where it comes from.
bool Turns::TakesPlaceOf(Kept& phi, Kept& other, llvm::ArrayRef<Kept*> there) const {
  auto& node = *llvm::cast<llvm::PHINode>(phi.value);
  if (WithoutStop(node.getParent()).contains(node.getParent())) return false;  // a loop would keep it in each round
  decltype(phi.edges) edges;
  const llvm::SmallSetVector<BasicBlock*, 16> near = WithoutStop(other.value->getParent());
  for (unsigned i = 0; i < node.getNumIncomingValues(); ++i) {
    BasicBlock* const from = node.getIncomingBlock(i);
    const bool stopped_since = from != other.value->getParent() && !near.contains(from);
    if (node.getIncomingValue(i) == other.value && (other.place_of || stopped_since)) continue;
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
    if (!branch || (branch->isConditional() && branch->getSuccessor(0) == branch->getSuccessor(1))) return false;
    if (!llvm::isa<llvm::UndefValue>(node.getIncomingValue(i))) edges.emplace_back(from, node.getIncomingValue(i));
  }
  const auto in_the_way = [&](const Kept* kept) {
    return kept->live.contains(node.getParent()) || Disturbs(*kept, phi);
  };
  if (edges.empty() || llvm::any_of(there, in_the_way)) return false;
  phi.edges = std::move(edges);
  return true;
}

/// Phis between values that are kept: they are not needed behind a stop themselves.
void Turns::AddCarriers() {
  llvm::SmallPtrSet<const Value*, 32> kept_values;
  for (const Kept& kept : kept_)
    if (!kept.made_again) kept_values.insert(kept.value);
  const auto takes_kept = [&](const llvm::PHINode& phi) {
    return llvm::any_of(phi.incoming_values(), [&](const llvm::Use& use) { return kept_values.contains(use.get()); });
  };
  llvm::SmallSetVector<llvm::PHINode*, 8> carriers;
  for (const Kept& kept : kept_) {
    const auto* const phi = kept.made_again ? nullptr : llvm::dyn_cast<llvm::PHINode>(kept.value);
    if (!phi) continue;
    for (const llvm::Use& use : phi->incoming_values()) {
      auto* const between = llvm::dyn_cast<llvm::PHINode>(use.get());
      if (between && !kept_values.contains(between) && takes_kept(*between)) carriers.insert(between);
    }
  }
  for (llvm::PHINode* const carrier : carriers) {
    kept_.emplace_back(*carrier);
    kept_.back().live = BlocksThatNeed(*carrier);
    kept_.back().carries = true;
  }
}

/// Where a value lives on in a phi, as the sum of a thread does that adds to it in some turns and not in others, both
/// have one place: warps that do not change it do nothing.
void Turns::SharePlaces() {
  AddCarriers();
  llvm::DenseMap<const Value*, Kept*> kept_of;
  for (Kept& kept : kept_)
    if (!kept.made_again) kept_of[kept.value] = &kept;
  llvm::DenseMap<Kept*, llvm::SmallVector<Kept*, 4>> there;  // by the first of them
  for (Instruction& instruction : llvm::instructions(function_)) {
    auto* const phi = llvm::dyn_cast<llvm::PHINode>(&instruction);
    if (!phi || !kept_of.contains(phi)) continue;
    Kept& kept = *kept_of.lookup(phi);
    for (const llvm::Use& use : phi->incoming_values()) {
      Kept* other = kept_of.lookup(use.get());
      if (!other || other == &kept || (other->carries && !other->place_of)) continue;
      Kept* const first = other->place_of ? other->place_of : other;
      if (there[first].empty()) there[first].push_back(first);
      if (first == &kept || llvm::is_contained(there[first], &kept) || there.contains(&kept)) continue;
      if (!TakesPlaceOf(kept, *other, there[first])) continue;
      kept.place_of = first;
      kept.kept.clear();
      there[first].push_back(&kept);
      break;
    }
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
    if (&block == entry_ || &block == start_ || &block == places_.over) continue;
    for (Instruction& instruction : block) {
      if (&instruction == warp_ || &instruction == frame_ || !instruction.isUsedOutsideOfBlock(&block)) continue;
      Kept kept(instruction);
      kept.live = BlocksThatNeed(instruction);
      for (unsigned stop = 0; stop < places_.stops.size(); ++stop)
        if (kept.live.contains(places_.stops[stop].after)) kept.taken.push_back(stop);
      if (kept.taken.empty()) continue;
      int budget = kLittleWork;
      kept.made_again = IsLittleWork(&instruction, budget);
      if (!kept.made_again) FindStopsBefore(kept);
      kept_.push_back(std::move(kept));
    }
  }
}

/// Puts a value into the frame at the end of `block`.
void Turns::KeepAt(BasicBlock& block, Value* value, std::uint64_t offset) {
  llvm::IRBuilder<> b(block.getTerminator());
  if (llvm::Type* const type = StorageType(value->getType()); type != value->getType())
    value = b.CreateBitCast(value, type);
  b.CreateStore(value, Slot(b, frame_, offset));
}

/// Gives each kept value its place, the largest first, and keeps it before the stops.
void Turns::Keep() {
  std::vector<Kept*> by_size;
  const auto bytes = [&](const Kept* kept) {
    return layout_.getTypeAllocSize(StorageType(kept->value->getType())).getFixedValue();
  };
  for (Kept& kept : kept_)
    if (!kept.made_again && !kept.place_of && !kept.carries) by_size.push_back(&kept);
  std::ranges::stable_sort(by_size, std::greater{}, bytes);
  for (Kept* kept : by_size)
    kept->offset =
        Place(bytes(kept),
              std::min<std::uint64_t>(layout_.getPrefTypeAlign(StorageType(kept->value->getType())).value(), kLine));
  llvm::DenseMap<std::pair<BasicBlock*, BasicBlock*>, BasicBlock*> ways;
  for (Kept& kept : kept_) {
    if (kept.made_again) continue;
    if (kept.place_of) kept.offset = kept.place_of->offset;
    for (const unsigned stop : kept.kept) KeepAt(*places_.stops[stop].before, kept.value, kept.offset);
    for (const auto& [from, value] : kept.edges) {
      BasicBlock*& way = ways[{from, kept.value->getParent()}];
      if (!way) way = from->getSingleSuccessor() ? from : llvm::SplitEdge(from, kept.value->getParent());
      KeepAt(*way, value, kept.offset);
    }
  }
  if (!places_.AlwaysInStep()) frames_.state_offset = Place(4, 4);
  // An odd number of lines: frames at the same distance from each other would share few sets of the cache.
  frames_.bytes = (llvm::alignTo(frames_.bytes, kLine) / kLine | 1) * kLine;
}

/// A condition that holds for all warps from a number on, or for none of them, as it compares the warp's number, or its
/// first thread's where threads stand in one row.
std::optional<std::pair<unsigned, bool>> Turns::IdleSide(const Value* condition) const {
  const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(condition);
  const auto* load = compare ? llvm::dyn_cast<llvm::LoadInst>(compare->getOperand(0)) : nullptr;
  const auto* bound = compare ? llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1)) : nullptr;
  if (!load || !bound || !load->hasMetadata(llvm::LLVMContext::MD_invariant_load)) return std::nullopt;
  llvm::APInt offset(64, 0);
  const Value* const base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
  const bool thread = in_a_row_ && offset == offsetof(WarpCtx, tid0);
  if (base != warp_ || !load->getType()->isIntegerTy(32) || (!thread && offset != offsetof(WarpCtx, warp_id)))
    return std::nullopt;
  const unsigned each = thread ? kWarpSize : 1;
  // Numbers of a CTA's threads are below 2^31: both kinds of compares see the same.
  constexpr std::uint64_t kMostThreads = 1024;
  const std::uint64_t limit = bound->getZExtValue();
  if (limit > kMostThreads) return std::nullopt;
  const auto from = [&](std::uint64_t least) { return static_cast<unsigned>((least + each - 1) / each); };
  switch (compare->getPredicate()) {
    case llvm::CmpInst::ICMP_UGT:
    case llvm::CmpInst::ICMP_SGT: return std::pair(from(limit + 1), true);
    case llvm::CmpInst::ICMP_UGE:
    case llvm::CmpInst::ICMP_SGE: return std::pair(from(limit), true);
    case llvm::CmpInst::ICMP_ULT:
    case llvm::CmpInst::ICMP_SLT: return std::pair(from(limit), false);
    case llvm::CmpInst::ICMP_ULE:
    case llvm::CmpInst::ICMP_SLE: return std::pair(from(limit + 1), false);
    case llvm::CmpInst::ICMP_EQ: return std::pair(from(limit + 1), false);
    case llvm::CmpInst::ICMP_NE: return std::pair(from(limit + 1), true);
    default: return std::nullopt;
  }
}

/// The number of the warp from which on all go from the beginning of `region` to its likely stop without a store or a
/// call on their way; 0: there is none.
unsigned Turns::IdleFrom(unsigned region) const {
  constexpr unsigned kMostBlocks = 8;
  const unsigned stop = places_.LikelyStop(region);
  unsigned idle = 0;
  const BasicBlock* block = places_.regions[region].head;
  for (unsigned i = 0; i < kMostBlocks; ++i) {
    for (const Instruction& instruction : *block)
      if (&instruction != warp_ && &instruction != frame_ && instruction.mayHaveSideEffects()) return 0;
    if (block == places_.done) return stop == places_.stops.size() ? idle : 0;
    if (const auto at = places_.stop_of.find(block); at != places_.stop_of.end()) return at->second == stop ? idle : 0;
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (!branch) return 0;
    unsigned way = 0;
    if (branch->isConditional()) {
      const auto side = IdleSide(branch->getCondition());
      if (!side) return 0;
      idle = std::max({idle, side->first, 1u});
      way = side->second ? 0 : 1;
    }
    block = branch->getSuccessor(way);
  }
  return 0;
}

void Turns::FindIdle() {
  for (unsigned region = 0; region < places_.regions.size(); ++region)
    places_.regions[region].idle_from = IdleFrom(region);
}

Value* Turns::MakeAgain(Value* value, llvm::IRBuilder<>& b, unsigned region, llvm::DenseMap<Value*, Value*>& made) {
  if (value == warp_) return places_.regions[region].warp;
  if (value == frame_) return places_.regions[region].frame;
  if (IsCommon(value)) return value;
  if (Value* there = made.lookup(value)) return there;
  Instruction* copy = llvm::cast<Instruction>(value)->clone();
  for (llvm::Use& use : copy->operands()) use.set(MakeAgain(use.get(), b, region, made));
  return made[value] = b.Insert(copy);
}

/// Behind each stop: what is needed is taken from the frame, or made again.
void Turns::TakeKept() {
  std::vector<llvm::DenseMap<Value*, Value*>> made(places_.regions.size());
  std::vector<Instruction*> bodies;  // behind the note: from there passes can move it to where it is used
  for (const TurnRegion& region : places_.regions) bodies.push_back(region.note->getNextNode());
  for (Kept& kept : kept_) {
    if (kept.taken.empty()) continue;
    llvm::Type* const type = kept.value->getType();
    llvm::SSAUpdater updater;
    updater.Initialize(type, kept.value->getName());
    updater.AddAvailableValue(kept.value->getParent(), kept.value);
    llvm::SmallVector<llvm::Use*, 16> uses;
    for (llvm::Use& use : kept.value->uses()) uses.push_back(&use);
    for (const unsigned stop : kept.taken) {
      llvm::IRBuilder<> b(bodies[stop + 1]);
      Value* taken = nullptr;
      if (kept.made_again) {
        taken = MakeAgain(kept.value, b, stop + 1, made[stop + 1]);
      } else {
        llvm::Type* const stored = StorageType(type);
        taken = b.CreateLoad(stored, Slot(b, places_.regions[stop + 1].frame, kept.offset));
        if (stored != type) taken = b.CreateBitCast(taken, type);
      }
      updater.AddAvailableValue(places_.stops[stop].after, taken);
    }
    for (llvm::Use* use : uses) {
      auto* user = llvm::cast<Instruction>(use->getUser());
      if (user->getParent() != kept.value->getParent() || llvm::isa<llvm::PHINode>(user))
        updater.RewriteUseAfterInsertions(*use);
    }
  }
}

/// Puts the warp that runs and its frame where a mark stands for them.
void Turns::ReplaceTurnValues() {
  for (Instruction* const mark : {warp_, frame_}) {
    llvm::SSAUpdater updater;
    updater.Initialize(mark->getType(), mark->getName());
    for (const TurnRegion& region : places_.regions)
      updater.AddAvailableValue(region.head, mark == warp_ ? region.warp : region.frame);
    for (llvm::Use& use : llvm::make_early_inc_range(mark->uses())) updater.RewriteUseAfterInsertions(use);
    mark->eraseFromParent();
  }
}

bool Turns::Take() {
  Split();
  MoveCommon();
  MoveBuffers();
  places_.FindRegions();
  FindKept();
  SharePlaces();
  Keep();
  FindIdle();
  if (frames_.bytes * frames_.warps > kMostTurnFrames) return false;
  TurnOrder(function_, places_, frames_, start_, warp_, frame_).Connect();
  TakeKept();
  ReplaceTurnValues();
  return true;
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

void MarkWhole(llvm::Instruction& turn) { turn.setMetadata(kWholeTurn, llvm::MDNode::get(turn.getContext(), {})); }

void MarkShared(llvm::AllocaInst& buffer) {
  buffer.setMetadata(kSharedBuffer, llvm::MDNode::get(buffer.getContext(), {}));
}

bool TakeTurns(llvm::Module& module, unsigned warps, bool in_a_row) {
  for (llvm::Function& function : module) {
    const bool turns = llvm::any_of(llvm::instructions(function), [](const Instruction& instruction) {
      return IsMark(instruction, TurnMark::kBegin);
    });
    if (turns && !Turns(function, warps, in_a_row).Take()) return false;
  }
  for (const char* const name : kMarkNames)
    if (llvm::Function* const mark = module.getFunction(name)) mark->eraseFromParent();
  return true;
}

}  // namespace gridloom::exec
