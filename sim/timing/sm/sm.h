// A streaming multiprocessor: resident CTAs and their warps, schedulers, scoreboard, pipes, barriers; memory is the
// load/store unit's. Shares nothing with other SMs; talks to memory partitions by messages.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/timing/cta.h"
#include "sim/timing/memory/inbox.h"
#include "sim/timing/sm/load_store_unit.h"
#include "sim/timing/sm/parameter_bank.h"
#include "sim/timing/sm/scheduler.h"
#include "sim/timing/sm/warp.h"

namespace gridloom::timing {

/// What a part does to an SM at a time (DeviceInput), or whoever gives the works.
struct SmCommand {
  enum class Kind : std::uint8_t { kAskGates, kDropL1, kCancel };
  Cycle at = 0;
  Kind kind = Kind::kAskGates;
  std::uint32_t launch = 0;  ///< kCancel: its warps end
};

class Sm {
 public:
  /// `plain`: every cycle is simulated and every warp looked at; the reference for the short cuts. `groups`: of
  /// partitions, whose requests are kept apart. The references must outlive the SM.
  Sm(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t index, std::uint32_t groups,
     bool plain);

  void Start(CtaStart start) { starts_.push_back(std::move(start)); }  ///< in the order of `at`
  void Add(const SmCommand& command);  ///< not before the cycles that have been simulated; in any order
  /// Hands over an answer. After the last of a phase, Prefetch and SortInbox.
  void Add(const Response& response) {
    memory_.PrefetchEntry(response);
    inbox_.Add(response);
  }
  /// If there are answers, the host may fetch the SM and what they concern, while something else runs.
  void Prefetch() const {
    if (!inbox_.has_new()) return;
    for (std::size_t at = 0; at < sizeof(Sm); at += kHostLine)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + at);
    inbox_.ForEachNew([&](const Response& response) { memory_.PrefetchSet(response); });
  }
  void SortInbox() { inbox_.Sort(); }
  Outbox<Request>& outbox() { return out_; }
  std::vector<CtaEnd>& ended() { return ended_; }
  std::vector<CtaSignal>& signals() { return signals_; }
  const SmCounters& counters() const { return counters_; }
  /// With the cycles before `end` that were not visited because nothing changed; all before it must have been
  /// simulated.
  SmCounters counters_until(Cycle end) const;

  /// Simulates up to, not including, `end`; inbox and starts must hold all that arrives before it.
  void Run(Cycle begin, Cycle end);

  /// Next cycle in which something happens, from what is known now; kNever when idle.
  Cycle next() const;

  // sm_walk.cpp
  /// No CTA is here, nor on its way.
  bool idle() const { return resident_ctas_ == 0 && starts_.empty(); }
  /// Whether the SM's warps wait, or make turns of repeats, and no CTA is on its way. Between windows.
  bool OnlyTurns() const;
  /// All but what entries of its load/store unit are about, which are walked through with the messages that come back
  /// to them.
  void Walk(StateWalk& walk);
  void WalkEntry(std::uint16_t id, StateWalk& walk) { memory_.WalkEntry(id, walk); }

 private:
  static constexpr std::size_t kBarriers = 16, kHostLine = 64;
  struct Barrier {
    std::uint32_t arrived = 0;  ///< warps
    std::uint8_t warps = 0;     ///< that take part; 0 = all that run
  };
  struct Cta {
    std::uint64_t id = 0;
    std::uint32_t launch = 0;
    std::uint32_t running = 0;    ///< warps that have not ended
    std::uint32_t waiting = 0;    ///< of them, warps at barriers
    std::uint32_t undrained = 0;  ///< warps that have not ended or wait for loads or stores
    std::uint64_t warp_instructions = 0, thread_instructions = 0;
    trace::Shifts shifts;
    const AddressSpace* memory = nullptr;
    std::shared_ptr<const trace::CtaTrace> trace;
    const DecodedCode* code = nullptr;  ///< of a block of software's (sm_fed.cpp)
    std::vector<std::uint16_t> warps;
    std::array<Barrier, kBarriers> barriers{};
  };

  void Tick(Cycle now);
  void Account(Cycle now);
  Cycle CountSkipped(Cycle now, SmCounters& counters) const;
  void TakeResponses(Cycle now);
  void StartCtas(Cycle now);
  void StartWarp(Cycle now, const CtaStart& start, std::uint32_t number);
  std::uint16_t FreeWarp() const;
  void TakeCompletions(Cycle now);
  void DropL1IfTold(Cycle now);
  void ObeyIfTold(Cycle now);
  void Cancel(std::uint32_t launch);
  std::uint64_t ResidentInstructions(std::uint32_t launch) const;
  void EndIfDrained(Cycle now, Warp& warp);
  void Follow(Warp& warp, const trace::CtaTrace& cta, const DecodedCode& code, std::uint32_t number);

  // sm_fed.cpp
  bool IsAtHome(const Warp& warp) const { return warp.fed && warp.cta_slot == warp.home; }
  void GoOn(Cycle now, Warp& warp);
  void Ask(Cycle now, Warp& warp);
  void RunPiece(Warp& warp, const FedPiece& piece);
  void Enter(Cycle now, Warp& warp, const FedBlock& block, std::uint32_t number);
  void LeaveBlock(Cycle now, Warp& warp);
  void Wake(Cycle now, Warp& warp);
  void WakeNext(Cycle now, const FedWarp& place);
  void ClearMasks(const Warp& warp);

