#include "rewriter/passes/cta_waits.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/loops.h"
#include "rewriter/passes/loop_rounds.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::BlockId;
using analysis::NodeId;
using analysis::RegisterId;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::Trait;

/// Memory that other CTAs write.
bool IsCommon(StateSpace space) {
  return space == StateSpace::kGlobal || space == StateSpace::kNone || space == StateSpace::kGeneric;
}

bool IsAnyOf(const Instruction& instruction, std::initializer_list<Mod> mods) {
  return std::ranges::any_of(mods, [&](Mod mod) { return instruction.Has(mod); });
}

/// ld, atom: from an address in a state space, in which it may change.
bool IsTypedRead(const Instruction& instruction) {
  return instruction.Has(Trait::kReads) && instruction.Has(Trait::kTyped) && !instruction.Has(Trait::kReadOnly);
}

/// A read that sees what another CTA writes while it runs.
bool IsStrongRead(const Instruction& instruction) {
  if (instruction.info().cls == ptx::OpClass::kUnknown) return true;
  if (!IsTypedRead(instruction)) return instruction.Has(Trait::kStrong);
  return IsCommon(instruction.space()) &&
         (instruction.Has(Trait::kStrong) ||
          IsAnyOf(instruction, {Mod::kVolatile, Mod::kRelaxed, Mod::kAcquire, Mod::kMmio, Mod::kCv}));
}

/// One that does so only in an ill-formed program, or with a fence.
bool IsWeakRead(const Instruction& instruction) {
  return IsTypedRead(instruction) && IsCommon(instruction.space()) && !instruction.Has(Mod::kNc) &&
         !IsStrongRead(instruction);
}

bool IsFence(const Instruction& instruction) {
  return instruction.info().cls == ptx::OpClass::kFence && !instruction.Has(Mod::kCta);
}

bool IsMalloc(const ptx::Function& function) { return function.name == "malloc" || function.name == "cudaMalloc"; }

/// What a function may do, those it calls included.
struct Summary {
  bool reads = false;                 ///< a strong read or a malloc
  const Instruction* read = nullptr;  ///< it, where it is in the module
  bool ends_thread = false;           ///< exit or trap
  bool fence = false;
};

/// Looks for waits in one function.
class WaitFinder {
 public:
  WaitFinder(const ptx::Function& function, NodeId node, const analysis::CallGraph& calls,
             const std::vector<Summary>& summaries)
      : cfg_(function), rounds_(cfg_), nest_(cfg_.graph(), 0), calls_(calls), summaries_(summaries), node_(node) {}

  std::optional<CtaWait> Find() {
    const BlockSet all(cfg_.blocks().size(), true);
    if (cfg_.unresolved_branch() != nullptr) {
      return CtaWait{"a branch leads to an unknown place", cfg_.unresolved_branch()->loc, &cfg_.function()};
    }
    return FindWithin(all);
  }

 private:
  /// What a loop's own reads of common memory reach, by a fixed point over its instructions in any order.
  struct Taint {
    std::vector<bool> registers;
    std::set<const ptx::Variable*> params;  ///< .param variables of calls
    bool memory = false;
    const Instruction* source = nullptr;  ///< the first read, for the message
    std::set<std::uint32_t> calls;        ///< instructions: calls that may end the thread by what they read
  };

  std::optional<CtaWait> FindWithin(const BlockSet& blocks);
  std::optional<CtaWait> FindInLoop(const BlockSet& loop);
  Taint Spread(const BlockSet& loop) const;
  bool Step(const BlockSet& loop, std::uint32_t at, bool fences, Taint& taint) const;
  bool StepCall(std::uint32_t at, bool reads, Taint& taint) const;
  bool IsSource(const BlockSet& loop, std::uint32_t at, bool fences) const;
  bool Reads(std::uint32_t at, const Taint& taint) const;
  bool HasFence(const BlockSet& loop) const;
  const Summary* SummaryOf(const Instruction& call) const;
  bool Decides(BlockId block, const Taint& taint) const;
  bool LeavesLoop(const BlockSet& loop, BlockId block) const;
  bool IsRetry(BlockId block) const;
  CtaWait Describe(const Taint& taint) const;

