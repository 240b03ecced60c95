#include "tests/sim/exec/random_meeting.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

namespace gridloom::test {
namespace {

template <typename F>
void ForLanes(std::uint32_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

std::string N(std::uint64_t number) { return std::to_string(number); }

}  // namespace

struct RandomMeeting::Lane {
  std::uint32_t number = 0;
  std::size_t at = 0;  ///< the step that comes next
  bool ended = false;
  std::uint32_t waits_for = 0;  ///< member mask of the sync that it has arrived at, 0: it has not
  std::array<std::uint32_t, kValues> value{};
  std::vector<std::uint32_t> masks, counters;
};

// ---------------------------------------------------------------------------------------------------------------------
// Making one
// ---------------------------------------------------------------------------------------------------------------------

RandomMeeting::RandomMeeting(std::uint64_t seed) : random_(seed) {
  Add(Kind::kMask, 0, 0, 0, ~0u);
  for (unsigned part = 1 + Pick(3); part != 0; --part) EmitWhole(6, 0, 0);
}

void RandomMeeting::Add(Kind kind, unsigned a, unsigned b, unsigned c, std::uint32_t constant) {
  steps_.push_back({.kind = kind, .a = a, .b = b, .c = c, .constant = constant});
}

void RandomMeeting::Compute() {
  Add(Kind::kCompute, Pick(kValues), Pick(kValues), 0, static_cast<std::uint32_t>(random_()) | 1);
}

unsigned RandomMeeting::AddCondition(bool by_lane) {
  conditions_.push_back({by_lane, Pick(kValues), Pick(24), static_cast<std::uint32_t>(random_())});
  return static_cast<unsigned>(conditions_.size() - 1);
}

/// A mask of those lanes of `mask` for which the condition says the same as for us.
unsigned RandomMeeting::AddPart(unsigned mask, unsigned condition) {
  Add(Kind::kMaskPart, masks_, mask, condition);
  return masks_++;
}

// Code that all lanes of a mask come to: a protocol of up to that many events, or their parts' own ones. Few kinds in
// one protocol, so that instructions that may not meet stand beside ones that must.
void RandomMeeting::EmitWhole(unsigned longest, unsigned mask, unsigned depth) {
  constexpr unsigned kDeepest = 3;
  if (depth < kDeepest && Pick(3) == 0)
    return Pick(2) == 0 ? EmitParts(mask, depth + 1) : EmitNarrowing(mask, depth + 1);
  unsigned masks[] = {mask, mask};
  if (Pick(3) == 0) masks[1] = AddPart(mask, AddCondition(Pick(2) == 0));
  const unsigned first = Pick(static_cast<unsigned>(Sync::kCount)), kinds = 1 + Pick(4);
  Protocol protocol(1 + Pick(longest));
  for (Event& event : protocol)
    event = {static_cast<Sync>((first + Pick(kinds)) % static_cast<unsigned>(Sync::kCount)), masks[Pick(2)]};
  const std::size_t once = protocol.size(), times = Pick(2) == 0 ? 1 : 2 + Pick(3);
  for (std::size_t i = once; i < once * times; ++i) protocol.push_back(protocol[i - once]);
  Emit(protocol, depth);
}

void RandomMeeting::Emit(const Protocol& protocol, unsigned depth) {
  constexpr unsigned kDeepest = 4;
  if (Pick(2) == 0) Compute();
  if (depth < kDeepest) {
    switch (Pick(8)) {
      case 0:
      case 1:
      case 2: return EmitArms(protocol, depth + 1);
      case 3:
        if (Period(protocol) < protocol.size()) return EmitTwoLoops(protocol, depth + 1);
        break;
      case 4: EmitExit(); break;
      default: break;
    }
  }
  if (protocol.size() > 1 && Pick(2) == 0) {
    const auto middle = protocol.begin() + 1 + Pick(static_cast<unsigned>(protocol.size() - 1));
    Emit({protocol.begin(), middle}, depth);
    return Emit({middle, protocol.end()}, depth);
  }
  // Lanes that meet have to agree on the instruction and the mask only: all else is the place's own.
  for (const auto& [sync, mask] : protocol) {
    steps_.push_back({.kind = Kind::kSync,
                      .a = Pick(kValues),
                      .b = mask,
                      .c = Pick(kValues),
                      .constant = static_cast<std::uint32_t>(random_()),
                      .sync = sync});
    if (Pick(3) == 0) Compute();
  }
}

// Both arms of an if, one of which may do something else before.
void RandomMeeting::EmitArms(const Protocol& protocol, unsigned depth) {
  const unsigned other = labels_++, join = labels_++, condition = AddCondition(Pick(2) == 0);
  Add(Kind::kUnless, other, condition);
  Emit(protocol, depth);
  Add(Kind::kJump, join);
  Add(Kind::kLabel, other);
  Compute();
  Emit(protocol, depth);
  Add(Kind::kLabel, join);
}

// The lanes of a mask in two parts, which follow protocols of their own.
void RandomMeeting::EmitParts(unsigned mask, unsigned depth) {
  const unsigned other = labels_++, join = labels_++, condition = AddCondition(Pick(2) == 0),
                 part = AddPart(mask, condition);
  Add(Kind::kUnless, other, condition);
  EmitWhole(3, part, depth);
  Add(Kind::kJump, join);
  Add(Kind::kLabel, other);
  EmitWhole(3, part, depth);
  Add(Kind::kLabel, join);
}

/// How many events there are until they repeat.
std::size_t RandomMeeting::Period(const Protocol& protocol) {
  for (std::size_t period = 1; period < protocol.size(); ++period) {
    if (protocol.size() % period == 0 && std::equal(protocol.begin() + period, protocol.end(), protocol.begin()))
      return period;
  }
  return protocol.size();
}

// What the protocol repeats, each lane a number of times of its own in the first loop, the rest in the second.
void RandomMeeting::EmitTwoLoops(const Protocol& protocol, unsigned depth) {
  const auto trips = static_cast<std::uint32_t>(protocol.size() / Period(protocol));
  const Protocol once(protocol.begin(), protocol.begin() + Period(protocol));
  const unsigned first = counters_++, rest = counters_++;
  Add(Kind::kTrips, first, Pick(kValues), 0, trips + 1);
  Add(Kind::kTripsLeft, rest, first, 0, trips);
  for (const unsigned counter : {first, rest}) {
    const unsigned head = labels_++, end = labels_++;
    Add(Kind::kLabel, head);
    Add(Kind::kIfOut, end, counter);
    Emit(once, depth);
    Add(Kind::kJump, head);
    Add(Kind::kLabel, end);
  }
}

// A loop that goes on for those who are left, with a mask of them.
void RandomMeeting::EmitNarrowing(unsigned mask, unsigned depth) {
  const unsigned head = labels_++, end = labels_++, counter = counters_++, all = AddCondition(true);
  conditions_[all].constant = ~0u;
  Add(Kind::kTrips, counter, Pick(kValues), 0, 2 + Pick(4));
  const unsigned left = AddPart(mask, all);
  Add(Kind::kLabel, head);
  Add(Kind::kNarrow, end, left, counter);
  EmitWhole(2, left, depth + 1);
  Add(Kind::kJump, head);
  Add(Kind::kLabel, end);
}

// Some lanes end. They do not hold back the others, whose masks still name them.
void RandomMeeting::EmitExit() {
  const unsigned skip = labels_++, condition = AddCondition(true);
  conditions_[condition].constant = 1u << Pick(32) | 1u << Pick(32);
  Add(Kind::kUnless, skip, condition);
  Add(Kind::kExit);
  Add(Kind::kLabel, skip);
}

// ---------------------------------------------------------------------------------------------------------------------
// As PTX
// ---------------------------------------------------------------------------------------------------------------------

std::string RandomMeeting::ConditionText(const Condition& condition) const {
  const std::string word = condition.by_lane ? N(condition.constant) : "%v" + N(condition.a);
  const std::string place = condition.by_lane ? "%lane" : N(condition.place);
  return "  mov.u32 %t0, " + word + ";\n  shr.u32 %t0, %t0, " + place +
         ";\n  and.b32 %t0, %t0, 1;\n  setp.ne.u32 %p, %t0, 0;\n";
}

std::string RandomMeeting::SyncText(const Step& step) const {
  const std::string in = "%v" + N(step.c), mask = "%m" + N(step.b);
  const std::string bit = N(step.constant % 24), by = N(1 + step.constant % 15);
  const auto vote = [&](const char* mode) {
    return "  shr.u32 %t0, " + in + ", " + bit + ";\n  and.b32 %t0, %t0, 1;\n  setp.ne.u32 %q, %t0, 0;\n  vote.sync." +
           mode + " %q, %q, " + mask + ";\n  selp.u32 %t1, 1, 0, %q;\n";
  };
  // What a lane that is no member gives is undefined: taken from members only.
  const auto shuffle = [&](const std::string& mode, const std::string& source, const std::string& b,
                           const std::string& c) {
    return source + "  shfl.sync." + mode + ".b32 %t1|%q, " + in + ", " + b + ", " + c + ", " + mask +
           ";\n  selp.u32 %t2, %t2, %lane, %q;\n  shr.u32 %t2, " + mask +
           ", %t2;\n  and.b32 %t2, %t2, 1;\n  setp.ne.u32 %q, %t2, 0;\n" + "  selp.u32 %t1, %t1, 0, %q;\n";
  };
  const auto few = "  and.b32 %t0, " + in + ", " + N(step.constant % 4) + ";\n";
  const auto redux = [&](const char* op) {
    return std::string("  redux.sync.") + op + " %t1, " + in + ", " + mask + ";\n";
  };
  switch (step.sync) {
    case Sync::kBarrier: return "  bar.warp.sync " + mask + ";\n  mov.u32 %t1, 1;\n";
    case Sync::kElect:
      return "  elect.sync %t1|%q, " + mask + ";\n  selp.u32 %t0, 64, 0, %q;\n  add.u32 %t1, %t1, %t0;\n";
    case Sync::kBallot: {
      std::string text = vote("ballot.b32");
      const auto at = text.find("ballot.b32 %q,");
      text.replace(at, 14, "ballot.b32 %t1,");
      return text.substr(0, text.find("  selp"));
    }
    case Sync::kAll: return vote("all.pred");
    case Sync::kAny: return vote("any.pred");
    case Sync::kUni: return vote("uni.pred");
    case Sync::kShuffleUp: return shuffle("up", "  sub.u32 %t2, %lane, " + by + ";\n", by, "0");
    case Sync::kShuffleDown: return shuffle("down", "  add.u32 %t2, %lane, " + by + ";\n", by, "31");
    case Sync::kShuffleBfly: return shuffle("bfly", "  xor.b32 %t2, %lane, " + by + ";\n", by, "31");
    case Sync::kShuffleIdx:  // in segments of 16
      return "  and.b32 %t0, %v" + N(step.constant % kValues) + ", 15;\n" +
             shuffle("idx", "  and.b32 %t2, %lane, 16;\n  or.b32 %t2, %t2, %t0;\n", "%t0", "4127");
    case Sync::kMatchAny: return few + "  match.any.sync.b32 %t1, %t0, " + mask + ";\n";
    case Sync::kMatchAll: return few + "  match.all.sync.b32 %t1|%q, %t0, " + mask + ";\n  @%q add.u32 %t1, %t1, 5;\n";
    case Sync::kMatchAny64: return few + "  mov.b64 %w, {%t0, %t0};\n  match.any.sync.b64 %t1, %w, " + mask + ";\n";
    case Sync::kReduxAdd: return redux("add.u32");
    case Sync::kReduxMin: return redux("min.s32");
    case Sync::kReduxMax: return redux("max.u32");
    case Sync::kReduxXor: return redux("xor.b32");
    case Sync::kCount: break;
  }
  std::abort();
}

std::string RandomMeeting::Text(const Step& step) const {
  const std::string a = N(step.a), label = "L" + N(step.a);
  switch (step.kind) {
    case Kind::kCompute:
      return "  mad.lo.u32 %v" + a + ", %v" + a + ", " + N(step.constant) + ", %v" + N(step.b) + ";\n";
    case Kind::kSync: return SyncText(step) + "  mad.lo.u32 %v" + a + ", %v" + a + ", 31, %t1;\n";
    case Kind::kMask: return "  mov.u32 %m" + a + ", " + N(step.constant) + ";\n";
    case Kind::kMaskPart: {
      const std::string m = "%m" + a, from = "%m" + N(step.b);
      return ConditionText(conditions_[step.c]) + "  vote.sync.ballot.b32 %t1, %p, " + from +
             ";\n  not.b32 %t0, %t1;\n  and.b32 %t0, %t0, " + from + ";\n  selp.b32 " + m + ", %t1, %t0, %p;\n";
    }
    case Kind::kTrips: return "  rem.u32 %c" + a + ", %v" + N(step.b) + ", " + N(step.constant) + ";\n";
    case Kind::kTripsLeft: return "  sub.u32 %c" + a + ", " + N(step.constant) + ", %c" + N(step.b) + ";\n";
    case Kind::kLabel: return label + ":\n";
    case Kind::kJump: return "  bra " + label + ";\n";
    case Kind::kUnless: return ConditionText(conditions_[step.b]) + "  @!%p bra " + label + ";\n";
    case Kind::kIfOut: {
      const std::string c = "%c" + N(step.b);
      return "  setp.eq.u32 %p, " + c + ", 0;\n  @%p bra " + label + ";\n  sub.u32 " + c + ", " + c + ", 1;\n";
    }
    case Kind::kNarrow: {
      const std::string m = "%m" + N(step.b), c = "%c" + N(step.c);
      return "  setp.ne.u32 %p, " + c + ", 0;\n  vote.sync.ballot.b32 " + m + ", %p, " + m + ";\n  @!%p bra " + label +
             ";\n  sub.u32 " + c + ", " + c + ", 1;\n";
    }
    case Kind::kExit: return "  bra STORE;\n";
  }
  std::abort();
}

std::string RandomMeeting::Ptx() const {
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry random_meeting(.param .u64 out, .param .u32 "
      "seed)\n{\n"
      "  .reg .b32 %v<4>, %t<3>, %lane, %me;\n  .reg .b64 %rd<3>, %w;\n  .reg .pred %p, %q;\n  .reg .b32 %m<" +
      N(masks_) + ">, %c<" + N(counters_ + 1) +
      ">;\n  mov.u32 %me, %tid.x;\n  mov.u32 %lane, %laneid;\n  ld.param.u32 %t0, [seed];\n  mad.lo.u32 %v0, %me, "
      "2654435761, %t0;\n";
  for (unsigned i = 1; i < kValues; ++i)
    text += "  mad.lo.u32 %v" + N(i) + ", %v" + N(i - 1) + ", 1664525, 1013904223;\n";
  for (const Step& step : steps_) text += Text(step);
  return text +
         "STORE:\n  ld.param.u64 %rd0, [out];\n  mul.wide.u32 %rd1, %me, 16;\n  add.u64 %rd0, %rd0, %rd1;\n"
         "  st.global.v4.u32 [%rd0], {%v0, %v1, %v2, %v3};\n  ret;\n}\n";
}

// ---------------------------------------------------------------------------------------------------------------------
// On the host
// ---------------------------------------------------------------------------------------------------------------------

bool RandomMeeting::Holds(const Condition& condition, const Lane& lane) const {
  return condition.by_lane ? condition.constant >> lane.number & 1 : lane.value[condition.a] >> condition.place & 1;
}

// Runs `lane` to its next .sync instruction (true) or its end.
bool RandomMeeting::RunToSync(Lane& lane) const {
  const auto go = [&](unsigned label) {
    for (lane.at = 0; steps_[lane.at].kind != Kind::kLabel || steps_[lane.at].a != label;) ++lane.at;
  };
  while (lane.at < steps_.size()) {
    const Step& step = steps_[lane.at];
    if (step.kind == Kind::kSync || step.kind == Kind::kMaskPart || step.kind == Kind::kNarrow) {
      lane.waits_for = lane.masks[step.b];
      return true;
    }
    ++lane.at;
    switch (step.kind) {
      case Kind::kCompute: lane.value[step.a] = lane.value[step.a] * step.constant + lane.value[step.b]; break;
      case Kind::kMask: lane.masks[step.a] = step.constant; break;
      case Kind::kTrips: lane.counters[step.a] = lane.value[step.b] % step.constant; break;
      case Kind::kTripsLeft: lane.counters[step.a] = step.constant - lane.counters[step.b]; break;
      case Kind::kJump: go(step.a); break;
      case Kind::kUnless:
        if (!Holds(conditions_[step.b], lane)) go(step.a);
        break;
      case Kind::kIfOut:
        if (lane.counters[step.b] == 0) {
          go(step.a);
        } else {
          --lane.counters[step.b];
        }
        break;
      case Kind::kExit: lane.at = steps_.size(); break;
      default: break;
    }
  }
  lane.ended = true;
  return false;
}

// All of `company` execute their .sync instructions.
void RandomMeeting::Meet(std::vector<Lane>& lanes, std::uint32_t company) const {
  const auto step_of = [&](std::uint32_t lane) -> const Step& { return steps_[lanes[lane].at]; };
  // What each brings: of a ballot its bit, else a word.
  std::array<std::uint32_t, 32> in{};
  ForLanes(company, [&](std::uint32_t lane) {
    const Step& step = step_of(lane);
    const Lane& me = lanes[lane];
    if (step.kind == Kind::kMaskPart) {
      in[lane] = Holds(conditions_[step.c], me);
    } else if (step.kind == Kind::kNarrow) {
      in[lane] = me.counters[step.c] != 0;
    } else if (step.sync >= Sync::kBallot && step.sync <= Sync::kUni) {
      in[lane] = me.value[step.c] >> step.constant % 24 & 1;
    } else if (step.sync >= Sync::kMatchAny && step.sync <= Sync::kMatchAny64) {
      in[lane] = me.value[step.c] & step.constant % 4;
    } else {
      in[lane] = me.value[step.c];
    }
  });
  std::uint32_t ballot = 0;
  ForLanes(company, [&](std::uint32_t lane) { ballot |= (in[lane] & 1) << lane; });
  const auto same_as = [&](std::uint32_t value) {
    std::uint32_t same = 0;
    ForLanes(company, [&](std::uint32_t lane) { same |= static_cast<std::uint32_t>(in[lane] == value) << lane; });
    return same;
  };
  const auto redux = [&](auto op) {
    std::uint32_t total = in[static_cast<unsigned>(std::countr_zero(company))];
    ForLanes(company & (company - 1), [&](std::uint32_t lane) { total = op(total, in[lane]); });
    return total;
  };
  const std::array<std::array<std::uint32_t, kValues>, 32> values = [&] {
    std::array<std::array<std::uint32_t, kValues>, 32> all{};
    ForLanes(company, [&](std::uint32_t lane) { all[lane] = lanes[lane].value; });
    return all;
  }();
  const auto get = [&](std::uint32_t lane, const Step& step) -> std::uint32_t {
    const std::uint32_t by = 1 + step.constant % 15;
    const auto from = [&](std::uint32_t source, bool valid) {
      return company >> (valid ? source : lane) & 1 ? in[valid ? source : lane] : 0;
    };
    switch (step.sync) {
      case Sync::kBarrier: return 1;
      case Sync::kElect: {
        const auto leader = static_cast<std::uint32_t>(std::countr_zero(company));
        return leader + (leader == lane ? 64 : 0);
      }
      case Sync::kBallot: return ballot;
      case Sync::kAll: return ballot == company;
      case Sync::kAny: return ballot != 0;
      case Sync::kUni: return ballot == company || ballot == 0;
      case Sync::kShuffleUp: return from(lane - by, lane >= by);
      case Sync::kShuffleDown: return from(lane + by, lane + by <= 31);
      case Sync::kShuffleBfly: return from(lane ^ by, true);
      case Sync::kShuffleIdx: return from((lane & 16) | (values[lane][step.constant % kValues] & 15), true);
      case Sync::kMatchAny:
      case Sync::kMatchAny64: return same_as(in[lane]);
      case Sync::kMatchAll: return same_as(in[lane]) == company ? company + 5 : 0;
      case Sync::kReduxAdd: return redux([](std::uint32_t a, std::uint32_t b) { return a + b; });
      case Sync::kReduxMin:
        return redux([](std::uint32_t a, std::uint32_t b) {
          return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
        });
      case Sync::kReduxMax: return redux([](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; });
      case Sync::kReduxXor: return redux([](std::uint32_t a, std::uint32_t b) { return a ^ b; });
      case Sync::kCount: break;
    }
    std::abort();
  };
  ForLanes(company, [&](std::uint32_t number) {
    Lane& lane = lanes[number];
    const Step& step = step_of(number);
    ++lane.at;
    if (step.kind == Kind::kMaskPart) {
      lane.masks[step.a] = in[number] ? ballot : ~ballot & lane.masks[step.b];
    } else if (step.kind == Kind::kNarrow) {
      lane.masks[step.b] = ballot;
      if (in[number] != 0) {
        --lane.counters[step.c];
      } else {
        for (lane.at = 0; steps_[lane.at].kind != Kind::kLabel || steps_[lane.at].a != step.a;) ++lane.at;
      }
    } else {
      lane.value[step.a] = lane.value[step.a] * 31 + get(number, step);
    }
    lane.waits_for = 0;
  });
}

std::vector<std::array<std::uint32_t, RandomMeeting::kValues>> RandomMeeting::RunWarp(std::uint32_t first_tid,
                                                                                      std::uint32_t count,
                                                                                      std::uint32_t seed) const {
  std::vector<Lane> lanes(count);
  std::uint32_t alive = 0;
  for (std::uint32_t number = 0; number < count; ++number) {
    Lane& lane = lanes[number];
    lane.number = number;
    lane.masks.resize(masks_);
    lane.counters.resize(counters_ + 1);
    lane.value[0] = (first_tid + number) * 2654435761u + seed;
    for (unsigned i = 1; i < kValues; ++i) lane.value[i] = lane.value[i - 1] * 1664525u + 1013904223u;
    alive |= 1u << number;
  }
  const auto kind = [&](const Lane& lane) {
    const Step& step = steps_[lane.at];
    return step.kind == Kind::kSync ? step.sync : Sync::kBallot;
  };
  while (alive != 0) {
    ForLanes(alive, [&](std::uint32_t lane) {
      if (lanes[lane].waits_for == 0 && !RunToSync(lanes[lane])) alive &= ~(1u << lane);
    });
    bool met = false;
    for (std::uint32_t first = 0; first < count; ++first) {
      if ((alive >> first & 1) == 0 || lanes[first].waits_for == 0) continue;
      std::uint32_t company = 0;
      ForLanes(alive, [&](std::uint32_t lane) {
        const bool same = lanes[lane].waits_for == lanes[first].waits_for && kind(lanes[lane]) == kind(lanes[first]);
        company |= static_cast<std::uint32_t>(same) << lane;
      });
      if ((lanes[first].waits_for & alive & ~company) != 0) continue;
      Meet(lanes, company);
      met = true;
    }
    if (!met && alive != 0) return {};  // a deadlock: the protocol was not kept
  }
  std::vector<std::array<std::uint32_t, kValues>> out;
  for (const Lane& lane : lanes) out.push_back(lane.value);
  return out;
}

}  // namespace gridloom::test
