// Loads of neighbouring words or double words from one irregular address, as unrolled loops over rows have them: one
// check and one access a lane for 8 or 16 bytes of them. Loads from several arrays at one irregular index: one check
// and one test for all.
#include "sim/exec/compiler/warp_group.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>

#include "sim/exec/compiler/root_and_offset.h"
#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_called_access.h"
#include "sim/exec/compiler/warp_irregular.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_rows.h"
#include "sim/exec/compiler/warp_slow_access.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

/// The plain loads behind `call` in its block, up to where memory may be written or something may wait. What is
/// recorded is grouped as what is not.
std::vector<llvm::CallInst*> LoadGroups::LoadsAfter(const llvm::CallInst& call) const {
  constexpr unsigned kLookAhead = 100;
  std::vector<llvm::CallInst*> loads;
  unsigned distance = 0;
  for (llvm::Instruction* next = const_cast<llvm::CallInst&>(call).getNextNode(); next; next = next->getNextNode()) {
    const MarkerInfo* info = module_.MarkerOf(*next);
    if (info && info->kind == MarkerKind::kRecord) continue;
    if (++distance >= kLookAhead) break;
    if (info && info->kind == MarkerKind::kLoad) {
      if (info->strong) break;
      loads.push_back(llvm::cast<llvm::CallInst>(next));
    } else if (next->mayWriteToMemory() || !llvm::isGuaranteedToTransferExecutionToSuccessor(next)) {
      break;
    }
  }
  return loads;
}

/// A load that may be part of a group with `access`, a load of one word or double word.
bool LoadGroups::MayJoin(const llvm::CallInst& load, const MarkerInfo& info, const Access& access) const {
  return !info.strong && info.space == access.space && info.count == 1 &&
         info.element->getScalarSizeInBits() == access.bytes * 8 && !grouped_.contains(&load);
}

/// The neighbouring loads that can be made together with `call`, which has the lowest address, in order: one, two or,
/// of words, four. Nothing between them may write memory or wait.
LoadGroup LoadGroups::GroupFrom(llvm::CallInst& call, const Access& access) {
  constexpr unsigned kMostBytes = 16;
  LoadGroup group(kMostBytes / access.bytes, nullptr);
  group[0] = &call;
  const RootAndOffset first = Resolve(call.getArgOperand(0));
  for (llvm::CallInst* other : LoadsAfter(call)) {
    if (!MayJoin(*other, *module_.MarkerOf(*other), access)) continue;
    const RootAndOffset at = Resolve(other->getArgOperand(0));
    const std::int64_t place = at.offset - first.offset;
    if (at.root == first.root && place > 0 && place < kMostBytes && place % access.bytes == 0) {
      if (!group[place / access.bytes]) group[place / access.bytes] = other;
    }
  }
  if (!group[1]) return {&call};
  if (llvm::is_contained(group, nullptr)) group.resize(2);
  return group;
}

/// Makes sure that `value`, which a later instruction of the block uses, is there at `at`: what it takes is emitted
/// ahead of its place. False when that is more than a little arithmetic on scalars.
bool LoadGroups::MakeReady(Value* value, const llvm::Instruction& at) {
  auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction || instruction->getParent() != at.getParent() || llvm::isa<llvm::PHINode>(instruction) ||
      values_.IsEntryValue(instruction) || instruction->comesBefore(&at))
    return true;
  if (!instruction->isBinaryOp() && !instruction->isCast()) return false;
  if (values_.ShapeOf(instruction).vector()) return false;
  for (Value* operand : instruction->operands())
    if (!MakeReady(operand, at)) return false;
  values_.EmitInstruction(*instruction);
  return true;
}

/// Whether accesses of this kind may be made together with others.
bool LoadGroups::MayGroup(const Access& access) const {
  return !module_.memcheck() && !access.strong && (access.bytes == 4 || access.bytes == 8) && access.count == 1 &&
         access.space != Space::kLocal;
}

