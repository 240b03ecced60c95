#include "rewriter/machine/stalls.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/machine/print.h"

namespace gridloom::machine {
namespace {

RegisterSet Common(RegisterSet a, const RegisterSet& b) {
  a.general &= b.general;
  a.uniform &= b.uniform;
  a.predicates &= b.predicates;
  a.uniform_predicates &= b.uniform_predicates;
  return a;
}

bool HasGuard(const Instruction& instruction) { return instruction.guard != kTrue || instruction.guard_negated; }

/// The ways from one instruction on.
class Ways {
 public:
  Ways(const FlowGraph& flow, std::uint32_t from, unsigned most, const std::function<void(const FixedUse&)>& visit)
      : flow_(flow), from_(from), most_(most), visit_(visit) {}

  void Follow() {
    Step({from_, 0, false, flow_.UseAt(from_).written});
    while (!open_.empty()) {
      const Place place = open_.back();
      open_.pop_back();
      Visit(place);
    }
  }

 private:
  struct Place {
    std::uint32_t at = 0;
    unsigned cycles = 0;
    bool jumped = false;
    RegisterSet registers{};
  };

  /// On to what follows an instruction.
  void Step(const Place& place) {
    const Instruction& instruction = flow_.instructions()[place.at];
    const Flow flow = instruction.format->flow;
    if (flow != Flow::kNext && flow != Flow::kBranch && flow != Flow::kExit) return;
    const unsigned cycles = place.cycles + std::max<unsigned>(instruction.control.stall, 1);
    if (cycles > most_) return;
    for (const std::uint32_t next : flow_.Next(place.at)) {
      const auto found = seen_.find(next);
      if (found != seen_.end() && found->second <= cycles) continue;
      seen_[next] = cycles;
      open_.push_back({next, cycles, place.jumped || next != place.at + 1, place.registers});
    }
  }

  void Visit(Place place) {
    const Instruction& instruction = flow_.instructions()[place.at];
    const RegisterUse& use = flow_.UseAt(place.at);
    const Instruction& writer = flow_.instructions()[from_];
    const bool other_lanes =
        writer.guard != kTrue && writer.guard == instruction.guard && writer.guard_negated != instruction.guard_negated;
    const RegisterSet read = Common(place.registers, use.read);
    if (!read.none() && !other_lanes) visit_({from_, place.at, read, place.cycles, place.jumped});
    if (!HasGuard(instruction)) place.registers -= use.written;
    if (!place.registers.none()) Step(place);
  }

  const FlowGraph& flow_;
  const std::uint32_t from_;
  const unsigned most_;
  const std::function<void(const FixedUse&)>& visit_;
  std::vector<Place> open_{};
  std::map<std::uint32_t, unsigned> seen_{};
};

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name.substr(0, name.find('.'))) != names.end();
}

