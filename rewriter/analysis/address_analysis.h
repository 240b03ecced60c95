// Which bytes of global memory the threads of a CTA may touch, as functions of what a launch passes (docs/ranges.md;
// CRCS paper, section 4.2). Sound: a kernel called regular touches nothing else, as long as each address stays inside
// the allocation that its pointer is from, as C++ demands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/analysis/walker.h"

namespace gridloom::analysis {

/// One access to global memory.
struct RangeAccess {
  const ptx::Instruction* instruction = nullptr;
  bool reads = false, writes = false;
  std::uint32_t bytes = 0;
  Polynomial address;                        ///< resolved; the pointer has factor 1 in it
  std::vector<AssumptionId> assumptions;     ///< under which `address` is right
  std::vector<UniformCondition> conditions;  ///< when one is not met, the access is not made
  std::vector<RangeGuard> guards;            ///< likewise; `address` holds what they say of its symbols
  bool bounded = true;                       ///< else it may be anywhere in the allocation
  std::string irregular;  ///< why the address cannot be told at all; then nothing above means anything
  SourceLoc because_of;   ///< what brought the reason in
};

/// All accesses through one pointer.
struct RangeArgument {
  SymbolId pointer = kNoSymbol;  ///< kNoSymbol: of accesses whose pointer is not known
  std::vector<std::uint32_t> accesses;
  bool reads = false, writes = false;
  bool bounded() const { return unbounded == 0; }
  std::uint32_t unbounded = 0, irregular = 0;  ///< how many accesses are
};

class AddressAnalysis {
 public:
  /// Analyses a kernel that has a body. The module must not change while the analysis is used.
  AddressAnalysis(const ptx::Module& module, const CallGraph& calls, const ptx::Function& kernel);

  const ptx::Function& kernel() const { return kernel_; }
  /// Every access can be told: `reason` is empty.
  bool regular() const { return reason_.empty(); }
  /// The first thing that makes the kernel irregular, and where.
  const std::string& reason() const { return reason_; }
  SourceLoc reason_loc() const { return reason_loc_; }

  const std::vector<RangeAccess>& accesses() const { return accesses_; }
  const std::vector<RangeArgument>& arguments() const { return arguments_; }
  const std::vector<LoopInstance>& loops() const { return walk_.loops; }
  const SymbolPool& symbols() const { return pool_; }

 private:
  void AddAccess(const FoundAccess& found, Resolver& resolver);
  void AddNumber(const FoundAccess& found, const Polynomial& address, const std::vector<AssumptionId>& assumptions,
                 unsigned depth, Resolver& resolver);
  void Finish(const FoundAccess& found, Polynomial address, std::vector<AssumptionId> assumptions, bool opened,
              Resolver& resolver);
  bool StepsWithin(SymbolId counter, const Polynomial& factor, unsigned factor_bits) const;
  bool LimitTerms(const Polynomial& number, std::vector<AssumptionId>& assumptions);
  bool CloseAssumptions(const Polynomial& address, std::vector<AssumptionId>& assumptions, Resolver& resolver);
  void ApplyGuards(const FoundAccess& found, RangeAccess& access, Resolver& resolver);
  Polynomial WithTested(const FoundAccess& found, const Polynomial& number) const;
  SymbolId Guarded(SymbolId symbol, const RangeGuard& guard);
  void AddIrregular(const FoundAccess& found, std::string why, SourceLoc loc, SymbolId base);
  RangeArgument& ArgumentOf(SymbolId pointer);

  const ptx::Function& kernel_;
  SymbolPool pool_;
  ValueMath math_{pool_};
  WalkResult walk_;
  std::vector<RangeAccess> accesses_;
  std::vector<RangeArgument> arguments_;
  std::vector<std::pair<SymbolId, RangeGuard>> guarded_by_;  ///< symbols that guards have made of others
  std::vector<SymbolId> guarded_;                            ///< beside them
  std::string reason_;
  SourceLoc reason_loc_;
};

}  // namespace gridloom::analysis
