// A CTA (or a cluster of CTAs) while it runs on a worker: its warps with their stacks, shared windows and local memory,
// its barriers, and the ring of warps that can go on. Units are kept and used again; what depends on the launch only,
// or on the block shape only, is computed when that changes. A unit is touched by its worker's thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/exec/contract/records.h"
#include "sim/exec/runtime/barrier.h"
#include "sim/exec/runtime/context_switch.h"
#include "sim/exec/runtime/launch.h"
#include "sim/exec/runtime/mbarrier_waits.h"
#include "sim/exec/runtime/record_patterns.h"
#include "sim/exec/runtime/stack_area.h"

namespace gridloom::exec {

class Worker;
struct Unit;
struct UnitCheck;

enum class WarpState : std::uint8_t { kReady, kAtBarrier, kEnded };

struct Cta {
  CtaCtx ctx{};
  Unit* unit = nullptr;
  RecordStream* records = nullptr;       ///< null when nobody wants them
  std::uint32_t warps_with_records = 0;  ///< that have ended and whose last records wait for those of the others
  struct Warp* warps = nullptr;
  Barrier barriers[kBarriersPerCta];
};
static_assert(offsetof(Cta, ctx) == 0);

struct Warp : SwitchableWarp {
  Cta* cta = nullptr;
  Warp* next_waiter = nullptr;
  std::uint64_t* records = nullptr;  ///< where its buffer begins
  std::uint32_t records_of = 0;      ///< the warp of the CTA whose records it begins with
  std::uint32_t barrier_result = 0;
  std::uint32_t arrived_barriers = 0;        ///< bit per id: lanes have arrived with kBarrierArriveOnly, phase not over
  std::uint32_t counted_barriers = 0;        ///< of those, the ones the whole warp has arrived at
  std::uint32_t wait_barrier = 0, line = 0;  ///< for messages
  WarpState state = WarpState::kReady;
  bool waits_for_arrivals = false;  ///< blocked in kBarrierWait (or the cluster's wait)
  bool cluster_arrived = false;
  /// Memcheck: has looked at memory that others may write since it last asked for an mbarrier.
  bool looks_elsewhere = false;
  bool polls = false;  ///< has asked in vain whether a phase of an mbarrier is over, and done nothing with one since; a
                       ///< look takes it back
  bool looks_at_grid = false;  ///< memcheck: has read the count of the grid's barrier since the watchdog last asked
  bool awaits_grid = false;    ///< had done so when the watchdog last asked
  /// CountedClocks: how far they have gone for what the warp is now, a warp of this CTA of this launch.
  struct {
    std::uint64_t launch = 0, cta = 0, cycles = 0;
  } counted_clock;
};

inline Warp& WarpOf(WarpCtx* ctx) { return static_cast<Warp&>(SwitchableOf(ctx)); }

/// Number of a CTA in the grid that the program launched, x fastest: of a slice's CTA, in the grid it is a slice of.
std::uint64_t CtaNumber(const Cta& cta);
/// The CTA's place in its grid.
Dim3 PlaceInGrid(const Cta& cta);

enum class UnitOutcome : std::uint8_t { kEnded, kParked };

struct Unit {
  Unit(Worker& worker, DeviceMemory& memory);
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  /// Makes the unit fit for a launch. `fibers`: every warp gets a stack; otherwise they run one after the other on
  /// stack 0 and share one local area. Empty on success, else what is missing.
  std::string Adopt(Launch& launch, bool fibers);
  /// Places the unit in the grid: number `index` in linear order, or of those that Launch::ctas names.
  void Begin(std::uint64_t index);
  /// Fresh starts for the warps of CTAs [first, last), linked to a ring in order.
  void LinkRing(std::uint32_t first_cta, std::uint32_t last_cta);
  /// From number `index` to the next one.
  void Advance();
  /// How many CTAs of a row one call may run from the unit's place on, of `most` that are to run (KernelFacts::by_row).
  std::uint64_t InRow(std::uint64_t most) const;
  /// The next call runs so many: the unit is then at the place of the last one.
  void RunInRow(std::uint64_t count);

  // --- while it runs; all take the running warp ---
  [[noreturn]] void End(Warp& warp);
  void Yield(Warp& warp);
  /// The others that can run have their turns first.
  void GiveWay(Warp& warp);
  /// Arrival at a barrier; blocks unless `wait` is false. Returns the number of predicates that held, the top bit: all
  /// held.
  std::uint32_t ArriveAt(Warp& warp, std::uint32_t id, std::uint32_t needed_threads, std::uint32_t mask,
                         std::uint32_t predicate, bool wait, bool partial);
  void WaitForArrivals(Warp& warp);
  /// Warps 4 * group to 4 * group + 3 of the CTA that have not ended.
  std::uint32_t LiveWarpsOfGroup(const Cta& cta, std::uint32_t group) const;
  void ArriveAtCluster(Warp& warp);
  void WaitForCluster(Warp& warp);
  /// The warps that wait, as one sentence.
  std::string DescribeWaiting() const;

