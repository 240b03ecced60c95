// Order: list scheduling of each block by latency, within a budget of registers.
#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/lowering/dependences.h"
#include "sim/lowering/liveness.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

/// Longer stretches are ordered piece by piece: what is that far apart does not wait for each other, and the work of
/// comparing accesses with each other has a bound.
constexpr std::size_t kMostNodes = 512;

/// The registers of some nodes, numbered from 0: what each node reads and writes, each register once.
class RegisterUses {
 public:
  struct Read {
    std::uint32_t number = 0;
    bool is_written = false;  ///< by the same node
  };

  explicit RegisterUses(std::span<const Node> nodes) {
    nodes_.reserve(nodes.size());
    for (const Node& node : nodes) {
      Uses& uses = nodes_.emplace_back();
      uses.partial = node.partial();
      uses.first_read = static_cast<std::uint32_t>(reads_.size());
      uses.first_write = static_cast<std::uint32_t>(writes_.size());
      VisitRegisters(node.results, [&](Register reg) { writes_.push_back(NumberOf(reg)); });
      uses.end_write = static_cast<std::uint32_t>(writes_.size());
      const auto read = [&](std::uint32_t number) {
        const auto first = reads_.begin() + uses.first_read;
        if (std::find_if(first, reads_.end(), [&](const Read& one) { return one.number == number; }) != reads_.end())
          return;
        const std::span<const std::uint32_t> writes = WritesOf(nodes_.size() - 1);
        reads_.push_back({number, std::ranges::find(writes, number) != writes.end()});
      };
      VisitReads(node, [&](Register reg) { read(NumberOf(reg)); });
      for (std::uint32_t i = uses.first_write; uses.partial && i < uses.end_write; ++i) read(writes_[i]);
      uses.end_read = static_cast<std::uint32_t>(reads_.size());
    }
  }

  std::size_t size() const { return nodes_.size(); }
  std::span<const Register> registers() const { return registers_; }
  std::span<const Read> ReadsOf(std::size_t node) const {
    return {reads_.data() + nodes_[node].first_read, reads_.data() + nodes_[node].end_read};
  }
  std::span<const std::uint32_t> WritesOf(std::size_t node) const {
    return {writes_.data() + nodes_[node].first_write, writes_.data() + nodes_[node].end_write};
  }
  bool IsPartial(std::size_t node) const { return nodes_[node].partial; }

 private:
  struct Uses {
    std::uint32_t first_read = 0, end_read = 0, first_write = 0, end_write = 0;
    bool partial = false;
  };
  std::uint32_t NumberOf(Register reg) {
    const auto [at, is_new] = numbers_.try_emplace(reg, static_cast<std::uint32_t>(registers_.size()));
    if (is_new) registers_.push_back(reg);
    return at->second;
  }

  std::unordered_map<Register, std::uint32_t> numbers_;
  std::vector<Register> registers_;
  std::vector<Uses> nodes_;
  std::vector<Read> reads_;
  std::vector<std::uint32_t> writes_;
};

/// How many registers hold something while nodes are taken in some order.
class Pressure {
 public:
  /// `behind`: registers that are read behind the nodes.
  Pressure(const RegisterUses& uses, const std::unordered_set<Register>& behind)
      : uses_(&uses), values_(uses.registers().size()) {
    // Those that no node names hold something all the time.
    count_ = static_cast<std::int64_t>(behind.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i].stays = values_[i].holds = behind.contains(uses.registers()[i]);
      count_ -= values_[i].stays ? 1 : 0;
    }
    // From the end to the beginning: what is live before the nodes.
    for (std::size_t i = uses.size(); i-- > 0;) {
      for (const std::uint32_t reg : uses.WritesOf(i)) values_[reg].holds = values_[reg].holds && uses.IsPartial(i);
      for (const RegisterUses::Read& read : uses.ReadsOf(i)) {
        values_[read.number].holds = true;
        ++values_[read.number].reads;
      }
    }
    for (const Value& value : values_) count_ += value.holds ? 1 : 0;
  }

  std::int64_t count() const { return count_; }
  /// By how much it grows when the node comes next.
  std::int64_t Growth(std::size_t node) const {
    std::int64_t growth = 0;
    for (const std::uint32_t reg : uses_->WritesOf(node)) {
      const Value& value = values_[reg];
      growth += !value.holds && (value.reads != 0 || value.stays) ? 1 : 0;
    }
    for (const RegisterUses::Read& read : uses_->ReadsOf(node)) {
      const Value& value = values_[read.number];
      growth -= value.holds && value.reads == 1 && !value.stays && !read.is_written ? 1 : 0;
    }
    return growth;
  }
  void Take(std::size_t node) {
    count_ += Growth(node);
    for (const RegisterUses::Read& read : uses_->ReadsOf(node)) {
      Value& value = values_[read.number];
      if (--value.reads == 0 && !value.stays) value.holds = false;
    }
    for (const std::uint32_t reg : uses_->WritesOf(node))
      values_[reg].holds = values_[reg].reads != 0 || values_[reg].stays;
  }

 private:
  struct Value {
    std::uint32_t reads = 0;  // of nodes that have not been taken
    bool stays = false;       // it is read behind them
    bool holds = false;
  };
  const RegisterUses* uses_;
  std::vector<Value> values_;
  std::int64_t count_ = 0;
};

