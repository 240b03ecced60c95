// Random kernels whose lanes meet in .sync instructions: each kernel follows a protocol, a list of .sync instructions
// that all lanes of a mask execute in order, by code in which different lanes reach them by different instructions. So
// no kernel has a deadlock, and by the rule of the PTX ISA (9.7.9.6: a thread waits until all non-exited threads of
// membermask have executed the instruction with the same qualifiers and the same membermask) results do not depend on
// the order in which lanes run.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gridloom::test {

class RandomMeeting {
 public:
  static constexpr unsigned kValues = 4;

  explicit RandomMeeting(std::uint64_t seed);

  /// Entry `random_meeting(.u64 out, .u32 seed)`; out has kValues words per thread of the CTA.
  std::string Ptx() const;
  /// What the threads of a warp write, one after the other. The first `lanes` lanes exist.
  std::vector<std::array<std::uint32_t, kValues>> RunWarp(std::uint32_t first_tid, std::uint32_t lanes,
                                                          std::uint32_t seed) const;

 private:
  enum class Sync : std::uint8_t {
    kBarrier,
    kElect,
    kBallot,
    kAll,
    kAny,
    kUni,
    kShuffleUp,
    kShuffleDown,
    kShuffleBfly,
    kShuffleIdx,
    kMatchAny,
    kMatchAll,
    kMatchAny64,
    kReduxAdd,
    kReduxMin,
    kReduxMax,
    kReduxXor,
    kCount
  };
  enum class Kind : std::uint8_t {
    kCompute,    ///< value[a] = value[a] * constant + value[b]
    kSync,       ///< value[a] = mix of it and what the lanes of mask[b] get; in: value[c]
    kMask,       ///< mask[a] = constant
    kMaskPart,   ///< mask[a] = those of mask[b] whose condition is as ours
    kTrips,      ///< counter[a] = value[b] % constant
    kTripsLeft,  ///< counter[a] = constant - counter[b]
    kLabel,      ///< a
    kJump,       ///< to label a
    kUnless,     ///< to label a unless the condition holds
    kIfOut,      ///< to label a when counter[b] is 0, else count it down
    kNarrow,     ///< mask[b] = those of it whose counter[c] is not 0; when ours is, to label a, else count it down
    kExit,
  };
  struct Step {
    Kind kind;
    unsigned a = 0, b = 0, c = 0;
    std::uint32_t constant = 0;
    Sync sync = Sync::kBarrier;
  };
  struct Condition {
    bool by_lane;  ///< bit `lane` of constant, else bit `place` of value[a]
    unsigned a, place;
    std::uint32_t constant;
  };
  struct Lane;

  /// A .sync instruction of the lanes in mask register `mask`.
  struct Event {
    Sync sync;
    unsigned mask;
    bool operator==(const Event&) const = default;
  };
  using Protocol = std::vector<Event>;

  void EmitWhole(unsigned longest, unsigned mask, unsigned depth);
  void EmitParts(unsigned mask, unsigned depth);
  void EmitNarrowing(unsigned mask, unsigned depth);
  void Emit(const Protocol& protocol, unsigned depth);
  void EmitArms(const Protocol& protocol, unsigned depth);
  void EmitTwoLoops(const Protocol& protocol, unsigned depth);
  static std::size_t Period(const Protocol& protocol);
  void EmitExit();
  void Compute();
  unsigned AddPart(unsigned mask, unsigned condition);
  unsigned Pick(unsigned count) { return static_cast<unsigned>(random_() % count); }
  void Add(Kind kind, unsigned a = 0, unsigned b = 0, unsigned c = 0, std::uint32_t constant = 0);
  unsigned AddCondition(bool by_lane);

  std::string Text(const Step& step) const;
  std::string SyncText(const Step& step) const;
  std::string ConditionText(const Condition& condition) const;
  bool Holds(const Condition& condition, const Lane& lane) const;
  bool RunToSync(Lane& lane) const;
  void Meet(std::vector<Lane>& lanes, std::uint32_t company) const;

  std::mt19937_64 random_;
  std::vector<Step> steps_;
  std::vector<Condition> conditions_;
  unsigned labels_ = 0, masks_ = 1, counters_ = 0;
};

}  // namespace gridloom::test
