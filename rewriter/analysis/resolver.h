// Turns what the walk over a kernel found into closed forms: the values that registers have at the heads of loops
// become functions of the number of completed iterations, and the conditions of loops become bounds of that number.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "rewriter/analysis/graph.h"
#include "rewriter/analysis/value_math.h"

namespace gridloom::analysis {

/// Bound of a loop's counter: its condition holds for no more than floor(distance / step) + 1 iterations, where
/// `distance` stands for the greatest of its values. `step` is uniform and positive.
struct LoopBound {
  Polynomial distance, step;
  std::vector<AssumptionId> assumptions;
};

/// A comparison that held when a branch, or a guard, let a thread come to an access. Its values are not resolved. What
/// it compares is at the access what it was then: the branch dominates the access, so that a thread that goes round a
/// loop, or enters one again, passes the branch again before it comes back.
struct FoundGuard {
  Predicate holds;
  LoopInstanceId loop = kNoLoopInstance;  ///< the loop that `block` is a test of
  NodeId block = kNoNode;
};

struct LoopInstance {
  LoopInstanceId parent = kNoLoopInstance;
  bool irreducible = false;
  SourceLoc loc;                                      ///< of its head
  SymbolId counter = kNoSymbol;                       ///< completed iterations, anywhere in and behind the loop
  SymbolId tested = kNoSymbol;                        ///< the same where the condition that bounds it holds
  std::vector<UniformCondition> conditions_at_entry;  ///< where one is not met, no thread comes to its head
  std::vector<FoundGuard> entered;                    ///< what a thread has passed before it came to the head
  /// Comparisons that hold whenever the loop goes on, and at which block.
  std::vector<std::pair<NodeId, Predicate>> conditions;
  std::optional<LoopBound> bound;
  NodeId bound_at = kNoNode;  ///< the block of `conditions` that gave the bound
};

class Resolver {
 public:
  Resolver(ValueMath& math, std::vector<LoopInstance>& loops) : math_(math), pool_(math.pool()), loops_(loops) {}

  /// Without symbols of kind kPhi.
  ValueRef Resolve(const ValueRef& value);
  /// Numbers that are not negative where a comparison holds, as far as `assumptions` do, which it adds to; none where
  /// it compares data, or says nothing of the kind.
  std::vector<Polynomial> NotNegative(const Predicate& holds, std::vector<AssumptionId>& assumptions);
  /// Finds the bounds of all loops; outer ones come first.
  void BoundLoops();
  /// Whether a range of its values can be computed: every loop it depends on is bounded, and nothing in it is any
  /// number.
  bool HasRange(const Polynomial& number) const;

 private:
  struct Changes {
    std::vector<Polynomial> deltas;  ///< new value minus old one
    std::vector<ValueRef> resets;    ///< new values that do not depend on the old one
    bool single = true;              ///< one delta that is added in every iteration
    bool known = true;
  };

  ValueRef ResolveSymbol(SymbolId id);
  ValueRef ResolvePhi(SymbolId id);
  std::optional<Polynomial> DerivedStep(const Polynomial& initial, const std::vector<ValueRef>& resets,
                                        LoopInstanceId loop) const;
  void CollectChanges(SymbolId phi, const Polynomial& update, unsigned depth, Changes& changes);
  /// Whether the predicate (of a SymbolId) holds for a symbol that the number is made of, however deep; uniform ones
  /// are not asked for.
  template <class Predicate>
  bool AnySymbol(const Polynomial& number, Predicate predicate) const;
  bool Mentions(const Polynomial& number, SymbolId wanted) const;
  bool IsInvariant(const Polynomial& number, LoopInstanceId loop) const;
  bool IsInside(LoopInstanceId inner, LoopInstanceId outer) const;
  ValueRef ResolveAssumptions(const std::vector<AssumptionId>& ids, std::vector<AssumptionId>& out);
  bool HeldAtEntry(const LoopInstance& loop, const Polynomial& number, std::vector<AssumptionId>& assumptions);
  std::optional<LoopBound> BoundOf(const LoopInstance& loop, const Predicate& condition);

  static constexpr std::uint32_t kMaxSteps = 200'000;

  ValueMath& math_;
  SymbolPool& pool_;
  std::vector<LoopInstance>& loops_;
  std::unordered_map<SymbolId, ValueRef> resolved_;
  std::set<SymbolId> open_;       ///< phis being resolved
  std::set<SymbolId> used_open_;  ///< those of them that the current result holds
  std::uint32_t steps_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace gridloom::analysis