/// Most registers at a time in the order of the nodes.
std::int64_t MostOf(const RegisterUses& uses, Pressure pressure) {
  std::int64_t most = pressure.count();
  for (std::size_t i = 0; i < uses.size(); ++i) {
    pressure.Take(i);
    most = std::max(most, pressure.count());
  }
  return most;
}

class ListScheduler {
 public:
  ListScheduler(std::span<const Node> nodes, const std::unordered_set<Register>& behind, const Target& target)
      : nodes_(nodes), target_(target), uses_(nodes), pressure_(uses_, behind), places_(nodes.size()) {
    budget_ = std::max<std::int64_t>(target.budget, MostOf(uses_, pressure_));
    for (const Dependence& dependence : DependencesOf(nodes, target)) {
      places_[dependence.before].followers.push_back({dependence.after, dependence.cycles});
      ++places_[dependence.after].waits_for;
    }
    // What comes before a node comes before it among the nodes.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool is_late = places_[i].is_late || IsLoad(nodes[i]);
      for (const auto& [after, cycles] : places_[i].followers) places_[after].is_late |= is_late && cycles != 0;
    }
    std::uint64_t length = 0;  // of the longest way
    // Followers come later among the nodes.
    for (std::size_t i = nodes.size(); i-- > 0;) {
      Place& place = places_[i];
      place.height = target.LatencyOf(nodes[i]);
      for (const auto& [after, cycles] : place.followers)
        place.height = std::max(place.height, cycles + places_[after].height);
      if (place.waits_for == 0) free_.push_back(static_cast<std::uint32_t>(i));
      length = std::max(length, place.height);
    }
    // What the pipes take for all of it, however it is ordered.
    std::array<std::uint64_t, sim::kPipeCount> busy{};
    for (const Node& node : nodes) busy[PipeOf(node)] += IntervalOf(node);
    is_bound_ = *std::ranges::max_element(busy) > length;
  }

  /// Which node comes at which place.
  std::vector<std::uint32_t> Order() {
    std::vector<std::uint32_t> order;
    order.reserve(nodes_.size());
    while (!free_.empty()) {
      const std::size_t chosen = Choose();
      const std::uint32_t node = free_[chosen];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(chosen));
      Take(node);
      order.push_back(node);
    }
    return order;
  }

 private:
  struct Place {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> followers;  // and by how many cycles
    std::uint32_t waits_for = 0;
    std::uint64_t ready = 0;   // no operand comes later
    std::uint64_t height = 0;  // cycles from its issue to the end of all that needs it
    bool is_late = false;      // it needs what a load brings
  };

  bool Fits(std::uint32_t node) const {
    const std::int64_t growth = pressure_.Growth(node);
    return growth <= 0 || pressure_.count() + growth <= budget_;
  }

  static bool IsLoad(const Node& node) {
    return node.shape.op == trace::OpClass::kMemory && node.shape.space != trace::Space::kParameter &&
           !node.results.empty();
  }
  std::size_t PipeOf(const Node& node) const {
    return static_cast<std::size_t>(target_.device.timing.of(node.shape.op).pipe);
  }
  /// Cycles that the node occupies what a scheduler has of its pipe.
  std::uint64_t IntervalOf(const Node& node) const {
    const sim::TimingSpec& timing = target_.device.timing;
    const std::uint64_t units = timing.units[PipeOf(node)];
    const std::uint64_t cycles = std::uint64_t{timing.of(node.shape.op).interval} * timing.sm.schedulers;
    return std::max<std::uint64_t>(1, units == 0 ? 1 : cycles / units);
  }
  /// When the node can issue: its operands are there, and its pipe is free.
  std::uint64_t ReadyAt(std::uint32_t node) const {
    return std::max({places_[node].ready, cycle_, is_bound_ ? pipe_free_[PipeOf(nodes_[node])] : 0});
  }

  /// Of the free nodes that fit into the budget and can issue first, the one with the most behind it. Where a pipe is
  /// busy for longer than the longest way, the order of PTX stays, but for what waits for loads: that comes last, and
  /// no load has to wait for the addresses of all. Where no node fits, the first one in the order of PTX, which leads
  /// to where registers become free.
  std::size_t Choose() const {
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::size_t best = kNone, first = 0;
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
      if (is_bound_ && places_[a].is_late != places_[b].is_late) return places_[b].is_late;
      const std::uint64_t ready_a = ReadyAt(a), ready_b = ReadyAt(b);
      if (ready_a != ready_b) return ready_a < ready_b;
      if (!is_bound_ && places_[a].height != places_[b].height) return places_[a].height > places_[b].height;
      return a < b;
    };
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] < free_[first]) first = i;
      if ((best == kNone || better(free_[i], free_[best])) && Fits(free_[i])) best = i;
    }
    return best == kNone ? first : best;
  }

  void Take(std::uint32_t node) {
    pressure_.Take(node);
    const std::uint64_t issued = ReadyAt(node);
    cycle_ = issued + 1;
    pipe_free_[PipeOf(nodes_[node])] = issued + IntervalOf(nodes_[node]);
    for (const auto& [after, cycles] : places_[node].followers) {
      Place& follower = places_[after];
      follower.ready = std::max(follower.ready, issued + cycles);
      if (--follower.waits_for == 0) free_.push_back(after);
    }
  }

  const std::span<const Node> nodes_;
  const Target& target_;
  const RegisterUses uses_;
  Pressure pressure_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;  // nothing before them is left
  std::int64_t budget_ = 0;
  std::uint64_t cycle_ = 0;
  bool is_bound_ = false;                                   // a pipe takes longer than the longest way
  std::array<std::uint64_t, sim::kPipeCount> pipe_free_{};  // when a pipe takes the next node
};

