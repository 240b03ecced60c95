// Vectors: loads of four or two words of shared memory that follow each other are one load of 16 or 8 bytes, where the
// address is a multiple of that. Measured: of the 64 loads of `kernelet/mm`'s inner loop that lie side by side, an H200
// executes 16 (tests/data/gpu/times-h200.json; the loop's 165 instructions are 120 there).
#include <algorithm>

#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

constexpr std::uint64_t kWord = 4, kMostBytes = 16;

/// What divides addresses, as far as follows from constants: a power of two.
class Alignments {
 public:
  explicit Alignments(const Values& values) : values_(values) {}
  std::uint64_t Of(const Term& term) const { return Of(term, 0); }

 private:
  static constexpr unsigned kMostSteps = 12;
  static std::uint64_t LowestBit(std::uint64_t value) {
    return value == 0 ? kMostBytes : std::min(kMostBytes, value & (~value + 1));
  }

  std::uint64_t Of(const Term& term, unsigned steps) const {
    switch (term.kind) {
      case Term::Kind::kNumber:
      case Term::Kind::kOffset: return LowestBit(term.value);
      case Term::Kind::kName: return kMostBytes;  // a variable: it is placed as is best
      case Term::Kind::kRegister: break;
    }
    const auto reg = static_cast<Register>(term.value);
    if (steps == kMostSteps || !values_.IsValue(reg)) return 1;
    return std::min(kMostBytes, OfResult(values_.NodeOf(reg), steps + 1));
  }

  std::uint64_t OfResult(const Node& node, unsigned steps) const {
    const auto of = [&](std::size_t i) { return i < node.sources.size() ? Of(node.sources[i], steps) : 1; };
    const bool has_number = node.sources.size() > 1 && node.sources[1].kind == Term::Kind::kNumber;
    switch (node.operation.base) {
      case Base::kAdd:
      case Base::kSub: return std::min(of(0), of(1));
      case Base::kShl: return has_number && node.sources[1].value < 8 ? of(0) << node.sources[1].value : of(0);
      case Base::kMul: return of(0) * of(1);
      case Base::kMad: return std::min(of(0) * of(1), of(2));
      case Base::kLogic: return has_number ? std::max<std::uint64_t>(1, LowestBit(node.sources[1].value)) : 1;
      case Base::kMove: return node.sources.size() == 1 && node.sources[0].kind != Term::Kind::kName ? of(0) : 1;
      default: return 1;
    }
  }

  const Values& values_;
};

bool IsWordOfShared(const Node& node) {
  return node.operation.base == Base::kLoad && node.shape.space == trace::Space::kShared && node.shape.width == kWord &&
         (node.shape.flags & (trace::kVolatile | trace::kGeneric)) == 0 && !node.guarded() &&
         node.results.size() == 1 && node.sources.size() == 2 && node.sources[0].kind == Term::Kind::kRegister &&
         node.sources[1].kind == Term::Kind::kOffset && node.parts.empty();
}

bool MayStore(const Node& node) {
  const bool loads = node.operation.base == Base::kLoad && (node.shape.flags & trace::kVolatile) == 0;
  return node.ordered || node.shape.op == trace::OpClass::kBarrier || node.shape.op == trace::OpClass::kFence ||
         node.shape.op == trace::OpClass::kTensor || (node.shape.op == trace::OpClass::kMemory && !loads);
}

bool Names(const Node& node, const Term& term) {
  return std::ranges::find(node.results, term) != node.results.end() ||
         std::ranges::find(node.sources, term) != node.sources.end() ||
         std::ranges::find(node.waits_for, term) != node.waits_for.end();
}

class BlockVectors {
 public:
  BlockVectors(std::vector<Node>& nodes, const Alignments& alignments)
      : nodes_(nodes), alignments_(alignments), is_gone_(nodes.size()) {}

  void Run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (is_gone_[i] != 0 || !IsWordOfShared(nodes_[i])) continue;
      for (const std::uint64_t bytes : {kMostBytes, kMostBytes / 2}) {
        if (Join(i, bytes)) break;
      }
    }
    std::size_t index = 0;
    std::erase_if(nodes_, [&](const Node&) { return is_gone_[index++] != 0; });
  }

 private:
  /// No word is looked for further behind: the work has a bound.
  static constexpr std::size_t kMostNodes = 256;

  /// The load at `first` and those of the words around it, which come later.
  bool Join(std::size_t first, std::uint64_t bytes) {
    const std::uint64_t offset = nodes_[first].sources[1].value, begin = offset / bytes * bytes;
    if (offset % kWord != 0 || alignments_.Of(nodes_[first].sources[0]) < bytes) return false;
    std::vector<std::size_t> words(bytes / kWord, nodes_.size());
    words[(offset - begin) / kWord] = first;
    std::size_t left = words.size() - 1;
    for (std::size_t i = first + 1; left != 0 && i < std::min(nodes_.size(), first + kMostNodes); ++i) {
      if (is_gone_[i] != 0) continue;
      if (MayStore(nodes_[i]) || Writes(nodes_[i], nodes_[first].sources[0])) return false;
      if (!IsWordOfShared(nodes_[i]) || nodes_[i].sources[0] != nodes_[first].sources[0]) continue;
      const std::uint64_t word = (nodes_[i].sources[1].value - begin) / kWord;
      if (nodes_[i].sources[1].value < begin || word >= words.size() || words[word] != nodes_.size()) continue;
      if (!IsFree(first, i)) return false;
      words[word] = i;
      --left;
    }
    if (left != 0) return false;
    MakeOne(first, words, bytes);
    return true;
  }

  static bool Writes(const Node& node, const Term& reg) {
    return std::ranges::find(node.results, reg) != node.results.end();
  }
  /// Whether nothing between them names what the later one writes.
  bool IsFree(std::size_t first, std::size_t later) const {
    for (std::size_t i = first; i < later; ++i) {
      if (is_gone_[i] == 0 && Names(nodes_[i], nodes_[later].results[0])) return false;
    }
    return true;
  }

  void MakeOne(std::size_t first, const std::vector<std::size_t>& words, std::uint64_t bytes) {
    Node one = nodes_[words[0]];
    one.text = 0;
    one.shape.width = static_cast<std::uint8_t>(bytes);
    one.results.clear();
    for (const std::size_t word : words) {
      one.results.push_back(nodes_[word].results[0]);
      one.parts.push_back(nodes_[word]);
      is_gone_[word] = 1;
    }
    nodes_[first] = std::move(one);
    is_gone_[first] = 0;
  }

  std::vector<Node>& nodes_;
  const Alignments& alignments_;
  std::vector<std::uint8_t> is_gone_;
};

}  // namespace

void Vectors(Kernel& kernel, const Target&) {
  const Values values(kernel);
  const Alignments alignments(values);
  // What registers are made of is looked up in the nodes: all blocks change at the end.
  std::vector<std::vector<Node>> changed;
  for (const Block& block : kernel.blocks) {
    changed.push_back(block.nodes);
    BlockVectors(changed.back(), alignments).Run();
  }
  for (std::size_t b = 0; b < kernel.blocks.size(); ++b) kernel.blocks[b].nodes = std::move(changed[b]);
}

}  // namespace gridloom::lowering
