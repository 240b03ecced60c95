#include "rewriter/machine/control_rules.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewriter/machine/print.h"

namespace gridloom::machine {
namespace {

constexpr std::size_t kScoreboards = 6, kDeepestCall = 16, kMostContexts = 4096;

RegisterSet operator&(RegisterSet a, const RegisterSet& b) {
  a.general &= b.general;
  a.uniform &= b.uniform;
  a.predicates &= b.predicates;
  a.uniform_predicates &= b.uniform_predicates;
  return a;
}

/// An instruction that may still be at work at some place.
struct AtWork {
  std::uint32_t at = 0;
  bool writing = false;  ///< its results are not there yet
  bool reading = false;  ///< its sources may not have been read yet
  bool guarded = false;  ///< its guard is still what it was
};

/// All of them on some way to a place, in their order.
class InFlight {
 public:
  std::vector<AtWork>& all() { return all_; }
  const std::vector<AtWork>& all() const { return all_; }

  void Put(const AtWork& one) {
    const auto place = std::ranges::lower_bound(all_, one.at, {}, &AtWork::at);
    if (place != all_.end() && place->at == one.at) *place = one;
    else all_.insert(place, one);
  }
  /// Whether something is new.
  bool Join(const InFlight& other) {
    bool changed = false;
    for (const AtWork& one : other.all_) {
      const auto place = std::ranges::lower_bound(all_, one.at, {}, &AtWork::at);
      if (place == all_.end() || place->at != one.at) {
        all_.insert(place, one);
        changed = true;
        continue;
      }
      const AtWork joined{one.at, place->writing || one.writing, place->reading || one.reading,
                          place->guarded && one.guarded};
      changed |=
          joined.writing != place->writing || joined.reading != place->reading || joined.guarded != place->guarded;
      *place = joined;
    }
    return changed;
  }

