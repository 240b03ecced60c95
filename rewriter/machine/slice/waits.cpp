#include "rewriter/machine/slice/waits.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "rewriter/machine/slice/constants.h"

namespace gridloom::machine {
namespace {

using Nodes = std::vector<bool>;

constexpr unsigned kFirstResult = 4, kLastResult = 15;  // registers that a call of code outside may leave results in

/// The strongly connected components of some of the nodes that are cycles (Tarjan, 1972), without recursion.
class Components {
 public:
  Components(const FlowGraph& flow, const Nodes& among)
      : flow_(flow), among_(among), order_(among.size()), low_(among.size()), on_stack_(among.size()) {}
  std::vector<std::vector<std::uint32_t>> Find() {
    for (std::uint32_t node = 0; node < among_.size(); ++node) {
      if (among_[node] && order_[node] == 0) Visit(node);
    }
    return std::move(found_);
  }

 private:
  void Enter(std::uint32_t node) {
    order_[node] = low_[node] = ++count_;
    stack_.push_back(node);
    on_stack_[node] = true;
    path_.push_back({node, 0});
  }
  void Visit(std::uint32_t root) {
    Enter(root);
    while (!path_.empty()) {
      auto& [node, next] = path_.back();
      const auto successors = flow_.Next(node);
      if (next < successors.size()) {
        const std::uint32_t to = successors[next++];
        if (!among_[to]) continue;
        if (order_[to] == 0) Enter(to);
        else if (on_stack_[to]) low_[node] = std::min(low_[node], order_[to]);
        continue;
      }
      const std::uint32_t done = node;
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().node] = std::min(low_[path_.back().node], low_[done]);
      if (low_[done] == order_[done]) Take(done);
    }
  }
  void Take(std::uint32_t root) {
    std::vector<std::uint32_t> nodes;
    for (auto node = static_cast<std::uint32_t>(among_.size()); node != root;) {
      node = stack_.back();
      stack_.pop_back();
      on_stack_[node] = false;
      nodes.push_back(node);
    }
    const bool cycle = nodes.size() > 1 || std::ranges::find(flow_.Next(root), root) != flow_.Next(root).end();
    if (cycle) found_.push_back(std::move(nodes));
  }

  struct Step {
    std::uint32_t node;
    std::size_t next;
  };
  const FlowGraph& flow_;
  const Nodes& among_;
  std::vector<std::uint32_t> order_, low_;
  Nodes on_stack_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> stack_{};
  std::vector<Step> path_{};
  std::vector<std::vector<std::uint32_t>> found_{};
};

bool IsFence(const Instruction& instruction) {
  if (instruction.format->name == "CCTL" || instruction.format->name.starts_with("CCTL.IVALL")) return true;
  return instruction.format->name.starts_with("MEMBAR") && !HasModifier(instruction, ".CTA");
}

/// Of global or generic memory.
bool IsLoad(std::string_view name) {
  return name == "LD" || name.starts_with("LD.") || name == "LDG" || name.starts_with("LDG.");
}
bool IsSwap(std::string_view name) { return name.starts_with("ATOM") && name.find(".CAS") != name.npos; }

bool IsStrongRead(const Instruction& instruction) {
  const std::string_view name = instruction.format->name;
  if (name.starts_with("ATOM") && !name.starts_with("ATOMS")) return true;
  if (name.starts_with("SULD") || name.starts_with("SUATOM")) return true;
  if (!IsLoad(name)) return false;
  return HasModifier(instruction, ".STRONG.GPU") || HasModifier(instruction, ".STRONG.SYS") ||
         HasModifier(instruction, ".STRONG.SM");
}
bool IsWeakRead(const Instruction& instruction) {
  return IsLoad(instruction.format->name) && !IsStrongRead(instruction) && !HasModifier(instruction, ".CONSTANT") &&
         !HasModifier(instruction, ".CONSTANT.SYS");
}
bool LoadsMemory(std::string_view name) {
  return name.starts_with("LD") || name.starts_with("ATOM") || name.starts_with("TEX") || name.starts_with("SULD");
}
bool StoresMemory(std::string_view name) {
  return name.starts_with("ST") || name.starts_with("RED.") || name == "RED" || name.starts_with("REDG") ||
         name.starts_with("ATOM") || name.starts_with("SUST") || name.starts_with("SURED");
}
bool IsMove(std::string_view name) { return name == "MOV" || name == "IMAD.MOV" || name == "UMOV"; }
bool IsStep(std::string_view name) {
  return name == "IADD3" || name == "IMAD.IADD" || name == "UIADD3" || name == "VIADD" || name == "IMAD";
}

bool Meet(const RegisterSet& a, const RegisterSet& b) {
  return (a.general & b.general).any() || (a.uniform & b.uniform).any() || (a.predicates & b.predicates).any() ||
         (a.uniform_predicates & b.uniform_predicates).any();
}

/// Looks for waits in the cycles of a function.
class WaitSearch {
 public:
  WaitSearch(const FlowGraph& flow, bool calls_wait) : flow_(flow), calls_wait_(calls_wait) {
    for (std::uint32_t at = 0; at < flow.instructions().size(); ++at) uses_.push_back(flow.UseAt(at));
  }

