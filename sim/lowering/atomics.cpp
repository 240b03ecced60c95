// Atomics: where all lanes of a warp go to one address, one lane goes for all of them.
//
// With one value, it multiplies that by the number of lanes; where they ask what was there, sums alone: each lane adds
// what the lanes before it would have added to what that one has found. nvcc has done so since CUDA 9 (A. Adinetz,
// "CUDA Pro Tip: Optimized Filtering with Warp-Aggregated Atomics", NVIDIA Technical Blog, note of 2017).
//
// With values that differ, ptxas 13 does the same, as a kernel of one atomic shows that is compiled for sm_75, sm_80
// and sm_90: what nobody asks about goes through one instruction that all lanes add to (REDUX, from Ampere on), or five
// exchanges with a lane 1, 2, 4, 8 and 16 away; a sum whose old value is read goes through five steps of a scan. Both
// of the latter only if all lanes are there; else lanes go one by one.
#include <algorithm>

#include "sim/lowering/facts.h"
#include "sim/lowering/lower.h"
#include "sim/lowering/pass.h"
#include "sim/lowering/warp_values.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

constexpr unsigned kWordBits = 32;

bool IsRead(const Node& node, const Values& values) {
  bool is_read = false;
  VisitRegisters(node.results, [&](Register reg) { is_read |= values.reads(reg) != 0; });
  return is_read;
}

/// How lanes come to be one.
enum class Way : std::uint8_t {
  kNone,
  kCounted,  ///< their value, times their number
  kReduced,  ///< what all have, together
  kScanned,  ///< the same, and each learns what those before it have
};

Way WayOf(const Node& node, const Values& values, const WarpValues& alike) {
  if (!node.operation.joins_lanes || node.text == 0 || node.sources.empty()) return Way::kNone;
  const bool is_word = node.operation.bits == kWordBits, is_read = IsRead(node, values);
  if (is_read && !(node.operation.sums && is_word)) return Way::kNone;
  const auto end = node.sources.end() - (node.guarded() ? 1 : 0);
  const auto is_alike = [&](const Term& source) { return alike.IsAlike(source); };
  if (end - node.sources.begin() < 2 || !std::all_of(node.sources.begin(), end - 1, is_alike)) return Way::kNone;
  if (is_alike(*(end - 1))) return Way::kCounted;
  if (!is_word || node.guarded()) return Way::kNone;  // what the assembler makes of guarded ones was not looked at
  return is_read ? Way::kScanned : Way::kReduced;
}

/// An instruction beside the atomic that waits for `before`; its result.
Term AddStep(const Node& atomic, OpClass op, const std::vector<Term>& before, Kernel& kernel,
             std::vector<Node>& nodes) {
  Node node;
  node.shape.op = op;
  node.shape.line = atomic.shape.line;
  node.is_part = true;
  node.ptx = atomic.ptx;
  if (atomic.guarded()) node.sources = {atomic.sources.back()};
  node.waits_for = before;
  node.results = {{Term::Kind::kRegister, ++kernel.registers}};
  nodes.push_back(std::move(node));
  return nodes.back().results[0];
}

/// Who is there, how many that is, and whether this lane is the first of them: the atomic waits for both. Returns who
/// is there. Bits are counted where special functions are.
Term AddElection(Node& atomic, Kernel& kernel, std::vector<Node>& nodes) {
  const Term there = AddStep(atomic, OpClass::kShuffle, atomic.waits_for, kernel, nodes);
  const Term count = AddStep(atomic, OpClass::kSfu, {there}, kernel, nodes);
  atomic.waits_for = {count, AddStep(atomic, OpClass::kInt, {there}, kernel, nodes)};
  return there;
}

/// How many lanes that are `there` come before this one: their mask, of it who is there, their number.
Term AddLanesBefore(const Node& atomic, Term there, Kernel& kernel, std::vector<Node>& nodes) {
  const Term before = AddStep(atomic, OpClass::kInt, {}, kernel, nodes);
  const Term both = AddStep(atomic, OpClass::kInt, {there, before}, kernel, nodes);
  return AddStep(atomic, OpClass::kInt, {both}, kernel, nodes);
}

/// What the lane that went has found, to all lanes, and what is added to it, in the atomic's result.
void AddShares(const Node& atomic, Term lanes_before, Kernel& kernel, std::vector<Node>& nodes) {
  const Term found = AddStep(atomic, OpClass::kShuffle, atomic.results, kernel, nodes);
  AddStep(atomic, OpClass::kInt, {found, lanes_before}, kernel, nodes);
  nodes.back().results = atomic.results;
  for (std::size_t i = nodes.size() - 2; i < nodes.size(); ++i) nodes[i].ptx = Lowered::kAdded;
}

/// What each lane adds to the word, whose address comes before it.
const Term& AddendOf(const Node& atomic) { return atomic.sources[atomic.sources.size() - (atomic.guarded() ? 2 : 1)]; }

