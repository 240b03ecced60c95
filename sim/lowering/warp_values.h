// What lanes of a warp have alike, and where they may part.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/analysis/dominators.h"
#include "sim/lowering/kernel.h"
#include "sim/lowering/liveness.h"

namespace gridloom::lowering {

/// The blocks of a kernel and their order: who comes first on all ways, and where ways meet again.
struct Flow {
  explicit Flow(const Kernel& kernel);
  std::uint32_t entry() const { return entry_; }
  bool HasJoin(std::uint32_t block) const { return Join(block) < entry_; }
  /// The first block that all ways from this one lead through; blocks.size() or more: they end.
  std::uint32_t Join(std::uint32_t block) const { return after.parent(block); }

  const std::uint32_t entry_;                      ///< before all blocks that nothing leads to
  std::vector<std::vector<std::uint32_t>> before;  ///< by block: which lead to it
  const analysis::DominatorTree first;
  const analysis::PostDominatorTree after;
};

/// Values that all lanes of a warp have alike: they follow from constants, parameters and where the CTA is, on ways
/// that the lanes go together.
class WarpValues {
 public:
  WarpValues(const Kernel& kernel, const Flow& flow);
  bool IsAlike(const Term& term) const;
  /// Whether lanes may go on at different places behind the block.
  bool Parts(std::uint32_t block) const { return parts_[block]; }

 private:
  bool MakesAlike(const Node& node) const;
  bool ForgetNodes();
  bool ForgetWays(const Flow& flow);
  void Forget(const Flow& flow, std::uint32_t block);

  const Kernel& kernel_;
  const Liveness liveness_;
  bool calls_ = false;  ///< parameters may be those of a function
  std::vector<bool> is_alike_, parts_;
};

/// The branch that ends the block and leads some lanes elsewhere; null: none does.
const Node* ConditionalBranch(const Block& block);

}  // namespace gridloom::lowering
