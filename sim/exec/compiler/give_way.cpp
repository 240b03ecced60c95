#include "sim/exec/compiler/give_way.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <set>

#include "sim/exec/compiler/thread_values.h"

namespace gridloom::exec {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Value;

/// How a value differs between the warps of a CTA, in ascending order.
enum class Sameness : std::uint8_t { kDiffers, kByLane, kSame };

/// What concerns shared memory and waiting, in the order of the code.
struct Event {
  enum Kind : std::uint8_t { kLoad, kStore, kCut } kind;
  CallInst* call;
};

/// What an access touches of the shared window.
struct Place {
  Value* address = nullptr;
  std::int64_t bytes = 0;
};

/// Scalar evolution, made when it is needed first.
struct Evolution {
  Evolution(llvm::Function& function, llvm::DominatorTree& dominators, llvm::LoopInfo& loops)
      : library_impl(llvm::Triple(function.getParent()->getTargetTriple())),
        library(library_impl),
        assumptions(function),
        scev(function, library, assumptions, dominators, loops) {}

  llvm::TargetLibraryInfoImpl library_impl;
  llvm::TargetLibraryInfo library;
  llvm::AssumptionCache assumptions;
  llvm::ScalarEvolution scev;
};

/// Calls after which not all threads may go on are the last instructions of their blocks (SplitAtBarriers).
bool EndsWithCall(const BasicBlock& block) {
  const llvm::Instruction* last = block.getTerminator()->getPrevNode();
  return last && llvm::isa<CallInst>(last) && !llvm::isa<llvm::IntrinsicInst>(last);
}

class GiveWays {
 public:
  GiveWays(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options)
      : spmd_(spmd), function_(function), dominators_(function), loops_(dominators_), threads_(spmd, options) {}

  bool Run();

 private:
  const MarkerInfo* MarkerOf(const llvm::Instruction& instruction) const;
  std::optional<Event> EventOf(llvm::Instruction& instruction) const;
  void CollectEvents(BasicBlock& block);
  std::optional<Place> PlaceOf(const CallInst& call) const;
  std::vector<CallInst*> StoresBehind(CallInst& load);
  Sameness SamenessOf(const Value* value);
  Sameness Compute(const llvm::Instruction& instruction);
  bool ByOneWarp(const BasicBlock* block);
  bool IsReadByAll(const CallInst& load);
  bool MayMeet(const CallInst& load, const CallInst& store);
  bool IsOpen(llvm::ArrayRef<CallInst*> loads, const CallInst* store);
  CallInst* Insert(llvm::Instruction* before);
  void Remove(CallInst* give_way);
  llvm::Instruction* Earlier(const BasicBlock* block, llvm::ArrayRef<CallInst*> loads);
  void Protect(CallInst* store, llvm::ArrayRef<CallInst*> loads);

