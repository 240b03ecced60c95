// What CUDA promises of a program, as a partial order of its works and of the host's calls (docs/order.md), and what
// follows from it: the value that each read sees, whether a query may say success, and whether the program ends.
//
// Every work that writes has a cell of its own, so that works without an order never meet. It reads cells of works just
// before it, which have to be written, and of works just behind it, which must not be written yet.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "program.h"

namespace order {

/// A set of nodes.
class Nodes {
 public:
  explicit Nodes(std::size_t size) : words_((size + 63) / 64) {}
  void Add(int node) { words_[static_cast<std::size_t>(node) / 64] |= std::uint64_t{1} << (node % 64); }
  bool Has(int node) const { return (words_[static_cast<std::size_t>(node) / 64] >> (node % 64) & 1) != 0; }
  void AddAll(const Nodes& others) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Four words: base, base + step, …
struct Value {
  std::uint32_t base = 0, step = 0;
  std::uint32_t word(int i) const { return base + static_cast<std::uint32_t>(i) * step; }
  bool operator==(const Value& other) const { return base == other.base && step == other.step; }
};

struct Cell {
  Memory memory = Memory::kDevice;
  int block = -1;  ///< kBlock: whose
  int index = 0;   ///< place in its memory
  Value initial;
  bool known = true;  ///< before the first write; not in a block
  std::vector<int> writers;
  Value final;  ///< when all is done
};

enum class Agent : std::uint8_t { kKernel, kHost, kCopy, kMemset };

/// One work that touches cells, each time that it runs.
struct Access {
  int node = -1;
  int operation = -1;  ///< index in Model::operations
  int leaf = -1;       ///< of a graph
  int run = 0;         ///< leaf: how often it ran before with the same parameters
  Agent agent = Agent::kKernel;
  std::uint64_t salt = 0;
  std::uint32_t spin = 0;
  int grid = 1;
  int cell = -1;  ///< what it writes, or -1
  Value value;
  bool knows_before = false;
  Value before;     ///< what its cell has until then
  int source = -1;  ///< kCopy
  struct Read {
    int cell;
    Value value;
    int writer;      ///< access that wrote it, or -1
    bool too_early;  ///< `other` comes behind the read; else before it
    int other;       ///< the access whose place is looked at
  };
  std::vector<Read> reads;
};

/// A node of a graph that calls something, over all its runs with one set of parameters.
struct Leaf {
  const GraphNode* node = nullptr;  ///< null: the kernel that sets a condition
  int cell = -1, source = -1;
  Value fill;                            ///< kMemset
  std::vector<int> runs;                 ///< accesses in their order
  std::vector<std::uint8_t> conditions;  ///< of a kernel that sets a condition: what it sets in each run
};

struct Call {
  std::vector<std::pair<int, int>> waits;  ///< first until that host thread has made so many calls
  std::pair<int, int> entered{-1, 0};  ///< kGate: that host thread has to be in its call of this number, counted from 0
  int begin = -1, end = -1;            ///< nodes
  int before = -1, after = -1;         ///< accesses of the host's thread before the call and behind it
  int access = -1;                     ///< access of the work itself; of a graph's launch: see `runs`
  std::vector<int> runs;               ///< kLaunchGraph: all accesses
  int variant = -1;                    ///< kMakeGraph, kLaunchGraph, kUpdateGraph: index in Model::variants
  enum class Ready : std::uint8_t { kEither, kYes, kNo } ready = Ready::kEither;
  int stream = 0;         ///< kLegacy, kPerThread or a created one
  int other_stream = -1;  ///< kFreeAsync: the block's own, if it is another one
};

struct Variant {
  std::vector<Leaf> leaves;
};

class Model {
 public:
  /// Takes what is no program of its own away: calls with objects that are not there, gates that would never open.
  Model(const Program& program, const Mix& mix);

  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<Operation> operations;
  std::vector<Call> calls;
  std::vector<Access> accesses;
  std::vector<Cell> cells;
  std::vector<Variant> variants;
  std::vector<Nodes> ancestors;  ///< of each node: what comes before it

  bool Before(int node, int later) const {
    return node != later && ancestors[static_cast<std::size_t>(later)].Has(node);
  }
  std::string Listing() const;
  std::string CellName(int cell) const;
  std::string WorkName(int access) const;
  std::string DescribeAccess(int access) const;
};

}  // namespace order