/// The group from `call` on, and groups of as many loads from other arrays at the same index: they share check and
/// test.
std::vector<LoadGroup> LoadGroups::GroupsFrom(llvm::CallInst& call, const Access& access) {
  constexpr std::size_t kMostGroups = 4;
  if (!MayGroup(access)) return {{&call}};
  std::vector<LoadGroup> groups{GroupFrom(call, access)};
  const Shape shape = values_.ShapeOf(call.getArgOperand(0));
  if (shape.kind != ShapeKind::kIndexed || !places_.IrregularOf(call.getArgOperand(0), access).index) return groups;
  llvm::SmallPtrSet<const Value*, 4> roots{Resolve(call.getArgOperand(0)).root};
  for (llvm::CallInst* other : LoadsAfter(call)) {
    Value* address = other->getArgOperand(0);
    const Shape at = values_.ShapeOf(address);
    if (!MayJoin(*other, *module_.MarkerOf(*other), access) || at.kind != ShapeKind::kIndexed ||
        at.index != shape.index || at.scale != shape.scale || at.index_signed != shape.index_signed ||
        at.pattern != shape.pattern)
      continue;
    if (!roots.insert(Resolve(address).root).second) continue;
    LoadGroup group = GroupFrom(*other, access);
    if (group.size() != groups[0].size() || !MakeReady(address, call)) continue;
    groups.push_back(std::move(group));
    if (groups.size() == kMostGroups) break;
  }
  return groups;
}

void LoadGroups::EmitGroups(const std::vector<LoadGroup>& groups, const Access& single, const Window& window) {
  const unsigned count = static_cast<unsigned>(groups[0].size());
  Access whole = single;
  whole.element = b_.getIntNTy(single.bytes * 8);
  whole.count = count;
  whole.bytes = single.bytes * count;
  Access word = single;
  word.element = whole.element;
  std::vector<Irregular> places;
  for (const LoadGroup& group : groups) places.push_back(places_.IrregularOf(group[0]->getArgOperand(0), whole));
  llvm::AllocaInst* in_rows = rows_.RowNote(*groups[0][0], places.front(), word);
  const auto fast = [&] { return irregular_.LoadIrregularGroup(places, whole, word, window, in_rows); };
  const auto slow = [&] {
    std::vector<Value*> parts;
    for (const LoadGroup& group : groups) {
      llvm::SmallVector<Value*, 4> lines;
      for (const llvm::CallInst* load : group) lines.push_back(load->getArgOperand(load->arg_size() - 1));
      const std::vector<Value*> loaded =
          slow_.SlowLoads(slow_.SlowPlaceOf(group[0]->getArgOperand(0), word, window), word, lines);
      parts.insert(parts.end(), loaded.begin(), loaded.end());
    }
    return parts;
  };
  const std::vector<Value*> parts = FastOrSlow(w_, places_.IrregularInRange(places, whole, window), fast, slow);
  for (std::size_t i = 0; i < groups.size(); ++i)
    DefineGroup(groups[i], llvm::ArrayRef(parts).slice(i * count, count), i == 0);
}

/// What the loads of a group give. `first_is_current`: the first of them is the one that is being emitted.
void LoadGroups::DefineGroup(const LoadGroup& group, llvm::ArrayRef<Value*> parts, bool first_is_current) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    values_.Define(group[i], b_.CreateBitCast(parts[i], w_.LanesType(group[i]->getType())));
    if (i != 0 || !first_is_current) grouped_.insert(group[i]);
  }
}

/// The loads of a group by one call.
void LoadGroups::CallGroup(const LoadGroup& group, const Access& single) {
  Access word = single;
  word.element = b_.getIntNTy(single.bytes * 8);
  Access whole = word;
  whole.count = static_cast<unsigned>(group.size());
  whole.bytes = single.bytes * whole.count;
  std::vector<Value*> lines;
  for (const llvm::CallInst* load : group) lines.push_back(load->getArgOperand(load->arg_size() - 1));
  DefineGroup(group, access_calls_.CallLoad(places_.IrregularOf(group[0]->getArgOperand(0), whole), whole, word, lines),
              true);
}

}  // namespace gridloom::exec
