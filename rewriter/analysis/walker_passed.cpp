// What threads have passed on their way: conditions and guards of branches and instructions.
#include <algorithm>

#include "rewriter/analysis/walker.h"
#include "rewriter/ptx/defuse.h"

namespace gridloom::analysis {

using ptx::Instruction;

void Passed::Add(const SymbolPool& pool, const ValueRef& predicate, bool truth, LoopInstanceId loop, BlockId block) {
  if (predicate == nullptr || predicate->IsData()) return;
  const auto symbol = predicate->number.AsSymbol();
  if (symbol && pool[*symbol].uniform && pool[*symbol].bits == 1 && conditions.size() < kMaxConditions)
    conditions.push_back({*symbol, truth});
  for (Predicate& holds : Implied(predicate->predicate, truth)) {
    if (guards.size() == kMaxGuards) guards.erase(guards.begin());
    guards.push_back({std::move(holds), loop, block});
  }
}

/// The loop that goes on or ends by the branch of a block; kNoLoopInstance when there is none.
LoopInstanceId Walker::TestedBy(BlockId block) const {
  for (LoopId id = nest_.LoopOf(block); id != kNoLoop; id = nest_.loops()[id].parent) {
    if (std::ranges::find(tests_[id], block, &Test::block) != tests_[id].end()) return instance_[id];
  }
  return kNoLoopInstance;
}

/// Whether values of a block may be of another round of a loop than those of its branch: in a loop with several heads.
bool Walker::IsIrreducible(BlockId block) const {
  for (LoopId id = nest_.LoopOf(block); id != kNoLoop; id = nest_.loops()[id].parent) {
    if (nest_.loops()[id].irreducible) return true;
  }
  return false;
}

/// Adds what the branch at the end of `from` tests when only one of its ways leads to `to`.
void Walker::PassBranch(BlockId from, BlockId to, Passed& passed) const {
  const BasicBlock& end = cfg_.blocks()[from];
  if (!end.guarded_end) return;
  const bool taken = end.next != to;
  if (taken ? end.taken.size() != 1 || end.taken[0] != to : std::ranges::find(end.taken, to) != end.taken.end()) return;
  if (IsIrreducible(from)) return;
  const bool negated = cfg_.instructions()[end.first + end.count - 1].instruction->guard->negated;
  passed.Add(math_.pool(), branch_on_[from], taken != negated, TestedBy(from), from);
}

// What the immediate dominator's threads have passed, and what its branch tests when only one of its ways leads here.
void Walker::FindPassed(BlockId block) {
  if (block == 0) {
    passed_[block] = place_.passed;
    return;
  }
  const BlockId above = dominators_.parent(block);
  passed_[block] = passed_[above];
  // Whoever comes from a latch has come in before.
  const bool only_from_there = std::ranges::all_of(cfg_.graph().predecessors[block], [&](BlockId predecessor) {
    return predecessor == above || dominators_.Dominates(block, predecessor);
  });
  if (only_from_there) PassBranch(above, block, passed_[block]);
}

/// For each predecessor, what its threads have passed on their way to `block` and others need not have; null when that
/// is nothing.
ChosenByRef Walker::WaysInto(BlockId block, const std::vector<BlockId>& from) const {
  if (from.size() < 2 || from.size() > kMaxWays) return nullptr;
  const std::vector<FoundGuard>& by_all = passed_[block].guards;
  ChosenBy ways;
  bool any = false;
  for (const BlockId predecessor : from) {
    Passed passed = passed_[predecessor];
    PassBranch(predecessor, block, passed);
    std::vector<Predicate>& way = ways.emplace_back();
    for (FoundGuard& guard : passed.guards) {
      const bool common = std::ranges::any_of(by_all, [&](const FoundGuard& other) {
        return other.block == guard.block && other.holds.kind == guard.holds.kind &&
               other.holds.left == guard.holds.left && other.holds.right == guard.holds.right;
      });
      if (!common) way.push_back(std::move(guard.holds));
    }
    any |= !way.empty();
  }
  return any ? std::make_shared<const ChosenBy>(std::move(ways)) : nullptr;
}

/// Of what a guarded instruction writes, and what was there before.
ChosenByRef Walker::ChosenByGuard(const Instruction& instruction) const {
  ChosenByRef chosen;
  VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
    const RegisterId id = liveness_.registers().Find(variable, index);
    if (id == kNoRegister || current_[id] == nullptr) return;
    chosen = ChosenByTruth(current_[id]->predicate, !instruction.guard->negated);
  });
  return chosen;
}

/// The same for one instruction of the block being walked: its own guard is passed, too.
Passed Walker::PassedBy(const Instruction& instruction) const {
  Passed passed = passed_[block_];
  VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
    const RegisterId id = liveness_.registers().Find(variable, index);
    if (id != kNoRegister) passed.Add(math_.pool(), current_[id], !instruction.guard->negated, kNoLoopInstance, block_);
  });
  return passed;
}

}  // namespace gridloom::analysis