/// Registers that are read behind a stretch of a block, going from its end to its beginning.
class ReadBehind {
 public:
  ReadBehind(const Liveness& liveness, std::size_t block) {
    const std::vector<Register> out = liveness.LiveOut(block);
    live_.insert(out.begin(), out.end());
  }
  const std::unordered_set<Register>& live() const { return live_; }
  void GoBack(std::span<const Node> nodes) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (!nodes[i].partial()) VisitRegisters(nodes[i].results, [&](Register reg) { live_.erase(reg); });
      VisitReads(nodes[i], [&](Register reg) { live_.insert(reg); });
      if (nodes[i].partial()) VisitRegisters(nodes[i].results, [&](Register reg) { live_.insert(reg); });
    }
  }

 private:
  std::unordered_set<Register> live_;
};

void OrderStretch(std::span<Node> nodes, const std::unordered_set<Register>& behind, const Target& target) {
  if (nodes.size() < 2) return;
  const std::vector<std::uint32_t> order = ListScheduler(nodes, behind, target).Order();
  std::vector<Node> ordered;
  ordered.reserve(nodes.size());
  for (const std::uint32_t i : order) ordered.push_back(std::move(nodes[i]));
  std::ranges::move(ordered, nodes.begin());
}

void OrderBlock(std::vector<Node>& nodes, ReadBehind behind, const Target& target) {
  std::size_t end = nodes.size();
  while (end > 0) {
    std::size_t begin = end;
    while (begin > 0 && end - begin < kMostNodes && !nodes[begin - 1].ordered) --begin;
    if (begin == end) --begin;  // an ordered one, by itself
    const std::span stretch(nodes.data() + begin, end - begin);
    OrderStretch(stretch, behind.live(), target);
    behind.GoBack(stretch);
    end = begin;
  }
}

}  // namespace

void Order(Kernel& kernel, const Target& target) {
  const Liveness liveness(kernel);
  for (std::size_t b = 0; b < kernel.blocks.size(); ++b) {
    if (kernel.blocks[b].nodes.size() > 1) OrderBlock(kernel.blocks[b].nodes, ReadBehind(liveness, b), target);
  }
}

}  // namespace gridloom::lowering