  template <typename Visit>
  void ForEachInstruction(const BlockSet& loop, const Visit& visit) const {
    for (BlockId block = 0; block < loop.size(); ++block) {
      if (!loop[block]) continue;
      const auto& range = cfg_.blocks()[block];
      for (std::uint32_t i = range.first; i < range.first + range.count; ++i) visit(i);
    }
  }
  const Instruction& At(std::uint32_t at) const { return *cfg_.instructions()[at].instruction; }

  const analysis::Cfg cfg_;
  const LoopRounds rounds_;
  const analysis::LoopNest nest_;
  const analysis::CallGraph& calls_;
  const std::vector<Summary>& summaries_;
  const NodeId node_;
};

std::optional<CtaWait> WaitFinder::FindWithin(const BlockSet& blocks) {
  for (const BlockSet& loop : LoopsWithin(cfg_.graph(), blocks)) {
    if (auto wait = FindInLoop(loop)) return wait;
  }
  return std::nullopt;
}

// A branch that leaves the loop by what was read waits for it. One that stays inside may do so as well, by way of a
// path back to the header; but not when every round passes a counter's exit test. So blocks with such tests are taken
// out, one by one, and what remains connected is looked at again: in a path that repeats for ever, no block that was
// taken out occurs for ever.
std::optional<CtaWait> WaitFinder::FindInLoop(const BlockSet& loop) {
  const Taint taint = Spread(loop);
  if (taint.source == nullptr) return std::nullopt;
  bool decides = false;
  for (BlockId block = 0; block < loop.size(); ++block) {
    if (!loop[block] || !Decides(block, taint) || IsRetry(block)) continue;
    if (LeavesLoop(loop, block) && !rounds_.IsCountedExit(loop, block)) return Describe(taint);
    decides = true;
  }
  if (!decides) return std::nullopt;
  for (BlockId block = 0; block < loop.size(); ++block) {
    if (!loop[block] || !rounds_.IsCountedExit(loop, block)) continue;
    BlockSet rest = loop;
    rest[block] = false;
    return FindWithin(rest);
  }
  return Describe(taint);
}

const Summary* WaitFinder::SummaryOf(const Instruction& call) const {
  for (const analysis::CallSite& site : calls_.calls(node_)) {
    if (site.instruction != &call) continue;
    for (const NodeId callee : site.callees) {
      if (summaries_[callee].reads || summaries_[callee].fence) return &summaries_[callee];
    }
  }
  return nullptr;
}

bool WaitFinder::HasFence(const BlockSet& loop) const {
  bool found = false;
  ForEachInstruction(loop, [&](std::uint32_t at) {
    found |= IsFence(At(at));
    if (!At(at).Has(Trait::kCalls)) return;
    const Summary* const callee = SummaryOf(At(at));
    found |= callee != nullptr && callee->fence;
  });
  return found;
}

bool WaitFinder::IsSource(const BlockSet& loop, std::uint32_t at, bool fences) const {
  const Instruction& instruction = At(at);
  if (instruction.Has(Trait::kCalls)) {
    const Summary* const callee = SummaryOf(instruction);
    return callee != nullptr && callee->reads;
  }
  if (IsStrongRead(instruction)) return true;
  if (!IsWeakRead(instruction)) return false;
  if (fences) return true;
  bool repeats = true;  // the address of a variable, or of a register that stays as it is
  for (const Operand& operand : instruction.operands) {
    if (operand.kind != OperandKind::kAddress) continue;
    for (const Operand& base : operand.address->base) {
      if (base.kind != OperandKind::kRegister || base.variable == nullptr) continue;
      const RegisterId id = rounds_.registers().Find(*base.variable, base.index);
      repeats &= id == analysis::kNoRegister || rounds_.MayRepeat(loop, id);
    }
  }
  return repeats;
}