  Worker& worker;
  DeviceMemory& memory;
  Launch* launch = nullptr;
  std::vector<Cta> ctas;
  Warp* warps = nullptr;         ///< of all CTAs, one after the other
  std::uint32_t warp_count = 0;  ///< in use; live_warps counts those that have not ended
  Warp* ring = nullptr;          ///< the warp to go on with
  std::uint32_t runnable = 0, live_warps = 0;
  std::uint32_t idle_yields = 0;  ///< yields since something happened
  std::uint64_t progress = 0;
  std::uint64_t clock_reads = 0;  ///< of counted clocks
  Barrier cluster_barrier;
  MbarrierWaits mbarrier_waits;
  StackArea stacks;
  /// Passes on what is in the warp's buffer, which is empty afterwards. `ended`: 1 when the warp has ended.
  void FlushRecords(Warp& warp, std::uint32_t ended);
  /// The warp has ended and shares its buffer with none.
  void EndRecords(Warp& warp);
  RecordPatterns& record_patterns() { return record_patterns_; }
  /// The warp has ended and the next one goes on in the same buffer, which is passed on when little room is left or the
  /// CTA ends.
  void EndSharedRecords(Warp& warp);
  /// All warps of the CTA have ended, one after the other, in code that has gone from one to the next (CtaEntry).
  void EndCtaRecords();
  /// Passes on CTAs that have ended and share their buffer with the next ones. Before the last one's end is told.
  void PassOnEndedCtas();
  bool recording() const { return !records_.empty(); }

  std::unique_ptr<UnitCheck> check;  ///< null without memcheck
  std::vector<std::uint32_t>
      looks[2];  ///< the watchdog's last two copies of what its suspended warps have on their stacks

 private:
  void SetShape(const std::uint32_t (&block)[3], std::uint32_t cta_count);
  void PlaceCtas();
  void ClearReservedShared();
  void MoveInRow();
  void Unlink(Warp& warp);
  void Append(Warp& warp);
  [[noreturn]] void LeaveForNext(Warp& warp);
  void Block(Warp& warp, std::uint32_t id);
  /// `last`: the warp that arrives and goes on at once when the barrier is full.
  void CompleteIfFull(Cta& cta, std::uint32_t id, const Warp* last = nullptr);
  void CompleteClusterIfFull();
  void Release(Barrier& barrier, std::uint32_t result);
  void CompleteForCheck(const Cta* cta, std::uint32_t id, const Barrier& barrier, const Warp* last);
  void PrepareCheck();
  void PrepareRecords(std::size_t buffers);
  void EndSharedCta(Warp& last);
  std::string RequireWarps(std::uint32_t count);
  std::string RequireStacks(const Launch& new_launch, std::size_t count);
  void Connect(const Launch& new_launch, bool fibers);
  bool RequireShared(std::uint64_t bytes);
  bool RequireLocal(std::uint64_t bytes);
  bool RequireOwnMemory(std::uint64_t bytes);

  struct AlignedFree {
    void operator()(Warp* warps) const;
  };
  std::vector<std::uint64_t> records_;  // buffers of the warps, one for all when they run one after the other
  bool shared_records_ = false;
  std::uint32_t ended_warps_ = 0,
                observed_warps_ = 0;  // of a CTA whose records go into one buffer: those that were passed on
  // The same buffer: CTAs that have ended and were not passed on, and where the records of the one that runs begin.
  std::vector<RecordedCta> ended_ctas_;
  std::vector<std::span<const std::uint64_t>> ended_warps_records_;
  std::uint64_t* cta_records_ = nullptr;
  bool passed_on_part_ = false;  // of the one that runs
  RecordPatterns record_patterns_;
  std::vector<RecordLoops> observed_loops_;  // by buffer, where there is an observer
  std::unique_ptr<Warp[], AlignedFree> warp_memory_;
  std::uint32_t warp_capacity_ = 0, shape_ctas_ = 0;
  std::uint32_t position_[3] = {0, 0, 0};  // in the grid of units
  std::uint64_t named_ = 0;                // the place in Launch::ctas, if there are any
  std::uint32_t sm_ = 0;                   // which multiprocessor of the launch's it says it runs on
  bool barriers_ = false;                  // some of its barriers go through the runtime
  std::uint32_t shape_[3] = {0, 0, 0};
  std::uint64_t adopted_serial_ = 0;
  std::uint64_t shared_ = 0, shared_capacity_ = 0;
  std::uint64_t local_ = 0, local_capacity_ = 0;
  std::uint64_t own_memory_ = 0, own_memory_capacity_ = 0;
};

}  // namespace gridloom::exec