  SpmdModule& spmd_;
  llvm::Function& function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  ThreadValues threads_;
  std::unique_ptr<Evolution> evolution_;
  llvm::DenseMap<const BasicBlock*, std::vector<Event>> events_;
  llvm::DenseMap<const Value*, Sameness> sameness_;
  llvm::DenseMap<const BasicBlock*, bool> by_one_warp_;
};

const MarkerInfo* GiveWays::MarkerOf(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<CallInst>(&instruction);
  return call && call->getCalledFunction() ? spmd_.Find(call->getCalledFunction()) : nullptr;
}

/// Where in the shared window a load, store or atomic operation works, if it does.
std::optional<Place> GiveWays::PlaceOf(const CallInst& call) const {
  const MarkerInfo& info = *MarkerOf(call);
  Place place{.address = call.getArgOperand(0)};
  if (info.space == Space::kGeneric) {
    const auto* generic = llvm::dyn_cast<llvm::Instruction>(place.address);
    const MarkerInfo* made = generic ? MarkerOf(*generic) : nullptr;
    if (!made || made->kind != MarkerKind::kToGeneric || made->space != Space::kShared) return std::nullopt;
    place.address = llvm::cast<CallInst>(generic)->getArgOperand(0);
  } else if (info.space != Space::kShared) {
    return std::nullopt;
  }
  const llvm::Type* element = info.element ? info.element : call.getArgOperand(1)->getType();
  place.bytes = static_cast<std::int64_t>((element->getScalarSizeInBits() + 7) / 8 * info.count);
  return place;
}

std::optional<Event> GiveWays::EventOf(llvm::Instruction& instruction) const {
  const MarkerInfo* info = MarkerOf(instruction);
  if (!info) return std::nullopt;
  auto* call = llvm::cast<CallInst>(&instruction);
  switch (info->kind) {
    case MarkerKind::kLoad:
      if (PlaceOf(*call)) return Event{Event::kLoad, call};
      return std::nullopt;
    case MarkerKind::kStore:
    case MarkerKind::kAtomic:
      if (PlaceOf(*call)) return Event{Event::kStore, call};
      return std::nullopt;
    case MarkerKind::kGiveWay: return Event{Event::kCut, call};
    case MarkerKind::kBarrier: {
      const auto op = static_cast<BarrierOp>(info->imm);
      if (op == BarrierOp::kArrive || op == BarrierOp::kClusterArrive) return std::nullopt;
      return Event{Event::kCut, call};
    }
    // Who waits for an mbarrier's phase is behind those who have completed it.
    case MarkerKind::kHelper:
      if (info->helper == Helper::kMbarrier) return Event{Event::kCut, call};
      return std::nullopt;
    default: return std::nullopt;
  }
}

void GiveWays::CollectEvents(BasicBlock& block) {
  std::vector<Event>& events = events_[&block];
  events.clear();
  for (llvm::Instruction& instruction : block) {
    if (const auto event = EventOf(instruction)) events.push_back(*event);
  }
}

/// The stores that a thread may come to from `load` without having waited.
std::vector<CallInst*> GiveWays::StoresBehind(CallInst& load) {
  std::vector<CallInst*> stores;
  llvm::DenseSet<const BasicBlock*> seen;
  std::vector<BasicBlock*> left;
  const auto walk = [&](BasicBlock* block, bool from_load) {
    bool on = !from_load;
    for (const Event& event : events_[block]) {
      if (on && event.kind == Event::kCut) return;
      if (on && event.kind == Event::kStore) stores.push_back(event.call);
      on |= event.call == &load;
    }
    for (BasicBlock* next : llvm::successors(block)) {
      if (seen.insert(next).second) left.push_back(next);
    }
  };
  walk(load.getParent(), true);
  while (!left.empty()) {
    BasicBlock* block = left.back();
    left.pop_back();
    walk(block, false);
  }
  return stores;
}

// ---------------------------------------------------------------------------------------------------------------------
// Who reads what
// ---------------------------------------------------------------------------------------------------------------------

/// Phis count as what comes into them, whoever comes which way: too many give-ways do no harm.
Sameness GiveWays::SamenessOf(const Value* value) {
  if (llvm::isa<llvm::Constant>(value)) return Sameness::kSame;
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction) return Sameness::kDiffers;
  const auto [it, inserted] = sameness_.try_emplace(value, Sameness::kSame);  // of a cycle: what the rest of it says
  if (!inserted) return it->second;
  const Sameness computed = Compute(*instruction);
  return sameness_[value] = computed;
}