/// Whether all lanes are there, and the branch over what is done then, with what is done otherwise.
void AddWholeTest(const Node& atomic, Kernel& kernel, std::vector<Node>& nodes) {
  const Term there = AddStep(atomic, OpClass::kShuffle, atomic.waits_for, kernel, nodes);
  const Term whole = AddStep(atomic, OpClass::kInt, {there}, kernel, nodes);
  AddStep(atomic, OpClass::kControl, {whole}, kernel, nodes);
  AddStep(atomic, OpClass::kControl, {whole}, kernel, nodes);
}

/// The number of this lane, and whether it is the one that goes.
Term AddChoice(const Node& atomic, Kernel& kernel, std::vector<Node>& nodes) {
  const Term lane = AddStep(atomic, OpClass::kInt, {}, kernel, nodes);
  return AddStep(atomic, OpClass::kInt, {lane}, kernel, nodes);
}

/// Five exchanges with other lanes, each with an operation behind it. Returns what comes of them.
Term AddExchanges(const Node& atomic, bool moves, Kernel& kernel, std::vector<Node>& nodes) {
  constexpr int kSteps = 5;  // 2^5 lanes
  Term value = AddendOf(atomic);
  if (moves) value = AddStep(atomic, OpClass::kInt, {value}, kernel, nodes);
  for (int i = 0; i < kSteps; ++i) {
    const Term other = AddStep(atomic, OpClass::kShuffle, {value}, kernel, nodes);
    value = AddStep(atomic, OpClass::kInt, {value, other}, kernel, nodes);
    if (moves) value = AddStep(atomic, OpClass::kInt, {value}, kernel, nodes);
  }
  return value;
}

void AddReduced(Node atomic, const Target& target, Kernel& kernel, std::vector<Node>& nodes) {
  constexpr std::uint32_t kAmpere = 80;
  Term value, chosen;
  if (target.sm() >= kAmpere) {
    const Term there = AddStep(atomic, OpClass::kShuffle, atomic.waits_for, kernel, nodes);
    const Term first = AddStep(atomic, OpClass::kInt, {there}, kernel, nodes);
    chosen = AddStep(atomic, OpClass::kInt, {first}, kernel, nodes);
    const Term together = AddStep(atomic, OpClass::kShuffle, {AddendOf(atomic)}, kernel, nodes);
    value = AddStep(atomic, OpClass::kInt, {together}, kernel, nodes);
  } else {
    AddWholeTest(atomic, kernel, nodes);
    chosen = AddChoice(atomic, kernel, nodes);
    value = AddExchanges(atomic, false, kernel, nodes);
    atomic.whole_warp = true;
  }
  atomic.waits_for = {value, chosen};
  atomic.one_lane = true;
  nodes.push_back(std::move(atomic));
}

void AddScanned(Node atomic, Kernel& kernel, std::vector<Node>& nodes) {
  AddWholeTest(atomic, kernel, nodes);
  const Term chosen = AddChoice(atomic, kernel, nodes);
  const Term sum = AddExchanges(atomic, true, kernel, nodes);
  atomic.waits_for = {sum, chosen};
  atomic.one_lane = atomic.whole_warp = true;
  nodes.push_back(atomic);
  AddShares(atomic, AddStep(atomic, OpClass::kShuffle, {sum}, kernel, nodes), kernel, nodes);
  nodes[nodes.size() - 3].ptx = Lowered::kAdded;
}

void AddCounted(Node atomic, bool is_read, Kernel& kernel, std::vector<Node>& nodes) {
  const Term there = AddElection(atomic, kernel, nodes);
  const Term before = is_read ? AddLanesBefore(atomic, there, kernel, nodes) : Term{};
  atomic.one_lane = true;
  nodes.push_back(atomic);
  if (is_read) AddShares(atomic, before, kernel, nodes);
}

}  // namespace

void Atomics(Kernel& kernel, const Target& target) {
  if (!target.is_volta_or_later()) return;
  const Values values(kernel);
  const WarpValues alike(kernel, Flow(kernel));
  for (Block& block : kernel.blocks) {
    const auto can_be_one = [&](const Node& node) { return WayOf(node, values, alike) != Way::kNone; };
    if (std::ranges::none_of(block.nodes, can_be_one)) continue;
    std::vector<Node> nodes;
    for (Node& node : block.nodes) {
      switch (WayOf(node, values, alike)) {
        case Way::kNone: nodes.push_back(std::move(node)); break;
        case Way::kCounted: AddCounted(node, IsRead(node, values), kernel, nodes); break;
        case Way::kReduced: AddReduced(node, target, kernel, nodes); break;
        case Way::kScanned: AddScanned(node, kernel, nodes); break;
      }
    }
    block.nodes = std::move(nodes);
  }
}

}  // namespace gridloom::lowering