/// Without a scoreboard all the same: a later one of the unit, which takes them in order, has it.
bool TakesAsLongAsItTakes(std::string_view name) {
  return name.starts_with("LD") || name.starts_with("ATOM") || name.starts_with("T") ||
         IsOneOf(name,
                 {"SHFL", "S2R", "S2UR", "R2UR", "MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "B2R"});
}

constexpr unsigned kLongStall = 12;

/// Whether the compiler keeps what it says that it keeps.
class KeptOperands {
 public:
  explicit KeptOperands(const FlowGraph& flow) : flow_(flow) {}

  Status Check(std::uint32_t at) const {
    const std::uint8_t kept = flow_.instructions()[at].control.reuse;
    for (std::uint8_t slot = 0; kept >> slot != 0; ++slot) {
      if ((kept >> slot & 1) != 0) GL_TRY_STATUS(CheckSlot(at, slot));
    }
    return {};
  }

 private:
  static constexpr unsigned kNone = 256;

  static unsigned RegisterIn(const Instruction& instruction, const Operand& operand, std::uint8_t slot) {
    for (const Operand& part : operand.parts) {
      if (const unsigned found = RegisterIn(instruction, part, slot); found != kNone) return found;
    }
    const bool own = operand.reuse == slot && operand.kind == OperandKind::kRegister;
    return own ? static_cast<unsigned>(instruction.Value(operand.value)) : kNone;
  }
  static unsigned RegisterIn(const Instruction& instruction, std::uint8_t slot) {
    for (const Operand& operand : instruction.format->operands) {
      if (const unsigned found = RegisterIn(instruction, operand, slot); found != kNone) return found;
    }
    return kNone;
  }

  Status CheckSlot(std::uint32_t at, std::uint8_t slot) const {
    const auto all = flow_.instructions();
    const unsigned kept = RegisterIn(all[at], slot);
    // What the last bit of sums and comparisons of halves and of doubles is for, is not known.
    if (slot == 2 && IsOneOf(all[at].format->name, {"DADD", "DSETP", "HADD2", "HSET2", "HSETP2"})) return {};
    if (kept == kNone || kept == kZeroRegister) return Error{" keeps an operand that is no register"};
    for (std::uint32_t next = at; next < all.size(); ++next) {
      if (next != at && RegisterIn(all[next], slot) != kNone) return {};
      if (flow_.UseAt(next).written.general[kept]) return Error{" keeps a register that is written before it is read"};
      if (all[next].format->flow != Flow::kNext) return Error{" keeps a register over a branch"};
    }
    return Error{" keeps a register that nobody reads"};
  }

  const FlowGraph& flow_;
};

Error Broken(const FlowGraph& flow, std::uint32_t at, const std::string& what) {
  char text[32];
  std::snprintf(text, sizeof text, "at 0x%zx: ", at * kWordBytes);
  return Error{text + Text(flow.instructions()[at], at * kWordBytes) + what};
}

}  // namespace

unsigned LeastCycles(const Instruction& from, const Instruction& to, const RegisterSet& registers, unsigned sm) {
  constexpr unsigned kArithmetic = 4, kUniform = 2;
  const std::string_view name = from.format->name;
  if (TakesAsLongAsItTakes(name)) return 0;
  if (registers.uniform.any() || registers.uniform_predicates.any()) return kUniform;
  if (registers.predicates.any()) {
    // The guard is looked at before the instruction issues.
    const bool guard = !to.format->uniform_guard && to.guard != kTrue && registers.predicates[to.guard];
    if (guard || to.format->flow != Flow::kNext) return sm < 80 ? 12 : 13;
    return kArithmetic;
  }
  if (IsOneOf(name, {"DADD", "DMUL", "DFMA"})) return sm < 80 ? 12 : sm < 90 ? 10 : 6;
  // On sm_90 products have their addends and give their results earlier than others.
  const bool product = sm >= 90 && IsOneOf(to.format->name, {"IMAD"});
  if (product && IsOneOf(name, {"IMAD"})) return 2;
  return product || (sm >= 90 && name.starts_with("IMAD.WIDE")) ? 3 : kArithmetic;
}

Status CheckStalls(const FlowGraph& flow, unsigned sm) {
  constexpr unsigned kMost = 14;
  std::optional<Error> broken;
  VisitFixedUses(flow, kMost, [&](const FixedUse& use) {
    const Instruction& from = flow.instructions()[use.from];
    const unsigned least = LeastCycles(from, flow.instructions()[use.to], use.registers, sm);
    if (broken || use.cycles >= least) return;
    broken = Broken(flow, use.to,
                    " uses " + use.registers.text() + " " + std::to_string(use.cycles) + " cycles after " +
                        Broken(flow, use.from, "").message);
  });
  return broken ? Status(*broken) : Status();
}

Status CheckHints(const FlowGraph& flow) {
  const KeptOperands kept(flow);
  for (std::uint32_t at = 0; at < flow.instructions().size(); ++at) {
    const Control& control = flow.instructions()[at].control;
    if (control.yield && (control.stall == 0 || control.stall >= kLongStall))
      return Broken(flow, at, " stalls for " + std::to_string(control.stall) + " cycles and does not yield");
    if (const Status status = kept.Check(at); !status.ok()) return Broken(flow, at, status.error().message);
  }
  return {};
}

void VisitFixedUses(const FlowGraph& flow, unsigned most, const std::function<void(const FixedUse&)>& visit) {
  for (std::uint32_t at = 0; at < flow.instructions().size(); ++at) {
    const Instruction& instruction = flow.instructions()[at];
    if (instruction.control.write_barrier != kNoBarrier || flow.UseAt(at).written.none()) continue;
    Ways(flow, at, most, visit).Follow();
  }
}

}  // namespace gridloom::machine