Sameness GiveWays::Compute(const llvm::Instruction& instruction) {
  if (const auto* values = threads_.Of(&instruction)) {
    Sameness same = Sameness::kSame;
    for (std::size_t thread = 0; thread < values->size(); ++thread) {
      if ((*values)[thread] != (*values)[thread % kWarpSize]) return Sameness::kDiffers;
      if ((*values)[thread] != (*values)[0]) same = Sameness::kByLane;
    }
    return same;
  }
  if (const auto* call = llvm::dyn_cast<CallInst>(&instruction)) {
    const MarkerInfo* info = MarkerOf(instruction);
    const bool intrinsic = call->getCalledFunction() && call->getCalledFunction()->isIntrinsic();
    if (!info && !intrinsic) return Sameness::kDiffers;
    if (info) {
      switch (info->kind) {
        case MarkerKind::kSymbol:
        case MarkerKind::kBarrier: return Sameness::kSame;
        case MarkerKind::kSpecial:
          switch (info->special) {
            case Special::kTidX:
            case Special::kTidY:
            case Special::kTidZ:
            case Special::kWarpId: return Sameness::kDiffers;
            case Special::kLaneId: return Sameness::kByLane;
            default: return Sameness::kSame;
          }
        case MarkerKind::kParam:
        case MarkerKind::kToGeneric:
        case MarkerKind::kFromGeneric: break;
        case MarkerKind::kLoad:
          if (info->space == Space::kLocal) return Sameness::kDiffers;
          return SamenessOf(call->getArgOperand(0));
        default: return Sameness::kDiffers;
      }
    }
    Sameness same = Sameness::kSame;
    for (const llvm::Use& argument : call->args()) same = std::min(same, SamenessOf(argument));
    return same;
  }
  Sameness same = Sameness::kSame;
  for (const Value* operand : instruction.operands()) {
    if (!llvm::isa<BasicBlock>(operand)) same = std::min(same, SamenessOf(operand));
    if (same == Sameness::kDiffers) break;
  }
  return same;
}

/// A guard before `block` lets threads of one warp pass only.
bool GiveWays::ByOneWarp(const BasicBlock* block) {
  const auto [it, inserted] = by_one_warp_.try_emplace(block, false);
  if (!inserted) return it->second;
  const auto* node = dominators_.getNode(block);
  if (!node || !node->getIDom()) return false;
  const BasicBlock* above = node->getIDom()->getBlock();
  bool one = ByOneWarp(above);
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(above->getTerminator());
  const auto* passes = !one && branch && branch->isConditional() ? threads_.Of(branch->getCondition()) : nullptr;
  for (unsigned way = 0; passes && way < 2; ++way) {
    if (!dominators_.dominates(llvm::BasicBlockEdge(above, branch->getSuccessor(way)), block)) continue;
    std::set<std::size_t> warps;
    for (std::size_t thread = 0; thread < passes->size(); ++thread) {
      if (((*passes)[thread] != 0) == (way == 0)) warps.insert(thread / kWarpSize);
    }
    one = warps.size() <= 1;
  }
  return by_one_warp_[block] = one;
}

bool GiveWays::IsReadByAll(const CallInst& load) {
  return SamenessOf(PlaceOf(load)->address) != Sameness::kDiffers && !ByOneWarp(load.getParent());
}

/// False when no thread's store can touch what another one's load reads.
bool GiveWays::MayMeet(const CallInst& load, const CallInst& store) {
  if (!evolution_) evolution_ = std::make_unique<Evolution>(function_, dominators_, loops_);
  llvm::ScalarEvolution& scev = evolution_->scev;
  const Place read = *PlaceOf(load), written = *PlaceOf(store);
  const llvm::SCEV* from = scev.getSCEV(read.address);
  const llvm::SCEV* to = scev.getSCEV(written.address);
  const auto below = [&](const llvm::SCEV* a, std::int64_t bytes, const llvm::SCEV* b) {
    const llvm::APInt last = scev.getUnsignedRangeMax(a);
    bool wraps = false;
    const llvm::APInt end = last.uadd_ov(llvm::APInt(last.getBitWidth(), static_cast<std::uint64_t>(bytes)), wraps);
    return !wraps && end.ule(scev.getUnsignedRangeMin(b));
  };
  if (below(from, read.bytes, to) || below(to, written.bytes, from)) return false;
  // The distance within one thread is that between any two only where the load's address is the same in all and at all
  // times.
  if (SamenessOf(read.address) != Sameness::kSame) return true;
  for (const llvm::Loop* loop = loops_.getLoopFor(load.getParent()); loop; loop = loop->getParentLoop()) {
    if (loop->contains(store.getParent()) && !scev.isLoopInvariant(from, loop)) return true;
  }
  const llvm::ConstantRange distance = scev.getSignedRange(scev.getMinusSCEV(to, from));
  return distance.getSignedMin().slt(read.bytes) && distance.getSignedMax().sgt(-written.bytes);
}

