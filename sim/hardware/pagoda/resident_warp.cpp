#include "sim/hardware/pagoda/resident_warp.h"

#include <algorithm>
#include <bit>
#include <span>

#include "rewriter/support/check.h"

namespace gridloom::hardware::resident {
namespace {

/// Calculates with 32 or 64 bits; shifts by more than there are give 0, as PTX has it.
std::uint64_t Calculate(const Step& step, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const auto narrow = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const std::uint32_t bits = step.wide ? 64 : 32;
  switch (step.op) {
    case Op::kMove: return a;
    case Op::kAdd: return a + b;
    case Op::kSubtract: return a - b;
    case Op::kMultiply: return a * b;
    case Op::kMultiplyWide: return std::uint64_t{narrow(a)} * narrow(b);
    case Op::kMultiplyAdd: return a * b + c;
    case Op::kDivide: return narrow(b) == 0 ? 0xFFFFFFFF : narrow(a) / narrow(b);
    case Op::kMinimum: return std::min(narrow(a), narrow(b));
    case Op::kAnd: return a & b;
    case Op::kOr: return a | b;
    case Op::kXor: return a ^ b;
    case Op::kNot: return ~a;
    case Op::kSelect: return c != 0 ? a : b;
    case Op::kExtractBits: return narrow(b) >= 32 ? 0 : narrow(a) >> narrow(b) & ((std::uint64_t{1} << narrow(c)) - 1);
    case Op::kShiftLeft: return narrow(b) >= bits ? 0 : a << narrow(b);
    case Op::kShiftRight: return narrow(b) >= bits ? 0 : (step.wide ? a : narrow(a)) >> narrow(b);
    case Op::kReverse: {
      std::uint32_t reversed = 0;
      for (std::uint32_t i = 0; i < 32; ++i) reversed |= (narrow(a) >> i & 1) << (31 - i);
      return reversed;
    }
    case Op::kLeadingZeros: return static_cast<std::uint32_t>(std::countl_zero(narrow(a)));
    case Op::kFindHighest:
      return narrow(a) == 0 ? 0xFFFFFFFF : static_cast<std::uint32_t>(std::bit_width(narrow(a))) - 1;
    case Op::kCountOnes: return static_cast<std::uint32_t>(std::popcount(narrow(a)));
    default: return 0;
  }
}

bool Holds(Comparison comparison, auto a, auto b) {
  switch (comparison) {
    case Comparison::kEqual: return a == b;
    case Comparison::kNotEqual: return a != b;
    case Comparison::kLess: return a < b;
    case Comparison::kLessEqual: return a <= b;
    case Comparison::kGreater: return a > b;
    case Comparison::kGreaterEqual: return a >= b;
  }
  return false;
}

}  // namespace

void ResidentMemory::CompareAndSwap(std::uint64_t, std::uint32_t, std::uint32_t) {
  GL_CHECK(false, "a resident kernel asks nobody");
}

LaneWords::LaneWords() { trace_.lanes.resize(kWords + trace::ScatteredLanes::kMostWords); }

std::uint64_t LaneWords::Add(std::span<const std::uint64_t> addresses) {
  if (next_ >= kWords) next_ = 0;
  const std::size_t at = next_;
  next_ += trace::PutLanes(addresses, trace_.lanes.data() + at);
  return at;
}

ResidentWarp::ResidentWarp(const ResidentCode& code, const ResidentPlace& place)
    : code_(code),
      place_(place),
      narrow_(code.narrow),
      wide_(code.wide),
      predicates_(code.predicates),
      groups_{{.block = 0, .lanes = ~0u}} {}

std::uint32_t ResidentWarp::FirstLane() const {
  const std::uint32_t lanes = running_ != 0 ? running_ : live_;
  return lanes == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(lanes));
}

/// Lanes that lag behind go first, so that those of a warp come together again where their ways do.
std::optional<std::size_t> ResidentWarp::Choose() const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!code_.blocks[groups_[g].block].meets || groups_[g].lanes == live_) return g;
  }
  return std::nullopt;
}

