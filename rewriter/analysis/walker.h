// Walks over a kernel and what it calls, and finds for every access to global memory the value of its address.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewriter/analysis/access.h"
#include "rewriter/analysis/call_graph.h"
#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/dominators.h"
#include "rewriter/analysis/liveness.h"
#include "rewriter/analysis/loops.h"
#include "rewriter/analysis/resolver.h"
#include "rewriter/analysis/value_math.h"

namespace gridloom::analysis {

/// What a thread has passed on its way to a block.
struct Passed {
  static constexpr std::size_t kMaxConditions = 8, kMaxGuards = 6;
  std::vector<UniformCondition> conditions;
  std::vector<FoundGuard> guards;  ///< the last ones

  /// `predicate` was `truth`, at a branch of `block` that decides whether `loop` goes on.
  void Add(const SymbolPool& pool, const ValueRef& predicate, bool truth, LoopInstanceId loop, BlockId block);
};

/// An access as the walk meets it; the address is not resolved.
struct FoundAccess {
  const ptx::Instruction* instruction = nullptr;
  bool reads = false, writes = false;
  std::uint32_t bytes = 0;
  bool generic = false;
  ValueRef address;
  /// Loops, and blocks of theirs, whose test has just let the loop go on wherever this access is made.
  std::vector<std::pair<LoopInstanceId, BlockId>> tested;
  Passed passed;
};

/// Something that makes the whole kernel irregular.
struct Obstacle {
  std::string why;
  SourceLoc loc;
};

struct WalkResult {
  std::vector<FoundAccess> accesses;
  std::vector<Obstacle> obstacles;
  std::vector<LoopInstance> loops;
};

/// Facts about the module and the kernel that all walks share.
struct WalkContext {
  const CallGraph& calls;
  ValueMath& math;
  WalkResult& result;
  const ptx::Function& kernel;
  std::set<const ptx::Variable*> variables = {};   ///< of the module that the kernel can name
  bool writes_global = false;                      ///< the kernel or what it calls may write global memory
  bool exits_in_callees = false;                   ///< a call need not come back
  std::uint32_t instructions = 0;                  ///< walked so far, inlined ones each time
  std::uint32_t depth = 0;                         ///< of calls
  std::optional<std::vector<bool>> touching = {};  ///< by function, once somebody has asked: Walker::Touches
  static constexpr std::uint32_t kMaxInstructions = 300'000, kMaxDepth = 24, kMaxLoopDepth = 64;
};

/// Memory in .param space of one function: name and byte offset.
using ParamPlace = std::pair<const ptx::Variable*, std::int64_t>;
using ParamValues = std::map<ParamPlace, ValueRef>;

/// One function, inlined at one place.
class Walker {
 public:
  /// Where the function is called.
  struct Place {
    LoopInstanceId loop = kNoLoopInstance;
    bool always = true;  ///< by every thread of the kernel
    Passed passed = {};
  };
  Walker(WalkContext& context, const ptx::Function& function, ParamValues arguments, Place place);
  /// Values of the return parameters.
  ParamValues Run();

 private:
  std::vector<BlockId> Entries(LoopId loop) const;
  void EnterBlock(BlockId block);
  void FindPassed(BlockId block);
  bool IsIrreducible(BlockId block) const;
  void PassBranch(BlockId from, BlockId to, Passed& passed) const;
  ChosenByRef WaysInto(BlockId block, const std::vector<BlockId>& from) const;
  ChosenByRef ChosenByGuard(const ptx::Instruction& instruction) const;
  Passed PassedBy(const ptx::Instruction& instruction) const;
  LoopInstanceId TestedBy(BlockId block) const;
  void LeaveBlock(BlockId block);
  void MakeLoops();
  void FindTests(LoopId loop);
  void CollectConditions();
  void CompletePhis();
  void WalkInstruction(const CfgInstruction& at);
  void WalkMemory(const ptx::Instruction& instruction);
  ValueRef RowsFrom(const MemoryAccess& memory, const ValueRef& address);
  void WalkLoad(const ptx::Instruction& instruction);
  void WalkStoreParam(const ptx::Instruction& instruction);
  void WalkCall(const ptx::Instruction& instruction);
  void WalkReturn();
  ValueRef LoadElement(const ptx::Instruction& instruction, const ValueRef& address, std::uint32_t element,
                       unsigned bits);
  ValueRef LoadParam(const ptx::Instruction& instruction, const ptx::AddressOperand& address, std::uint32_t element,
                     unsigned bits);
  ValueRef ValueOf(const ptx::Operand& operand, unsigned bits);
  ValueRef SpecialValue(const ptx::Operand& operand);
  ValueRef SymbolValue(const ptx::Operand& operand);
  ValueRef AddressOf(const ptx::AddressOperand& address);
  void Define(const ptx::Operand& operand, ValueRef value);
  void DefineAll(const ptx::Instruction& instruction, const ValueRef& value);
  std::vector<std::pair<LoopInstanceId, BlockId>> TestedHere() const;
  bool Touches(NodeId function);
  void Obstruct(std::string why, SourceLoc loc) { context_.result.obstacles.push_back({std::move(why), loc}); }
  std::int64_t NewOffset(const ptx::AddressOperand& address, const ptx::Variable*& variable);
  bool Unconditional(const ptx::Instruction& instruction) const;
  unsigned BitsOf(const ptx::Operand& operand) const;
  ValueRef Join(RegisterId id, const std::vector<BlockId>& from, const ChosenByRef& ways);

  static constexpr std::size_t kMaxWays = 8;  ///< into a block, of which it is kept what each has passed

  WalkContext& context_;
  ValueMath& math_;
  const ptx::Function& function_;
  ParamValues arguments_;
  const Place place_;
  const LoopInstanceId around_;

  Cfg cfg_;
  Liveness liveness_;
  DominatorTree dominators_;
  PostDominatorTree post_dominators_;
  LoopNest nest_;
  std::vector<NodeId> position_;            ///< of a block in reverse postorder
  std::vector<LoopInstanceId> instance_;    ///< by loop of the nest
  std::vector<std::vector<ValueRef>> out_;  ///< by block, beside LiveOut
  std::vector<ValueRef> current_;           ///< by register, in the block being walked
  std::vector<RegisterId> touched_;
  std::vector<ValueRef> branch_on_;  ///< by block: what its guarded end tests
  std::vector<Passed> passed_;       ///< by block
  struct Test {
    BlockId block, goes_on;  ///< the block that tests, and where it leads when the loop goes on
    bool truth;              ///< of the guard, then
  };
  std::vector<std::vector<Test>> tests_;  ///< by loop of the nest: tests that every iteration makes
  struct OpenPhi {
    SymbolId symbol;
    BlockId header;
    RegisterId id;
  };
  std::vector<OpenPhi> phis_;
  ParamValues slots_;                  ///< .param variables, in the block being walked
  std::vector<ParamValues> returned_;  ///< by return
  BlockId block_ = kNoBlock;
  LoopInstanceId loop_ = kNoLoopInstance;  ///< around the block being walked
};

}  // namespace gridloom::analysis