  void RunSchedulers(Cycle now);

  static void WalkWarp(Warp& warp, StateWalk& walk);
  static void WalkCta(Cta& cta, StateWalk& walk);
  static void WalkScheduler(const Scheduler& scheduler, StateWalk& walk);

  // sm_issue.cpp
  void RunScheduler(Cycle now, std::uint32_t scheduler);
  void TryPair(Cycle now, std::uint32_t scheduler, Warp& warp, const DecodedOp& first);
  Cycle* FreeUnit(Cycle now, std::uint32_t scheduler, std::size_t pipe);
  WarpMask Eligible(Cycle now, std::uint32_t scheduler);
  void Issue(Cycle now, Warp& warp, Cycle& unit);
  void ReadParameters(Cycle now, Warp& warp, const DecodedOp& op);
  void IssueMemory(Cycle now, Warp& warp, const DecodedOp& op);
  bool ParksLanes(Cycle now, Warp& warp, const DecodedOp& op);
  /// `goes_on`: the warp has something to do behind it.
  void IssueBarrier(Cycle now, Warp& warp, const DecodedOp& op, bool goes_on);
  void ArriveAt(Cycle now, Warp& warp, std::uint8_t number, std::uint8_t warps, bool waits);
  void OpenBarriers(Cycle now, Cta& cta);
  void OpenBarrier(Cycle now, Cta& cta, std::size_t number);
  void Arm(Cycle now, Warp& warp);
  void ArmGated(Cycle now, Scheduler& scheduler, Warp& warp);
  MemoryInstruction NextAccess(const Warp& warp) const;
  struct Gated {
    Cycle until = 0;
    std::size_t gate = 0;
  };
  Gated AskGates(Cycle now, const Warp& warp);
  bool PassesGates(Cycle now, Warp& warp);
  /// Whether gates are asked about a warp that comes up in the wheel. What gates held back and then let go on command
  /// comes up a second time, and may do anything then.
  static bool ConcernsGates(const Warp& warp) {
    return warp.state != WarpState::kRunning || warp.op->gated || warp.wake == kNever;
  }
  void WakeGated(Cycle now, Scheduler& scheduler, Warp& warp);
  Cycle Signal(Cycle now, Warp& warp);
  Cycle CyclesOf(const LaunchCalls& calls) const;
  void TellAccess(Cycle now, const Warp& warp) const;
  void Finish(Cycle now, Warp& warp);
  Cycle NextIssue(Cycle now) const;
  std::uint64_t& StallCounter(const Scheduler& scheduler, bool queue_full, SmCounters& counters) const;
  std::uint64_t& MemoryStallCounter(const Scheduler& scheduler, SmCounters& counters) const;

  // sm_plain.cpp
  void ScanWarps(Cycle now, std::uint32_t scheduler);
  std::uint32_t PickByScan(std::uint32_t scheduler, WarpMask eligible) const;

  WarpMask Bit(const Warp& warp) const { return WarpMask{1} << warp.index; }
  const Cycle* UnitsBegin(std::uint32_t scheduler, std::size_t pipe) const {
    return units_[pipe].data() + (private_[pipe] ? scheduler * per_scheduler_[pipe] : 0);
  }
  std::size_t UnitCount(std::size_t pipe) const { return private_[pipe] ? per_scheduler_[pipe] : units_[pipe].size(); }

  const Parameters& parameters_;
  const sim::TimingSpec& timing_;
  const Ports& ports_;
  const std::uint32_t index_;
  const bool plain_;
  const bool gated_;  // there are warp gates
  SmCounters counters_;
  LoadStoreUnit memory_;
  ParameterBank parameter_bank_;
  Port in_port_;
  Inbox<Response> inbox_;
  Outbox<Request> out_;
  std::deque<CtaStart> starts_;
  std::vector<CtaEnd> ended_;
  std::vector<CtaSignal> signals_;
  std::deque<SmCommand> commands_;  // in the order of time
  Cycle next_command_ = kNever;     // of the first one

  std::vector<Warp> warps_;  // warp w belongs to scheduler w % schedulers
  std::vector<Cta> ctas_;    // by slot
  std::vector<Scheduler> schedulers_;
  std::vector<HeldWarps> held_;  // by scheduler, if gated_
  std::uint64_t holds_ = 0;      // times that a gate let something not pass at once
  struct Entering {
    std::uint32_t block = 0, warp = 0;
    bool enters = false;
  };
  std::vector<Entering> entering_;  // by warp, where there is a feed: which block it runs as soon as it has drained
  std::array<std::vector<Cycle>, sim::kPipeCount> units_;  // free from that cycle on
  std::array<bool, sim::kPipeCount> private_{};            // each scheduler has its own
  std::array<std::size_t, sim::kPipeCount> per_scheduler_{};
  std::uint32_t resident_ctas_ = 0, resident_warps_ = 0;
  std::uint64_t next_age_ = 0;
  Cycle last_step_ = 0;          // the load/store unit was looked at
  Cycle last_issue_ = 0;         // so were the schedulers, whose state has not changed since
  Cycle next_issue_ = kNever;    // they have nothing to do before, unless memory comes back
  bool queue_was_full_ = false;  // at last_issue_, and since
};

}  // namespace gridloom::timing