bool WaitFinder::Reads(std::uint32_t at, const Taint& taint) const {
  const Instruction& instruction = At(at);
  if (std::ranges::any_of(rounds_.reads(at), [&](RegisterId id) { return taint.registers[id]; })) return true;
  const bool loads = IsTypedRead(instruction) || (instruction.Has(Trait::kReads) && instruction.Has(Trait::kRows));
  if (loads && instruction.space() == StateSpace::kParam) {
    bool found = false;
    ptx::VisitOperand(const_cast<Operand&>(instruction.operands.back()), [&](const Operand& operand) {
      found |= operand.variable != nullptr && taint.params.contains(operand.variable);
    });
    return found;
  }
  return loads && taint.memory && instruction.space() != StateSpace::kConst;
}

bool WaitFinder::StepCall(std::uint32_t at, bool reads, Taint& taint) const {
  const Instruction& call = At(at);
  const Summary* const callee = SummaryOf(call);
  bool tainted = reads || taint.memory || (callee != nullptr && callee->reads);
  const bool has_results = call.operands.size() > 1 && call.operands[0].kind == OperandKind::kList;
  for (std::size_t i = has_results ? 1 : 0; i < call.operands.size(); ++i) {
    for (const Operand& argument : call.operands[i].elements)
      tainted |= argument.variable != nullptr && taint.params.contains(argument.variable);
  }
  if (!tainted) return false;
  bool changed = !std::exchange(taint.memory, true);
  if (callee != nullptr && callee->ends_thread) changed |= taint.calls.insert(at).second;
  if (!has_results) return changed;
  for (const Operand& result : call.operands[0].elements) {
    if (result.kind == OperandKind::kSymbol && result.variable != nullptr)
      changed |= taint.params.insert(result.variable).second;
  }
  for (const RegisterId id : rounds_.writes(at)) {
    if (!taint.registers[id]) taint.registers[id] = changed = true;
  }
  return changed;
}

bool WaitFinder::Step(const BlockSet& loop, std::uint32_t at, bool fences, Taint& taint) const {
  const Instruction& instruction = At(at);
  const bool source = IsSource(loop, at, fences);
  if (source && taint.source == nullptr) taint.source = &instruction;
  const bool reads = Reads(at, taint);
  if (instruction.Has(Trait::kCalls)) return StepCall(at, reads, taint);
  if (!source && !reads) return false;
  bool changed = false;
  for (const RegisterId id : rounds_.writes(at)) {
    if (!taint.registers[id]) taint.registers[id] = changed = true;
  }
  const bool stores = instruction.info().cls == ptx::OpClass::kStore || instruction.info().cls == ptx::OpClass::kMem ||
                      (instruction.info().cls == ptx::OpClass::kAtomic && reads);
  if (!stores) return changed;
  if (instruction.space() == StateSpace::kParam) {
    ptx::VisitOperand(const_cast<Operand&>(instruction.operands.front()), [&](const Operand& operand) {
      if (operand.kind == OperandKind::kSymbol && operand.variable != nullptr)
        changed |= taint.params.insert(operand.variable).second;
    });
  } else if (!taint.memory) {
    taint.memory = changed = true;
  }
  return changed;
}

WaitFinder::Taint WaitFinder::Spread(const BlockSet& loop) const {
  Taint taint;
  taint.registers.assign(rounds_.registers().size(), false);
  const bool fences = HasFence(loop);
  bool any = false;
  ForEachInstruction(loop, [&](std::uint32_t at) { any = any || IsSource(loop, at, fences); });
  for (bool changed = any; changed;) {
    changed = false;
    ForEachInstruction(loop, [&](std::uint32_t at) { changed |= Step(loop, at, fences, taint); });
  }
  return taint;
}

/// Whether what was read decides where control goes at the end of a block, or in one of its calls.
bool WaitFinder::Decides(BlockId block, const Taint& taint) const {
  const analysis::BasicBlock& ends = cfg_.blocks()[block];
  const auto in_block = taint.calls.lower_bound(ends.first);
  if (in_block != taint.calls.end() && *in_block < ends.first + ends.count) return true;
  if (ends.end == analysis::BlockEnd::kFallthrough || ends.count == 0) return false;
  return std::ranges::any_of(rounds_.reads(ends.first + ends.count - 1),
                             [&](RegisterId id) { return taint.registers[id]; });
}