// ---------------------------------------------------------------------------------------------------------------------
// Where to give way
// ---------------------------------------------------------------------------------------------------------------------

CallInst* GiveWays::Insert(llvm::Instruction* before) {
  SpmdBuilder b(spmd_);
  b.SetInsertPoint(before);
  auto* call = b.CreateCall(spmd_.Marker({.kind = MarkerKind::kGiveWay}, b.getVoidTy(), {}));
  CollectEvents(*before->getParent());
  return call;
}

void GiveWays::Remove(CallInst* give_way) {
  BasicBlock* block = give_way->getParent();
  give_way->eraseFromParent();
  CollectEvents(*block);
}

/// Some thread may come from one of `loads` to `store` without having waited or given way.
bool GiveWays::IsOpen(llvm::ArrayRef<CallInst*> loads, const CallInst* store) {
  return std::ranges::any_of(loads,
                             [&](CallInst* load) { return std::ranges::count(StoresBehind(*load), store) != 0; });
}

/// A place that runs less often than `block`, or for whole warps: before a loop without any of the loads, or before a
/// branch at which threads part. Null when there is none.
llvm::Instruction* GiveWays::Earlier(const BasicBlock* block, llvm::ArrayRef<CallInst*> loads) {
  const llvm::Loop* loop = loops_.getLoopFor(block);
  if (loop && std::ranges::none_of(loads, [&](const CallInst* load) { return loop->contains(load->getParent()); })) {
    BasicBlock* before = loop->getLoopPreheader();
    return before && !EndsWithCall(*before) ? before->getTerminator() : nullptr;
  }
  const auto* node = dominators_.getNode(block);
  if (!node || !node->getIDom()) return nullptr;
  BasicBlock* above = node->getIDom()->getBlock();
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(above->getTerminator());
  const bool parts = branch && branch->isConditional() && SamenessOf(branch->getCondition()) != Sameness::kSame;
  return parts && !EndsWithCall(*above) ? above->getTerminator() : nullptr;
}

void GiveWays::Protect(CallInst* store, llvm::ArrayRef<CallInst*> loads) {
  llvm::Instruction* best = store;
  for (llvm::Instruction* at = Earlier(store->getParent(), loads); at; at = Earlier(at->getParent(), loads)) {
    CallInst* trial = Insert(at);
    const bool too_early = IsOpen(loads, store);
    Remove(trial);
    if (too_early) break;
    best = at;
  }
  Insert(best);
}

bool GiveWays::Run() {
  if (threads_.knows_block() && threads_.warps() <= 1) return false;
  for (BasicBlock& block : function_) CollectEvents(block);
  llvm::MapVector<CallInst*, llvm::SmallVector<CallInst*, 4>> loads_of;
  for (BasicBlock* block : llvm::ReversePostOrderTraversal(&function_)) {
    for (const Event& event : events_[block]) {
      if (event.kind != Event::kLoad) continue;
      const std::vector<CallInst*> stores = StoresBehind(*event.call);
      if (stores.empty() || !IsReadByAll(*event.call)) continue;
      for (CallInst* store : stores) {
        if (MayMeet(*event.call, *store)) loads_of[store].push_back(event.call);
      }
    }
  }
  bool any = false;
  for (const auto& [store, loads] : loads_of) {
    if (!IsOpen(loads, store)) continue;  // behind the give-way of another store
    Protect(store, loads);
    any = true;
  }
  return any;
}

}  // namespace

bool PlaceGiveWays(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options) {
  return GiveWays(spmd, function, options).Run();
}

}  // namespace gridloom::exec
