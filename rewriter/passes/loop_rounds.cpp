#include "rewriter/passes/loop_rounds.h"

#include <algorithm>
#include <functional>
#include <set>

#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/special.h"

namespace gridloom::passes {

using analysis::BlockId;
using analysis::RegisterId;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Trait;

namespace {

constexpr int kDepth = 12;  // of a chain of definitions that is followed; a longer one counts as unknown

bool IsMove(const Instruction& instruction) { return instruction.info().cls == ptx::OpClass::kMove; }

/// Computes from its operands alone.
bool IsPure(const Instruction& instruction) {
  const ptx::OpClass cls = instruction.info().cls;
  if (ptx::IsArithmetic(cls)) return cls != ptx::OpClass::kVideo && !ptx::ReadsCarry(instruction);
  const ptx::StateSpace space = instruction.space();
  return instruction.Has(Trait::kReads) && (space == ptx::StateSpace::kParam || space == ptx::StateSpace::kConst);
}

/// What it reads stays as it is unless somebody writes there.
bool IsPlainLoad(const Instruction& instruction) {
  return instruction.Has(Trait::kReads) && instruction.Has(Trait::kTyped) && !instruction.Has(Trait::kAtomic);
}

bool IsOrdered(const Instruction& setp) {
  static constexpr Mod kOrdered[] = {Mod::kLt, Mod::kLe, Mod::kGt, Mod::kGe, Mod::kLo, Mod::kLs, Mod::kHi, Mod::kHs};
  return std::ranges::any_of(kOrdered, [&](Mod mod) { return setp.Has(mod); });
}

bool IsEquality(const Instruction& setp) { return setp.Has(Mod::kEq) || setp.Has(Mod::kNe); }

}  // namespace

std::vector<BlockSet> LoopsWithin(const analysis::Graph& graph, const BlockSet& blocks) {
  analysis::Graph part(graph.size());
  std::vector<bool> self(graph.size(), false);
  for (BlockId from = 0; from < graph.size(); ++from) {
    if (!blocks[from]) continue;
    for (const BlockId to : graph.successors[from]) {
      if (!blocks[to]) continue;
      part.AddEdge(from, to);
      if (to == from) self[from] = true;
    }
  }
  const analysis::Components components(part);
  std::vector<std::uint32_t> size(components.count, 0);
  for (BlockId block = 0; block < graph.size(); ++block) {
    if (blocks[block]) ++size[components.of[block]];
  }
  std::vector<BlockSet> loops;
  std::vector<std::size_t> loop_of(components.count, ~std::size_t{0});
  for (BlockId block = 0; block < graph.size(); ++block) {
    const std::uint32_t component = components.of[block];
    if (!blocks[block] || (size[component] == 1 && !self[block])) continue;
    if (loop_of[component] == ~std::size_t{0}) {
      loop_of[component] = loops.size();
      loops.emplace_back(graph.size(), false);
    }
    loops[loop_of[component]][block] = true;
  }
  return loops;
}

LoopRounds::LoopRounds(const analysis::Cfg& cfg) : cfg_(cfg), accesses_(cfg.instructions().size()) {
  for (std::uint32_t i = 0; i < accesses_.size(); ++i) {
    const Instruction& instruction = At(i);
    const auto add = [this](std::vector<RegisterId>& to, const ptx::Variable* variable, std::uint32_t index) {
      if (variable != nullptr) to.push_back(registers_.Add(*variable, index));
    };
    ptx::VisitDefs(instruction, [&](const Operand& o) { add(accesses_[i].writes, o.variable, o.index); });
    ptx::VisitUses(instruction, [&](const Operand& o) { add(accesses_[i].reads, o.variable, o.index); });
    ptx::VisitGuard(instruction,
                    [&](const ptx::Variable& v, std::uint32_t index) { add(accesses_[i].reads, &v, index); });
  }
  written_by_.resize(registers_.size());
  for (std::uint32_t i = 0; i < accesses_.size(); ++i) {
    for (const RegisterId id : accesses_[i].writes) written_by_[id].push_back(i);
  }
}

RegisterId LoopRounds::IdOf(const Operand& operand) const {
  return operand.IsPlainRegister() ? registers_.Find(*operand.variable, operand.index) : analysis::kNoRegister;
}

bool LoopRounds::IsWritten(const BlockSet& loop, RegisterId id) const {
  return std::ranges::any_of(written_by_[id], [&](std::uint32_t i) { return loop[cfg_.instructions()[i].block]; });
}

std::uint32_t LoopRounds::OnlyWrite(const BlockSet& loop, RegisterId id) const {
  std::uint32_t only = kNone;
  for (const std::uint32_t i : written_by_[id]) {
    if (!loop[cfg_.instructions()[i].block]) continue;
    if (only != kNone || At(i).guard) return kNone;
    only = i;
  }
  return only;
}

bool LoopRounds::IsInvariant(const BlockSet& loop, const Operand& operand, int depth) const {
  switch (operand.kind) {
    case OperandKind::kInt:
    case OperandKind::kFloat:
    case OperandKind::kSymbol: return true;
    case OperandKind::kSpecial: return !operand.text.starts_with("%clock") && !operand.text.starts_with("%globaltimer");
    case OperandKind::kAddress:
      return std::ranges::all_of(operand.address->base,
                                 [&](const Operand& base) { return IsInvariant(loop, base, depth + 1); }) &&
             operand.address->elements.empty();
    case OperandKind::kRegister: break;
    default: return false;
  }
  const RegisterId id = IdOf(operand);
  if (id == analysis::kNoRegister || depth > kDepth) return false;
  if (!IsWritten(loop, id)) return true;
  const std::uint32_t write = OnlyWrite(loop, id);
  if (write == kNone || !IsPure(At(write)) || writes(write).size() != 1) return false;
  const auto& operands = At(write).operands;
  return std::all_of(operands.begin() + 1, operands.end(),
                     [&](const Operand& read) { return IsInvariant(loop, read, depth + 1); });
}

// What is computed from invariants and from what is loaded anew from the same places takes few values, whichever of its
// writes a round passes; an ordered comparison is through with all of them in the end. A counter that has to meet its
// bound needs one value.
bool LoopRounds::IsBound(const BlockSet& loop, const Operand& operand, bool ordered) const {
  static constexpr Mod kStrong[] = {Mod::kVolatile, Mod::kRelaxed, Mod::kAcquire, Mod::kMmio, Mod::kCv};
  std::set<RegisterId> open, settled;
  const std::function<bool(const Operand&)> is_bound = [&](const Operand& of) {
    if (IsInvariant(loop, of)) return true;
    const RegisterId id = IdOf(of);
    if (id == analysis::kNoRegister || open.contains(id)) return false;  // carried on from round to round
    if (settled.contains(id)) return true;
    if (!ordered && OnlyWrite(loop, id) == kNone) return false;
    open.insert(id);
    for (const std::uint32_t write : written_by_[id]) {
      if (!loop[cfg_.instructions()[write].block]) continue;
      const Instruction& instruction = At(write);
      const auto& operands = instruction.operands;
      const bool loads =
          IsPlainLoad(instruction) && std::ranges::none_of(kStrong, [&](Mod mod) { return instruction.Has(mod); });
      if (loads && operands.size() == 2 && IsInvariant(loop, operands[1])) continue;
      if (!IsPure(instruction) || writes(write).size() != 1 ||
          !std::all_of(operands.begin() + 1, operands.end(), is_bound))
        return false;
    }
    open.erase(id);
    settled.insert(id);
    return true;
  };
  return is_bound(operand);
}

// A literal, the size of a block or grid, or a product of such: the stride of a loop over a grid.
bool LoopRounds::IsPositive(const Operand& operand, int depth) const {
  if (operand.kind == OperandKind::kInt) return static_cast<std::int64_t>(operand.int_literal.value) > 0;
  if (operand.kind == OperandKind::kSpecial) {
    const auto ref = ptx::SpecialFromText(operand.text);
    return ref && (ref->special == ptx::Special::kNtid || ref->special == ptx::Special::kNctaid ||
                   ref->special == ptx::Special::kWarpSz);
  }
  const RegisterId id = IdOf(operand);
  if (id == analysis::kNoRegister || depth > kDepth || written_by_[id].size() != 1) return false;
  const Instruction& write = At(written_by_[id].front());
  if (write.guard) return false;
  const auto source = [&](std::size_t i) { return IsPositive(write.operands[i], depth + 1); };
  switch (write.opcode) {
    case Opcode::kMov: return source(1);
    case Opcode::kCvt:
      return ptx::IsInteger(write.type(0)) && ptx::BitsOf(write.type(0)) >= ptx::BitsOf(write.type(1)) && source(1);
    case Opcode::kMul: return (write.Has(Mod::kLo) || write.Has(Mod::kWide)) && source(1) && source(2);
    case Opcode::kShl:
      return source(1) && write.operands[2].kind == OperandKind::kInt && write.operands[2].int_literal.value < 16;
    default: return false;
  }
}

/// Whether every round of the loop that passes `through` passes `block`, too.
bool LoopRounds::OnEveryRound(const BlockSet& loop, BlockId through, BlockId block) const {
  if (through == block) return true;
  BlockSet without = loop;
  without[block] = false;
  const auto loops = LoopsWithin(cfg_.graph(), without);
  return std::ranges::none_of(loops, [&](const BlockSet& rest) { return rest[through]; });
}

// Follows the register through its only writes in the loop, copies and additions, until it comes back to itself.
bool LoopRounds::IsCounter(const BlockSet& loop, BlockId block, const Operand& operand, bool ordered) const {
  const RegisterId start = IdOf(operand);
  bool stepped = false;
  std::vector<RegisterId> chain;
  for (RegisterId at = start; at != analysis::kNoRegister && chain.size() <= kDepth;) {
    if (const auto seen = std::ranges::find(chain, at); seen != chain.end()) return stepped && seen == chain.begin();
    chain.push_back(at);
    const std::uint32_t write = OnlyWrite(loop, at);
    if (write == kNone || !OnEveryRound(loop, block, cfg_.instructions()[write].block)) return false;
    const Instruction& instruction = At(write);
    const auto& operands = instruction.operands;
    if (IsMove(instruction)) {
      at = IdOf(operands[1]);
      continue;
    }
    const bool adds = instruction.opcode == Opcode::kAdd || instruction.opcode == Opcode::kSub;
    if (!adds || stepped || operands.size() != 3 || !ptx::IsInteger(instruction.type()) || instruction.Has(Mod::kSat))
      return false;
    stepped = true;
    const bool first_is_step = instruction.opcode == Opcode::kAdd && IsPositive(operands[1]);
    const Operand& step = first_is_step ? operands[1] : operands[2];
    const auto value = static_cast<std::int64_t>(step.int_literal.value);
    const bool one = step.kind == OperandKind::kInt && (value == 1 || value == -1);
    const bool literal = step.kind == OperandKind::kInt && value != 0;
    if (!one && !(ordered && (literal || (IsPositive(step) && IsInvariant(loop, step))))) return false;
    at = IdOf(first_is_step ? operands[2] : operands[1]);
  }
  return false;
}

/// The comparison behind the branch that ends a block, when the branch leaves the loop to one side and nothing else
/// writes its predicate in the loop; else kNone.
std::uint32_t LoopRounds::ExitTest(const BlockSet& loop, BlockId block) const {
  const analysis::BasicBlock& ends = cfg_.blocks()[block];
  if (ends.end != analysis::BlockEnd::kBranch || !ends.guarded_end || ends.next == analysis::kNoBlock ||
      ends.taken.size() != 1)
    return kNone;
  if (loop[ends.next] == loop[ends.taken.front()]) return kNone;
  const ptx::Guard& guard = *At(ends.first + ends.count - 1).guard;
  if (guard.predicate == nullptr) return kNone;
  const RegisterId predicate = registers_.Find(*guard.predicate, guard.index);
  const std::uint32_t write = OnlyWrite(loop, predicate);
  if (write == kNone || cfg_.instructions()[write].block != block) return kNone;
  const Instruction& test = At(write);
  const bool plain = test.opcode == Opcode::kSetp && test.operands.size() == 3 &&
                     test.operands[0].kind == OperandKind::kRegister && ptx::IsInteger(test.type());
  return plain ? write : kNone;
}

bool LoopRounds::IsCountedExit(const BlockSet& loop, BlockId block) const {
  const std::uint32_t test = ExitTest(loop, block);
  if (test == kNone) return false;
  const Instruction& setp = At(test);
  const bool ordered = IsOrdered(setp);
  if (!ordered && !IsEquality(setp)) return false;
  const Operand &a = setp.operands[1], &b = setp.operands[2];
  return (IsBound(loop, b, ordered) && IsCounter(loop, block, a, ordered)) ||
         (IsBound(loop, a, ordered) && IsCounter(loop, block, b, ordered));
}

// A register changes when it is derived from itself, that is, carried from round to round. What a load reads changes
// when its address does; what is in local memory may be a variable of unoptimised code that stays the same.
bool LoopRounds::MayRepeat(const BlockSet& loop, RegisterId id) const {
  std::set<RegisterId> open, settled;
  const std::function<bool(RegisterId)> changes = [&](RegisterId at) {
    if (open.contains(at)) return true;
    if (!settled.insert(at).second) return false;
    open.insert(at);
    bool found = false;
    for (const std::uint32_t write : written_by_[at]) {
      if (found || !loop[cfg_.instructions()[write].block]) continue;
      const ptx::StateSpace space = At(write).space();
      if (At(write).Has(Trait::kReads) && space == ptx::StateSpace::kLocal) continue;
      const std::size_t guards = At(write).guard ? 1 : 0;  // the last of what is read, and no part of the value
      found = std::any_of(reads(write).begin(), reads(write).end() - static_cast<std::ptrdiff_t>(guards), changes);
    }
    open.erase(at);
    return found;
  };
  return !changes(id);
}

/// Where a register's value was copied from within the loop: itself when it is not a copy.
RegisterId LoopRounds::CopiedFrom(const BlockSet& loop, RegisterId id) const {
  for (int i = 0; i < kDepth; ++i) {
    const std::uint32_t write = OnlyWrite(loop, id);
    if (write == kNone || !IsMove(At(write))) return id;
    const RegisterId from = IdOf(At(write).operands[1]);
    if (from == analysis::kNoRegister) return id;
    id = from;
  }
  return id;
}

bool LoopRounds::IsSwapRetry(const BlockSet& loop, BlockId block) const {
  const std::uint32_t test = ExitTest(loop, block);
  if (test == kNone || !IsEquality(At(test))) return false;
  for (BlockId other = 0; other < loop.size(); ++other) {
    if (!loop[other] || other == block) continue;
    const auto& next = cfg_.graph().successors[other];
    if (cfg_.Leaves(other) || std::ranges::any_of(next, [&](BlockId to) { return !loop[to]; })) return false;
  }
  const RegisterId a = IdOf(At(test).operands[1]), b = IdOf(At(test).operands[2]);
  if (a == analysis::kNoRegister || b == analysis::kNoRegister) return false;
  for (const auto& [was, old] : {std::pair(a, b), std::pair(b, a)}) {
    const std::uint32_t swap = OnlyWrite(loop, was);
    if (swap == kNone || !At(swap).Has(Trait::kAtomic) || !At(swap).Has(Mod::kCas)) continue;
    const auto& operands = At(swap).operands;
    if (operands.size() < 4 || IdOf(operands[2]) != old || was == old) continue;
    if (!OnEveryRound(loop, block, cfg_.instructions()[swap].block) || !IsInvariant(loop, operands[1])) continue;
    // What is compared is what the swap before found; copies pass on the previous round's value.
    const std::uint32_t copy = OnlyWrite(loop, old);
    if (copy != kNone && IsMove(At(copy)) && CopiedFrom(loop, old) == was &&
        OnEveryRound(loop, block, cfg_.instructions()[copy].block)) {
      return true;
    }
  }
  return false;
}

}  // namespace gridloom::passes