  std::optional<std::uint32_t> FindWithin(const Nodes& among) {
    for (const auto& cycle : Components(flow_, among).Find()) {
      if (const auto wait = FindIn(cycle)) return wait;
    }
    return std::nullopt;
  }

 private:
  const Instruction& At(std::uint32_t node) const { return flow_.instructions()[node]; }
  std::string_view NameAt(std::uint32_t node) const { return At(node).format->name; }

  std::optional<std::uint32_t> FindIn(const std::vector<std::uint32_t>& cycle);
  std::optional<std::uint32_t> Spread(std::vector<std::uint32_t> cycle);
  bool Step(std::uint32_t node);
  bool IsSource(std::uint32_t node, bool fences) const;
  bool Decides(std::uint32_t node) const;
  bool Leaves(std::uint32_t node) const;
  bool IsCountedExit(const std::vector<std::uint32_t>& cycle, std::uint32_t node) const;
  bool IsSwapRetry(const std::vector<std::uint32_t>& cycle, std::uint32_t node) const;
  bool OnEveryRound(const std::vector<std::uint32_t>& cycle, std::uint32_t node, const Nodes& without) const;
  std::vector<std::uint32_t> WritersOf(const std::vector<std::uint32_t>& cycle, const RegisterSet& set) const;

  const FlowGraph& flow_;
  const bool calls_wait_;
  std::vector<RegisterUse> uses_{};
  // of the cycle that is looked at:
  Nodes inside_{}, sources_{};
  RegisterSet written_{};
  std::vector<RegisterSet> before_{};  ///< by instruction: registers that depend on a read of the cycle
  bool memory_ = false;
};

bool WaitSearch::IsSource(std::uint32_t node, bool fences) const {
  if (At(node).format->flow == Flow::kOutside) return calls_wait_;
  if (IsStrongRead(At(node))) return true;
  if (!IsWeakRead(At(node))) return false;
  return fences || !Meet(uses_[node].read, written_);
}

/// Passes on behind an instruction what is tainted before it. False when nothing is new.
bool WaitSearch::Step(std::uint32_t node) {
  const Instruction& instruction = At(node);
  const RegisterUse& use = uses_[node];
  const std::string_view name = NameAt(node);
  RegisterSet after = before_[node];
  if (instruction.guard == kTrue && !instruction.guard_negated) after -= use.written;
  bool changed = false;
  const bool tainted = Meet(use.read, before_[node]) || (memory_ && LoadsMemory(name));
  if (tainted && StoresMemory(name) && !memory_) memory_ = changed = true;
  if (tainted || sources_[node]) after |= use.written;
  if (sources_[node] && instruction.format->flow == Flow::kOutside) {
    for (unsigned number = kFirstResult; number <= kLastResult; ++number) after.general.set(number);
  }
  for (const std::uint32_t next : flow_.Next(node)) {
    if (!inside_[next]) continue;
    RegisterSet joined = before_[next];
    joined |= after;
    if (joined == before_[next]) continue;
    before_[next] = joined;
    changed = true;
  }
  return changed;
}

/// Fills in what the cycle's own reads reach; the first of them.
std::optional<std::uint32_t> WaitSearch::Spread(std::vector<std::uint32_t> cycle) {
  inside_.assign(uses_.size(), false);
  sources_.assign(uses_.size(), false);
  written_ = {};
  memory_ = false;
  bool fences = false;
  std::ranges::sort(cycle);
  for (const std::uint32_t node : cycle) {
    inside_[node] = true;
    written_ |= uses_[node].written;
    fences |= IsFence(At(node));
  }
  std::optional<std::uint32_t> source;
  before_.resize(uses_.size());
  for (const std::uint32_t node : cycle) {
    before_[node] = {};
    if (!IsSource(node, fences)) continue;
    sources_[node] = true;
    if (At(node).format->flow == Flow::kOutside) memory_ = true;
    if (!source) source = node;
  }
  for (bool changed = source.has_value(); changed;) {
    changed = false;
    for (const std::uint32_t node : cycle) changed |= Step(node);
  }
  return source;
}

bool WaitSearch::Decides(std::uint32_t node) const {
  return (flow_.Next(node).size() > 1 || Leaves(node)) && Meet(uses_[node].read, before_[node]);
}

bool WaitSearch::Leaves(std::uint32_t node) const {
  if (At(node).format->flow == Flow::kExit) return true;
  return std::ranges::any_of(flow_.Next(node), [&](std::uint32_t next) { return !inside_[next]; });
}

std::vector<std::uint32_t> WaitSearch::WritersOf(const std::vector<std::uint32_t>& cycle,
                                                 const RegisterSet& set) const {
  std::vector<std::uint32_t> writers;
  for (const std::uint32_t node : cycle) {
    if (Meet(uses_[node].written, set)) writers.push_back(node);
  }
  return writers;
}

/// Whether every way from the node back to it passes one of the nodes `without`.
bool WaitSearch::OnEveryRound(const std::vector<std::uint32_t>& cycle, std::uint32_t node, const Nodes& without) const {
  if (without[node]) return true;
  Nodes seen(uses_.size(), false);
  std::vector<std::uint32_t> open{node};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const std::uint32_t next : flow_.Next(at)) {
      if (next == node) return false;
      if (!inside_[next] || without[next] || seen[next]) continue;
      seen[next] = true;
      open.push_back(next);
    }
  }
  return !cycle.empty();
}

