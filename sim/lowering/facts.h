// What passes ask of a lowered kernel: which registers are values, that is, written once before all that reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/analysis/dominators.h"
#include "sim/lowering/kernel.h"

namespace gridloom::lowering {

struct Place {
  std::uint32_t block = 0, index = 0;  ///< of Block::nodes
};

/// Registers that one node writes, wholly and in every lane, and that are read nowhere on a way that does not lead
/// through it. What such a node reads of other such registers is what they still hold where its result is read.
/// True until nodes are moved or taken out of blocks.
class Values {
 public:
  explicit Values(const Kernel& kernel);

  bool IsValue(Register reg) const { return is_value_[reg]; }
  const Place& PlaceOf(Register reg) const { return place_[reg]; }  ///< of the node that writes a value
  const Node& NodeOf(Register reg) const { return kernel_.blocks[place_[reg].block].nodes[place_[reg].index]; }
  /// How many terms of sources name it.
  std::uint32_t reads(Register reg) const { return reads_[reg]; }
  /// Whether the term is a constant or a value.
  bool IsFixed(const Term& term) const {
    return term.kind != Term::Kind::kRegister || is_value_[static_cast<Register>(term.value)];
  }

 private:
  const Kernel& kernel_;
  std::vector<bool> is_value_;
  std::vector<Place> place_;
  std::vector<std::uint32_t> reads_;
};

/// Which blocks come first on all ways, over all functions of a kernel.
class Dominance {
 public:
  explicit Dominance(const Kernel& kernel);
  /// Whether what is at `first` has been executed whenever `second` is.
  bool Comes(const Place& first, const Place& second) const {
    if (first.block == second.block) return first.index < second.index;
    return tree_.Dominates(first.block, second.block);
  }

 private:
  analysis::DominatorTree tree_;
};

/// Replaces registers by terms in the sources of all nodes, over as many steps as it takes. A register is replaced
/// where `replacements` has another term for it.
void Replace(Kernel& kernel, std::vector<Term> replacements);

/// Takes out the nodes that `is_gone` says, block by block.
template <typename IsGone>
void Remove(Kernel& kernel, const IsGone& is_gone) {
  for (Block& block : kernel.blocks) std::erase_if(block.nodes, is_gone);
}

}  // namespace gridloom::lowering