bool WaitFinder::LeavesLoop(const BlockSet& loop, BlockId block) const {
  const auto& next = cfg_.graph().successors[block];
  return cfg_.Leaves(block) || std::ranges::any_of(next, [&](BlockId to) { return !loop[to]; });
}

/// In the smallest loop around the branch: what is outside decides nothing about its end.
bool WaitFinder::IsRetry(BlockId block) const {
  const analysis::LoopId innermost = nest_.LoopOf(block);
  if (innermost == analysis::kNoLoop) return false;
  BlockSet loop(cfg_.blocks().size(), false);
  for (const BlockId node : nest_.Nodes(innermost)) loop[node] = true;
  return rounds_.IsSwapRetry(loop, block);
}

CtaWait WaitFinder::Describe(const Taint& taint) const {
  const Instruction& read = *taint.source;
  std::string what = read.FullName();
  if (const ptx::Function* callee = analysis::CalleeOf(read)) what = "a call of " + std::string(callee->name);
  return {"a loop may wait for what another CTA writes (" + what + ")", read.loc, &cfg_.function()};
}

Summary Summarize(const ptx::Function& function) {
  Summary summary;
  summary.reads = function.body == nullptr && IsMalloc(function);
  if (function.body == nullptr) return summary;
  ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
    const auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr) return;
    const ptx::Function* const callee = analysis::CalleeOf(*instruction);
    if (IsStrongRead(*instruction) || (callee != nullptr && IsMalloc(*callee))) {
      summary.reads = true;
      summary.read = instruction;
    }
    summary.fence |= IsFence(*instruction);
    summary.ends_thread |= instruction->Has(Trait::kExits | Trait::kFaults);
  });
  return summary;
}

}  // namespace

namespace {

/// Calls `take(caller, callee)`, which says whether it changed what is known of the caller, until nothing changes:
/// callees before their callers, and those of recursive groups as often as they learn something.
template <typename Taking>
void SpreadToCallers(const analysis::CallGraph& calls, const Taking& take) {
  std::deque<NodeId> changed;
  for (const NodeId node : calls.BottomUp()) {
    bool any = false;
    for (const NodeId callee : calls.graph().successors[node]) any |= take(node, callee);
    if (any && calls.IsRecursive(node)) changed.push_back(node);
  }
  for (; !changed.empty(); changed.pop_front()) {
    for (const NodeId caller : calls.graph().predecessors[changed.front()]) {
      if (take(caller, changed.front())) changed.push_back(caller);
    }
  }
}

bool Take(const Summary& from, Summary& into) {
  const bool more =
      (!into.reads && from.reads) || (!into.fence && from.fence) || (!into.ends_thread && from.ends_thread);
  into.reads |= from.reads;
  if (into.read == nullptr) into.read = from.read;
  into.fence |= from.fence;
  into.ends_thread |= from.ends_thread;
  return more;
}

}  // namespace

CtaWaits::CtaWaits(const ptx::Module& module, const analysis::CallGraph& calls) : waits_(calls.size()) {
  std::vector<Summary> summaries(calls.size());
  for (NodeId node = 0; node < calls.size(); ++node) summaries[node] = Summarize(calls.function(node));
  SpreadToCallers(calls, [&](NodeId caller, NodeId callee) { return Take(summaries[callee], summaries[caller]); });
  for (const NodeId node : calls.BottomUp()) {
    const ptx::Function& function = calls.function(node);
    if (function.body == nullptr) continue;
    if (calls.IsRecursive(node) && summaries[node].reads) {
      waits_[node] = CtaWait{"a recursive function reads what another CTA writes",
                             summaries[node].read != nullptr ? summaries[node].read->loc : function.loc, &function};
    } else {
      waits_[node] = WaitFinder(function, node, calls, summaries).Find();
    }
  }
  SpreadToCallers(calls, [&](NodeId caller, NodeId callee) {
    if (waits_[caller] || !waits_[callee]) return false;
    waits_[caller] = waits_[callee];
    return true;
  });
}

}  // namespace gridloom::passes