/// It leaves the cycle by a comparison of something that is stepped in every round with what stays.
bool WaitSearch::IsCountedExit(const std::vector<std::uint32_t>& cycle, std::uint32_t node) const {
  if (!Leaves(node) || flow_.Next(node).size() + (At(node).format->flow == Flow::kExit ? 1 : 0) < 2) return false;
  RegisterSet decisive = uses_[node].read;
  if (Meet(decisive, before_[node])) return false;
  decisive.general.reset();
  decisive.uniform.reset();
  Nodes steps(uses_.size(), false);
  bool any = false;
  RegisterSet done;
  for (std::vector<std::uint32_t> open = WritersOf(cycle, decisive); !open.empty();) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (At(at).guard != kTrue) return false;
    const RegisterUse& use = uses_[at];
    if (IsStep(NameAt(at)) && Meet(use.read, use.written)) {
      steps[at] = any = true;
      continue;
    }
    if (!Meet(use.read, written_) || LoadsMemory(NameAt(at))) return false;  // set, and not stepped
    RegisterSet more = use.read;
    more -= done;
    done |= use.read;
    const auto writers = WritersOf(cycle, more);
    open.insert(open.end(), writers.begin(), writers.end());
  }
  return any && OnEveryRound(cycle, node, steps);
}

/// The only way out, taken when a compare-and-swap found what it was given, which is what the one before found.
bool WaitSearch::IsSwapRetry(const std::vector<std::uint32_t>& cycle, std::uint32_t node) const {
  RegisterSet found, given;
  for (const std::uint32_t at : cycle) {
    if (at != node && Leaves(at)) return false;
    if (!IsStrongRead(At(at))) continue;
    if (!IsSwap(NameAt(at)) || found.general.any()) return false;
    found.general = uses_[at].written.general;
    // Its operands are the address, what is expected and what is new.
    const auto& operands = At(at).format->operands;
    const std::size_t expected = operands.size() - 2;
    const auto first = At(at).Value(operands[expected].value);
    for (unsigned number = 0; number < RegistersOf(At(at), operands[expected]); ++number) {
      if (first + number < kZeroRegister) given.general.set(first + number);
    }
  }
  if (found.general.none() || given.general.none() || Meet(found, given)) return false;
  const auto copies = WritersOf(cycle, given);
  const bool copied = !copies.empty() && std::ranges::all_of(copies, [&](std::uint32_t at) {
    RegisterSet from = uses_[at].read;
    from -= found;
    return IsMove(NameAt(at)) && from.none() && At(at).guard == kTrue;
  });
  RegisterSet predicates = uses_[node].read;
  predicates.general.reset();
  RegisterSet compared = found;
  compared |= given;
  return copied && std::ranges::all_of(WritersOf(cycle, predicates), [&](std::uint32_t at) {
           RegisterSet other = uses_[at].read;
           other -= compared;
           return NameAt(at) == "ISETP" && other.general.none() && Meet(uses_[at].read, found) &&
                  Meet(uses_[at].read, given);
         });
}

std::optional<std::uint32_t> WaitSearch::FindIn(const std::vector<std::uint32_t>& cycle) {
  const auto source = Spread(cycle);
  if (!source) return std::nullopt;
  bool decides = false;
  for (const std::uint32_t node : cycle) decides |= Decides(node) && !IsSwapRetry(cycle, node);
  if (!decides) return std::nullopt;
  for (const std::uint32_t node : cycle) {
    if (Decides(node) && Leaves(node) && !IsSwapRetry(cycle, node)) return source;
  }
  for (const std::uint32_t node : cycle) {
    if (!IsCountedExit(cycle, node)) continue;
    Nodes rest = inside_;
    rest[node] = false;
    return FindWithin(rest);
  }
  return source;
}

}  // namespace

std::optional<std::uint32_t> WaitOf(const FlowGraph& flow, bool calls_wait) {
  // What cannot be reached from the entry does not run: the jump to itself at the end is such.
  Nodes reached(flow.instructions().size(), false);
  std::vector<std::uint32_t> open;
  if (!reached.empty()) {
    reached[0] = true;
    open.push_back(0);
  }
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const std::uint32_t next : flow.Next(at)) {
      if (!reached[next]) open.push_back(next);
      reached[next] = true;
    }
  }
  return WaitSearch(flow, calls_wait).FindWithin(reached);
}

}  // namespace gridloom::machine