bool ResidentWarp::Execute(ResidentMemory& memory, LaneWords& words) {
  const auto chosen = Choose();
  if (!chosen) return false;
  const std::uint16_t block_number = groups_[*chosen].block;
  const ResidentBlock& block = code_.blocks[block_number];
  running_ = groups_[*chosen].lanes;
  visit_ = {.block = block_number, .mask = running_};
  accesses_.clear();
  called_.reset();
  slept_ns_ = 0;
  std::uint32_t left = running_;  // lanes that go on behind the block
  std::uint16_t branch = 0;
  std::uint32_t branches = 0;
  for (std::uint32_t i = 0; i < block.count; ++i) {
    const Step& step = code_.steps[block.first + i];
    const std::uint32_t lanes = running_ & Guarded(step);
    if (step.op == Op::kBranch) {
      branch = step.target;
      branches = lanes;
      left &= ~lanes;
    } else if (step.op == Op::kReturn) {
      live_ &= ~lanes;
      left &= ~lanes;
    } else {
      Run(step, lanes, memory, words);
    }
  }
  Group& group = groups_[*chosen];
  group = {.block = block.next, .lanes = left};
  if (branches != 0) groups_.push_back({.block = branch, .lanes = branches});
  Join();
  return true;
}

/// Lanes at the same place are one group; groups in the order of their places.
void ResidentWarp::Join() {
  std::erase_if(groups_, [](const Group& group) { return group.lanes == 0; });
  if (groups_.size() < 2) return;
  std::ranges::sort(groups_, {}, &Group::block);
  std::size_t last = 0;
  for (std::size_t g = 1; g < groups_.size(); ++g) {
    if (groups_[g].block == groups_[last].block) groups_[last].lanes |= groups_[g].lanes;
    else groups_[++last] = groups_[g];
  }
  groups_.resize(last + 1);
}

void ResidentWarp::Answer(std::uint32_t value) {
  PutIn(narrow_[asks_->destination], asks_->lanes, false, [&](std::uint32_t) { return value; });
  asks_.reset();
}

std::uint32_t ResidentWarp::Guarded(const Step& step) const {
  if (step.guard == Step::kNoPredicate) return ~0u;
  return step.negated ? ~predicates_[step.guard] : predicates_[step.guard];
}

std::uint64_t ResidentWarp::ValueOfSpecial(Special special, std::uint32_t lane) const {
  switch (special) {
    case Special::kLane: return lane;
    case Special::kThread: return place_.warp * kLanes + lane;
    case Special::kThreads: return place_.threads;
    case Special::kBlock: return place_.block;
    case Special::kLanesBelow: return (1u << lane) - 1;
  }
  return 0;
}

bool ResidentWarp::IsUniform(const Source& source) const {
  switch (source.kind) {
    case Source::Kind::kNarrow: return narrow_[source.number].uniform;
    case Source::Kind::kWide: return wide_[source.number].uniform;
    case Source::Kind::kPredicate: {
      const std::uint32_t held = predicates_[source.number] & live_;
      return held == 0 || held == live_;
    }
    case Source::Kind::kSpecial: return source.special == Special::kThreads || source.special == Special::kBlock;
    default: return true;
  }
}

std::uint64_t ResidentWarp::Value(const Source& source, std::uint32_t lane) const {
  switch (source.kind) {
    case Source::Kind::kNarrow: return At(narrow_[source.number], lane);
    case Source::Kind::kWide: return At(wide_[source.number], lane);
    case Source::Kind::kPredicate: return predicates_[source.number] >> lane & 1;
    case Source::Kind::kImmediate: return source.value;
    case Source::Kind::kSpecial: return ValueOfSpecial(source.special, lane);
    case Source::Kind::kNone: break;
  }
  return 0;
}

template <typename T, typename Of>
void ResidentWarp::PutIn(Register<T>& reg, std::uint32_t lanes, bool uniform, Of of) {
  if (uniform && (lanes & live_) == live_) {
    if (lanes == 0) return;
    reg.uniform = true;
    reg.lane[0] = static_cast<T>(of(static_cast<std::uint32_t>(std::countr_zero(lanes))));
    return;
  }
  if (reg.uniform) {
    reg.lane.fill(reg.lane[0]);
    reg.uniform = false;
  }
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    reg.lane[lane] = static_cast<T>(of(lane));
  }
}

template <typename Of>
void ResidentWarp::Put(const Step& step, std::uint32_t lanes, bool uniform, Of of) {
  if (step.predicate) PutPredicate(predicates_[step.destination], lanes, uniform, of);
  else if (step.wide) PutIn(wide_[step.destination], lanes, uniform, of);
  else PutIn(narrow_[step.destination], lanes, uniform, of);
}

template <typename Of>
void ResidentWarp::PutPredicate(std::uint32_t& predicate, std::uint32_t lanes, bool uniform, Of of) {
  std::uint32_t held = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if ((of(lane) & 1) != 0) held |= uniform ? lanes : 1u << lane;
    if (uniform) break;
  }
  predicate = (predicate & ~lanes) | held;
}

