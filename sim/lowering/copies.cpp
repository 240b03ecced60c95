// Copies: what reads a copy reads the original. Moves of registers and constants, addresses of variables, and cvta of
// global memory, whose generic addresses are the same, are no instructions of a GPU's. Where a loop hands a value to
// its next turn by a move, the value is computed in that register.
#include <algorithm>

#include "sim/lowering/facts.h"
#include "sim/lowering/liveness.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

/// Special registers are read by instructions of their own.
bool Moves(const Node& node, const Kernel& kernel) {
  const bool moves =
      node.operation.base == Base::kMove || (node.operation.base == Base::kConvertAddress && node.operation.global);
  if (!moves || node.ordered || node.partial() || node.results.size() != 1 || node.sources.size() != 1) return false;
  return node.sources[0].kind != Term::Kind::kName || !kernel.is_special[node.sources[0].value];
}

void ReplaceCopies(Kernel& kernel) {
  const Values values(kernel);
  const auto is_copy = [&](const Node& node) {
    return Moves(node, kernel) && values.IsValue(static_cast<Register>(node.results[0].value)) &&
           values.IsFixed(node.sources[0]);
  };
  std::vector<Term> replacements(kernel.registers + 1);
  for (Register reg = 0; reg <= kernel.registers; ++reg) replacements[reg] = {Term::Kind::kRegister, reg};
  for (const Block& block : kernel.blocks) {
    for (const Node& node : block.nodes) {
      if (is_copy(node)) replacements[node.results[0].value] = node.sources[0];
    }
  }
  Remove(kernel, is_copy);
  Replace(kernel, replacements);
}

bool Reads(const Node& node, const Term& term) {
  return std::ranges::find(node.sources, term) != node.sources.end() ||
         (node.partial() && std::ranges::find(node.results, term) != node.results.end());
}
bool Writes(const Node& node, const Term& term) { return std::ranges::find(node.results, term) != node.results.end(); }

/// Joins the register that a move writes with the one that it reads, which is written in the same block and read
/// nowhere else.
class BlockJoins {
 public:
  BlockJoins(std::vector<Node>& nodes, const Kernel& kernel, const Values& values)
      : nodes_(nodes), kernel_(kernel), values_(values), is_gone_(nodes.size()) {}

  void Run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!Moves(nodes_[i], kernel_) || nodes_[i].sources[0].kind != Term::Kind::kRegister) continue;
      if (!Join(i)) continue;
      nodes_[i] = {};
      is_gone_[i] = 1;
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (is_gone_[i] != 0) continue;
      if (left != i) nodes_[left] = std::move(nodes_[i]);
      ++left;
    }
    nodes_.resize(left);
  }

 private:
  /// No register is followed further than so many nodes before and behind a move: a block may have as many moves as
  /// whoever wrote it likes.
  static constexpr std::size_t kMostNodes = 512;

  std::size_t EndBehind(std::size_t move) const { return std::min(nodes_.size(), move + kMostNodes); }

  /// The node before `move` that writes the register; nodes_.size(): none is near.
  std::size_t WriterBefore(std::size_t move, const Term& reg) const {
    for (std::size_t i = move; i-- > 0 && move - i <= kMostNodes;) {
      if (Writes(nodes_[i], reg)) return i;
    }
    return nodes_.size();
  }

  /// Whether all that reads `from` stands between its writer and the next write of `to`.
  bool ReadsAreNear(std::size_t writer, std::size_t move, const Term& from, const Term& to) const {
    std::uint32_t reads = 0;
    for (std::size_t i = writer + 1; i < EndBehind(move); ++i) {
      reads += static_cast<std::uint32_t>(std::ranges::count(nodes_[i].sources, from));
      if (i > move && Writes(nodes_[i], to)) break;
    }
    return reads == values_.reads(static_cast<Register>(from.value));
  }

  bool Join(std::size_t move) {
    const Term from = nodes_[move].sources[0], to = nodes_[move].results[0];
    if (from == to || !values_.IsValue(static_cast<Register>(from.value))) return false;
    const std::size_t writer = WriterBefore(move, from);
    if (writer == nodes_.size() || nodes_[writer].results.size() != 1 || !ReadsAreNear(writer, move, from, to))
      return false;
    bool used = false, read = false, moved = false;  // the old value of `to`; `from`; what the writer reads
    for (std::size_t i = writer + 1; i < move; ++i) {
      used |= Reads(nodes_[i], to) || Writes(nodes_[i], to);
      read |= Reads(nodes_[i], from);
      for (const Term& source : nodes_[writer].sources) moved |= Writes(nodes_[i], source);
    }
    if (used && (read || moved || !nodes_[writer].operation.pure)) return false;
    nodes_[writer].results[0] = to;
    for (std::size_t i = writer + 1; i < EndBehind(move); ++i) {
      std::ranges::replace(nodes_[i].sources, from, to);
    }
    // What still needs the old value comes first.
    if (used) {
      const auto behind = [&](auto& of) {
        const auto first = of.begin() + static_cast<std::ptrdiff_t>(writer);
        std::rotate(first, first + 1, of.begin() + static_cast<std::ptrdiff_t>(move));
      };
      behind(nodes_);
      behind(is_gone_);
    }
    return true;
  }

  std::vector<Node>& nodes_;
  const Kernel& kernel_;
  const Values& values_;
  std::vector<std::uint8_t> is_gone_;  // by node; those that are gone read and write nothing
};

}  // namespace

void Copies(Kernel& kernel, const Target&) {
  ReplaceCopies(kernel);
  const Values values(kernel);
  for (Block& block : kernel.blocks) BlockJoins(block.nodes, kernel, values).Run();
}

}  // namespace gridloom::lowering