 private:
  std::vector<AtWork> all_{};
};

/// A guard that is never true.
bool NeverRuns(const Instruction& instruction) { return instruction.guard == kTrue && instruction.guard_negated; }

/// Units that take instructions one after the other: what comes later neither writes before nor reads after.
enum class Unit : std::uint8_t { kNone, kShared, kMemory, kTexture, kDouble, kConversion };

bool StartsWithAny(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

Unit UnitOf(const Instruction& instruction) {
  const std::string_view name = instruction.format->name;
  if (StartsWithAny(name, {"LDS", "STS", "ATOMS"})) return Unit::kShared;
  if (StartsWithAny(name, {"TEX", "TLD", "TXD", "TXQ"})) return Unit::kTexture;
  if (StartsWithAny(name, {"DADD", "DMUL", "DFMA", "DSETP"})) return Unit::kDouble;
  if (StartsWithAny(name, {"I2F", "F2I", "F2F"})) return Unit::kConversion;
  return StartsWithAny(name, {"LD", "ST", "ATOM", "RED", "SHFL"}) ? Unit::kMemory : Unit::kNone;
}

/// Both go through the pipe of loads and stores.
bool ShareMemoryPipe(Unit one, Unit other) {
  const auto memory = [](Unit unit) { return unit == Unit::kShared || unit == Unit::kMemory; };
  return memory(one) && memory(other);
}

/// Lanes that do the one do not do the other, as long as the predicate stays.
bool HaveOppositeGuards(const Instruction& one, const Instruction& other) {
  return one.guard != kTrue && one.guard == other.guard && one.guard_negated != other.guard_negated &&
         one.format->uniform_guard == other.format->uniform_guard;
}

/// Scoreboards that are free when the instruction issues.
std::uint8_t WaitsFor(const Instruction& instruction) {
  std::uint8_t boards = instruction.control.wait;
  if (!instruction.format->name.starts_with("DEPBAR")) return boards;
  for (const Operand& operand : instruction.format->operands) {
    if (operand.kind == OperandKind::kScoreboard)
      boards |= static_cast<std::uint8_t>(1U << instruction.Value(operand.value));
    if (operand.kind == OperandKind::kSet) boards |= static_cast<std::uint8_t>(instruction.Value(operand.value));
  }
  return boards;
}

/// An instruction, and the calls that have led to it.
struct Place {
  std::uint32_t context = 0;
  std::uint32_t at = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

class ControlCheck {
 public:
  explicit ControlCheck(const FlowGraph& flow) : flow_(flow) {}

  Status Check() {
    if (flow_.instructions().empty()) return {};
    FindReturns();
    GL_TRY_STATUS(Spread());
    for (const auto& [place, state] : before_) GL_TRY_STATUS(Walk(place, state, /*check=*/true));
    return {};
  }

 private:
  /// A call from somewhere.
  struct Context {
    std::uint32_t caller = 0;  ///< in which the call stands
    std::uint32_t back = 0;    ///< the instruction behind it
    std::uint32_t depth = 0;
    bool recursive = false;  ///< the call is also made by what it calls
  };

  /// Instructions from which some way leads to a return. A call of others is a jump.
  void FindReturns() {
    returns_.assign(flow_.instructions().size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t at = static_cast<std::uint32_t>(returns_.size()); at-- > 0;) {
        if (returns_[at]) continue;
        const Flow flow = flow_.instructions()[at].format->flow;
        returns_[at] = flow == Flow::kReturn ||
                       std::ranges::any_of(flow_.Next(at), [&](std::uint32_t next) { return returns_[next]; });
        changed |= returns_[at];
      }
    }
  }

  Status Spread() {
    before_[{}] = {};
    open_.insert(Place{});
    while (!open_.empty()) {
      const Place place = *open_.begin();
      open_.erase(open_.begin());
      GL_TRY_STATUS(Walk(place, before_.at(place), /*check=*/false));
    }
    return {};
  }

  /// From a place on until control may come from or go to elsewhere.
  Status Walk(Place place, InFlight state, bool check) {
    while (true) {
      Issue(place.at, state);
      if (check && !NeverRuns(flow_.instructions()[place.at])) GL_TRY_STATUS(CheckOne(place.at, state));
      Start(place.at, state);
      GL_TRY(next, Next(place));
      const bool straight =
          next.size() == 1 && next[0] == Place{place.context, place.at + 1} && !flow_.IsTarget(next[0].at);
      if (!straight) {
        for (const Place to : check ? std::vector<Place>() : next) Reach(to, state);
        return {};
      }
      place = next[0];
    }
  }

  void Reach(Place place, const InFlight& state) {
    const auto [found, fresh] = before_.try_emplace(place);
    if (found->second.Join(state) || fresh) open_.insert(place);
  }

  /// A return goes back to where the call came from.
  Result<std::vector<Place>> Next(Place place) {
    const Flow flow = flow_.instructions()[place.at].format->flow;
    std::vector<Place> places;
    if (flow == Flow::kReturn) {
      const Context& context = contexts_[place.context];
      if (context.depth != 0) places.push_back({context.caller, context.back});
      if (context.recursive) places.push_back({place.context, context.back});
      return places;
    }
    const auto target = flow == Flow::kCall ? BranchTargetOf(flow_.instructions()[place.at], place.at) : -1;
    for (const std::uint32_t next : flow_.Next(place.at)) {
      const bool called = target == static_cast<std::int64_t>(next * kWordBytes) && returns_[next];
      if (!called) {
        places.push_back({place.context, next});
        continue;
      }
      GL_TRY(context, Called(place));
      places.push_back({context, next});
    }
    return places;
  }

  /// Its returns, which may have been passed, lead to one place more.
  void WalkAgain(std::uint32_t context) {
    for (const auto& [place, state] : before_) {
      if (place.context == context) open_.insert(place);
    }
  }

  Result<std::uint32_t> Called(Place from) {
    for (std::uint32_t context = from.context; contexts_[context].depth != 0; context = contexts_[context].caller) {
      if (contexts_[context].back != from.at + 1) continue;
      if (!contexts_[context].recursive) WalkAgain(context);
      contexts_[context].recursive = true;
      return context;
    }
    const auto [found, fresh] = called_.try_emplace(from, static_cast<std::uint32_t>(contexts_.size()));
    if (!fresh) return found->second;
    const std::uint32_t depth = contexts_[from.context].depth + 1;
    if (depth > kDeepestCall || contexts_.size() > kMostContexts) return Error{"its calls are nested too deeply"};
    contexts_.push_back({from.context, from.at + 1, depth});
    return found->second;
  }

  /// Leaves what is at work when the instruction issues. Whoever has written has read before.
  void Issue(std::uint32_t at, InFlight& state) const {
    const std::uint8_t boards = WaitsFor(flow_.instructions()[at]);
    if (boards == 0) return;
    const auto awaited = [&](std::uint8_t board) { return board < kScoreboards && (boards >> board & 1) != 0; };
    for (AtWork& one : state.all()) {
      const Control& control = flow_.instructions()[one.at].control;
      if (one.writing && awaited(control.write_barrier)) one.writing = one.reading = false;
      if (awaited(control.read_barrier)) one.reading = false;
    }
    std::erase_if(state.all(), [](const AtWork& one) { return !one.writing && !one.reading; });
  }

  void Start(std::uint32_t at, InFlight& state) const {
    const Instruction& instruction = flow_.instructions()[at];
    if (NeverRuns(instruction)) return;
    const RegisterSet& written = flow_.UseAt(at).written;
    for (AtWork& one : state.all()) {
      const Instruction& other = flow_.instructions()[one.at];
      one.guarded &=
          !(other.format->uniform_guard ? written.uniform_predicates[other.guard] : written.predicates[other.guard]);
    }
    const AtWork own{at, instruction.control.write_barrier < kScoreboards,
                     instruction.control.read_barrier < kScoreboards,
                     instruction.guard != kTrue && !written.predicates[instruction.guard]};
    if (own.writing || own.reading) state.Put(own);
  }

  Status CheckOne(std::uint32_t at, const InFlight& state) const {
    const RegisterUse& use = flow_.UseAt(at);
    const Instruction& instruction = flow_.instructions()[at];
    const Unit unit = UnitOf(instruction);
    for (const AtWork& one : state.all()) {
      const Instruction& other = flow_.instructions()[one.at];
      if (one.guarded && HaveOppositeGuards(instruction, other)) continue;
      const Unit its = UnitOf(other);
      const RegisterUse& theirs = flow_.UseAt(one.at);
      const RegisterSet read = use.read & theirs.written, written = use.written & theirs.written;
      const bool after = unit == its && unit != Unit::kNone && unit != Unit::kMemory;
      // The table knows textures' sources by their greatest length alone.
      if (one.writing && !read.none() && !(after && unit == Unit::kTexture)) return Broken(at, read, one.at, "written");
      if (one.writing && !written.none() && !after) return Broken(at, written, one.at, "written");
      RegisterSet early;  // predicates and uniform registers are read when an instruction issues
      early.general = use.written.general & theirs.read.general;
      if (one.reading && !early.none() && !ShareMemoryPipe(unit, its) && !after)
        return Broken(at, early, one.at, "read");
    }
    return {};
  }

  Error Broken(std::uint32_t at, const RegisterSet& registers, std::uint32_t by, const std::string& how) const {
    return Error{TextAt(at) + " does not wait for " + registers.text() + ", to be " + how + " " + TextAt(by)};
  }
  std::string TextAt(std::uint32_t at) const {
    char text[32];
    std::snprintf(text, sizeof text, "at 0x%zx: ", at * kWordBytes);
    return text + Text(flow_.instructions()[at], at * kWordBytes);
  }

  const FlowGraph& flow_;
  std::vector<bool> returns_{};
  std::vector<Context> contexts_{{}};
  std::map<Place, std::uint32_t> called_{};
  std::map<Place, InFlight> before_{};  ///< places that control comes to from elsewhere
  std::set<Place> open_{};              ///< those from which it has to be followed again
};

}  // namespace

Status CheckControl(const FlowGraph& flow) { return ControlCheck(flow).Check(); }

}  // namespace gridloom::machine