void ResidentWarp::Run(const Step& step, std::uint32_t lanes, ResidentMemory& memory, LaneWords& words) {
  switch (step.op) {
    case Op::kNothing: break;
    case Op::kSleep:
      if (lanes != 0) slept_ns_ = static_cast<std::uint32_t>(Value(step.a, FirstLane()));
      break;
    case Op::kCall:
      if (lanes != 0) called_ = step.target;
      break;
    case Op::kCompare: Compare(step, lanes); break;
    case Op::kBallot: {
      GL_CHECK(lanes == live_, "lanes of a resident kernel vote apart");
      const std::uint32_t vote = predicates_[step.a.number] & live_;
      Put(step, lanes, true, [&](std::uint32_t) { return vote; });
      break;
    }
    case Op::kParameter:
      Put(step, lanes, true, [&](std::uint32_t) { return (*place_.parameters)[step.target]; });
      break;
    case Op::kLoad:
    case Op::kStore:
    case Op::kCompareAndSwap:
    case Op::kAtomicAdd: Access(step, lanes, memory, words); break;
    default: Compute(step, lanes);
  }
}

void ResidentWarp::Compute(const Step& step, std::uint32_t lanes) {
  const bool uniform = IsUniform(step.a) && IsUniform(step.b) && IsUniform(step.c);
  Put(step, lanes, uniform, [&](std::uint32_t lane) {
    return Calculate(step, Value(step.a, lane), Value(step.b, lane), Value(step.c, lane));
  });
}

void ResidentWarp::Compare(const Step& step, std::uint32_t lanes) {
  const bool wide = step.a.kind == Source::Kind::kWide;
  Put(step, lanes, IsUniform(step.a) && IsUniform(step.b), [&](std::uint32_t lane) -> std::uint32_t {
    const std::uint64_t a = Value(step.a, lane), b = Value(step.b, lane);
    if (wide) return Holds(step.comparison, a, b);
    if (step.is_signed) return Holds(step.comparison, static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
    return Holds(step.comparison, static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
  });
}

/// Loads and stores of a warp happen at once; of additions to one word each sees those of the lanes below.
void ResidentWarp::Access(const Step& step, std::uint32_t lanes, ResidentMemory& memory, LaneWords& words) {
  trace::MemoryAccess access{.base = 0, .stride = 0, .mask = lanes};
  std::array<std::uint64_t, kLanes> addresses{};
  std::size_t count = 0;
  bool even = true;
  const auto first = static_cast<std::uint32_t>(lanes == 0 ? 0 : std::countr_zero(lanes));
  const auto address = [&](std::uint32_t lane) {
    return Value(step.a, lane) + static_cast<std::uint64_t>(step.offset);
  };
  const bool uniform = IsUniform(step.a);
  if (lanes != 0 && uniform) {
    access.base = address(first);
  } else if (lanes != 0) {
    std::uint32_t second = lanes & (lanes - 1);
    const auto next = static_cast<std::uint32_t>(std::countr_zero(second));
    const std::int64_t stride =
        second == 0 ? 0 : static_cast<std::int64_t>(address(next) - address(first)) / (next - first);
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      addresses[count++] = address(lane);
      even &= addresses[count - 1] == address(first) + static_cast<std::uint64_t>(stride * (lane - first));
    }
    access.base = address(first) - static_cast<std::uint64_t>(stride * first);
    access.stride = static_cast<std::int32_t>(stride);
    if (!even) {
      access.base = words.Add(std::span(addresses).first(count));
      access.stride = trace::MemoryAccess::kScattered;
    }
  }
  accesses_.push_back(access);
  if (lanes == 0) return;
  if (step.op == Op::kLoad) {
    Put(step, lanes, uniform, [&](std::uint32_t lane) { return memory.Load(step.shared, address(lane), step.bytes); });
    return;
  }
  if (step.op == Op::kCompareAndSwap) {
    GL_CHECK((lanes & (lanes - 1)) == 0, "several lanes of a resident kernel ask at once");
    asks_ = {step.destination, lanes};
    return memory.CompareAndSwap(address(first), static_cast<std::uint32_t>(Value(step.b, first)),
                                 static_cast<std::uint32_t>(Value(step.c, first)));
  }
  if (step.op == Op::kStore) {
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      memory.Store(step.shared, address(lane), step.bytes, Value(step.b, lane));
      if (uniform && IsUniform(step.b)) break;  // all of them the same
    }
    return;
  }
  Put(step, lanes, false, [&](std::uint32_t lane) {
    const std::uint32_t before = memory.Load(step.shared, address(lane), 4);
    memory.Store(step.shared, address(lane), 4, before + static_cast<std::uint32_t>(Value(step.b, lane)));
    return before;
  });
}

}  // namespace gridloom::hardware::resident
