// Where proposed hardware plugs into the model (docs/hardware.md). Every port is empty by default; an empty port is not
// asked and costs nothing. A part (part.h) takes its places in them when the engine is made. Lists ask all of their
// members, in the order of the parts.
//
// Who calls. Ports of SMs and of L2 are called while a window of cycles is simulated, by several host threads: each SM
// and each memory partition is simulated by one thread at a time and up to a window ahead of the others. So what such a
// port keeps is kept apart for each SM or partition, or is a table that changes between windows only. All other ports
// are called between windows, by one thread, in the order of simulated time.
//
// What makes results independent of windows and threads: a part answers from what was so at the cycle of the question,
// and what it has learned between windows reaches an SM or L2 no earlier than Parameters::window cycles after the cause
// (DeviceInput::earliest).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy/policy.h"
#include "sim/timing/cta.h"
#include "sim/timing/cycle.h"
#include "sim/timing/memory/message.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

class AddressSpace;
class DeviceInput;
class Engine;
class Part;
struct DecodedCode;
struct MemoryInstruction;

// ---- kernels and CTAs: between windows

/// A launch that may run.
struct KernelReady {
  std::uint32_t launch = 0;
  std::uint64_t code = 0;           ///< as policy::KernelView::code
  std::uint32_t address_space = 0;  ///< as KernelWork has it
  std::uint32_t stream = 0;
  const trace::CtaSource& source;
  policy::CtaNeeds needs;
  std::uint32_t fits_per_sm = 0;  ///< CTAs that an empty SM has room for
};

/// Told what kernels and CTAs do.
class CtaEvents {
 public:
  virtual ~CtaEvents() = default;
  virtual void OnKernelReady(Cycle, const KernelReady&) {}
  /// Told when it is decided, up to launch.cta_cycles before `at`.
  virtual void OnCtaStart(Cycle, const CtaPlace&) {}
  /// An instruction of the CTA that the trace has an event for was issued: a launch from the device, released ranges.
  virtual void OnCtaEvent(const CtaSignal&) {}
  virtual void OnCtaEnd(const CtaEnd&) {}
  /// After OnCtaEnd of its last CTA.
  virtual void OnKernelEnd(Cycle, std::uint32_t /*launch*/) {}
};

/// A work as parts see it.
struct WorkView {
  WorkId id = 0;
  WorkKind kind = WorkKind::kMarker;
  std::uint32_t stream = 0;
  Cycle submitted = 0;
  std::uint64_t bytes = 0;                   ///< of a copy or fill
  const trace::CtaSource* source = nullptr;  ///< of a kernel that has not ended
  std::uint64_t code = 0;                    ///< likewise: as policy::KernelView::code
  bool started = false;
  std::span<const WorkId> after{};       ///< of a work that has not ended, as WorkOrder::after
  const AddressSpace* memory = nullptr;  ///< of a kernel that has not ended
  const MemoryUse& use;
};

/// Told which works there are, in the order in which they are given, and when they have ended.
class WorkEvents {
 public:
  virtual ~WorkEvents() = default;
  virtual void OnWorkGiven(const WorkView&) {}
  virtual void OnWorkEnd(Cycle, WorkId) {}
};

/// Who owns which pages, for policies that go by it (policy::Snapshot). Asked whenever the policy is; time never goes
/// back.
class PageShares {
 public:
  virtual ~PageShares() = default;
  struct Pages {
    std::uint64_t available = 0;
    bool loading = false;
  };
  virtual Pages At(Cycle now) = 0;
  /// How many of the available pages the kernel owns, at the time of the last At.
  virtual std::uint64_t OwnedBy(std::uint32_t launch) const = 0;
  /// KernelView::ready and begun (policy.h), at the same time; nothing: it is not known which CTA will touch what.
  struct Ready {
    std::uint64_t ready = 0, begun = 0;
  };
  virtual std::optional<Ready> ReadyOf(std::uint32_t /*launch*/) const { return std::nullopt; }
};

/// When a work may start although one that comes before it has not ended. Without rules it waits for the end. A work
/// that has done all it had to before those that come before it have ended ends with the last of them.
class StartRule {
 public:
  virtual ~StartRule() = default;
  /// First cycle at which `work` may start as far as `before` is concerned, an earlier work of its stream or one that
  /// it has to wait for; kNever: not before that one has ended. The answer changes with time and at cycles given to
  /// DeviceInput::Recheck only. The earliest answer of all rules counts.
  virtual Cycle MayStart(Cycle now, const WorkView& work, const WorkView& before) = 0;
};

/// A kernel that a warp has launched.
struct LaunchView {
  const CtaSignal& call;  ///< by which warp, when, with what
  const WorkView& work;   ///< of it
  /// No other launch has to end before it may begin.
  bool free = false;
};

/// Another way for kernels that kernels launch than the kernel management unit.
class LaunchPath {
 public:
  virtual ~LaunchPath() = default;
  /// Whether this part takes care of the launch: then it says what becomes of it, DeviceInput::Join or
  /// DeviceInput::Launch. Asked when the call is over.
  virtual bool Takes(Cycle now, const LaunchView& launch) = 0;
};

/// Another way for kernels of the host's than the hardware's queues: software that takes them up itself.
class KernelPath {
 public:
  virtual ~KernelPath() = default;
  /// Whether the kernel goes this way. Asked once, when it is given.
  virtual bool Wants(const WorkView& kernel) = 0;
  /// Nothing that comes before the kernel holds it back any more. The part says when it has ended:
  /// DeviceInput::EndKernel.
  virtual void Take(Cycle now, const WorkView& kernel) = 0;
};

/// Another way for copies, fills and storage than the engines of the device and the host.
class CopyPath {
 public:
  virtual ~CopyPath() = default;
  /// Whether this part does a copy that can start now, or what else moves bytes. Then it says when that has ended:
  /// DeviceInput::EndCopy.
  virtual bool Takes(Cycle now, const WorkView& copy) = 0;
};

/// How many CTAs of a kernel an SM holds, besides what has room and what the policy says.
class CtaLimit {
 public:
  virtual ~CtaLimit() = default;
  /// Whether an SM that holds `resident` CTAs of the launch may hold one more. The answer changes when a CTA ends, and
  /// at cycles given to DeviceInput::Recheck. A kernel that is held back everywhere leaves its room to the next ones.
  virtual bool MayHold(Cycle now, std::uint32_t launch, std::uint32_t sm, std::uint32_t resident) = 0;
};

/// What a placer chooses from.
struct PlacementQuery {
  Cycle now = 0;
  const policy::KernelView& kernel;
  const policy::Slice& slice;
  std::span<const policy::SmView> sms;
  std::uint32_t next_sm = 0;  ///< the one behind that which got the last CTA
  std::span<CtaLimit* const> limits;

  /// Room, the slice and all limits let this SM have a CTA of the kernel.
  bool Allows(std::uint32_t sm) const;
  /// Only a limit stands in the way.
  bool OnlyLimited(std::uint32_t sm) const;
  /// The first allowed SM of the slice from next_sm on, round robin.
  std::optional<std::uint32_t> RoundRobin() const;
};

struct Placement {
  std::uint32_t sm = 0;   ///< PlacementQuery::Allows it
  std::uint64_t cta = 0;  ///< of the grid; one that has not started
};

/// Which CTA of the slice that the policy chose goes next, and on which SM. Without one: CTAs in their order, SMs round
/// robin.
class CtaPlacer {
 public:
  virtual ~CtaPlacer() = default;
  virtual std::optional<Placement> Place(const PlacementQuery& query) = 0;
};

// ---- SMs: while a window is simulated

/// An access that a warp is about to issue; its registers are ready.
struct GatedAccess {
  std::uint32_t sm = 0;
  std::uint64_t cta = 0;
  const MemoryInstruction& instruction;
};

/// May a warp's next memory instruction issue? Part of the scoreboard: while it may not, other warps go on.
class WarpGate {
 public:
  virtual ~WarpGate() = default;
  /// First cycle at which it may, `now` for at once; it is asked again then. kNever: not before DeviceInput::AskGates.
  /// Asked any number of times, in any order within a cycle; the answer for a cycle changes only for those from which
  /// on AskGates asks again. An access that was let through stays so.
  virtual Cycle MayIssue(Cycle now, const GatedAccess& access) = 0;
  /// Whether an access that passes at one cycle would pass at all later ones, until something happens between windows
  /// (a work, a CTA, a TimedSource). Then turns of repeats that nobody holds back need not be simulated one by one, nor
  /// the gate be asked in them (Recurrence).
  virtual bool stays_open() const { return false; }
};

/// Calls by which warps launch kernels: what one instruction does for all threads that execute it together.
struct LaunchCalls {
  std::uint32_t streams = 0;   ///< threads that make one
  std::uint32_t launches = 0;  ///< threads that launch a kernel
  /// Threads that launch a kernel which may join another (trace::kAggregated, or as the part wants it).
  std::uint32_t aggregated = 0;
};

/// What launches by kernels take of the time of the warp that makes them.
class LaunchCost {
 public:
  virtual ~LaunchCost() = default;
  /// Whether a launch with these flags (trace::LaunchFlag) may join another one.
  virtual bool Aggregates(std::uint8_t flags) const = 0;
  virtual Cycle CyclesOf(const LaunchCalls& calls) const = 0;
};

/// A warp that software tells what to do while it runs.
struct FedWarp {
  std::uint32_t sm = 0;
  std::uint32_t slot = 0;    ///< of the CTA that it was started in
  std::uint32_t number = 0;  ///< in that CTA
};

/// A thread block that such warps run, as a CTA of its own: they wait at its barriers, and leave it when they have come
/// to its end.
struct FedBlock {
  std::uint32_t number = 0;  ///< below WarpFeed::kMostBlocks; no other block of the SM has it
  std::uint32_t launch = 0;
  std::uint64_t cta = 0;
  std::shared_ptr<const trace::CtaTrace> trace;
  trace::Shifts shifts;
  const DecodedCode* code = nullptr;
  const AddressSpace* memory = nullptr;
};

/// What it does next.
struct FedPiece {
  enum class Kind : std::uint8_t {
    kRun,    ///< these visits, of its own CTA's code
    kBlock,  ///< a warp of a block
    kWait,   ///< nothing before `until`; it is asked again then, or when another warp wakes it
    kEnd,
  };
  Kind kind = Kind::kEnd;
  Cycle until = 0;
  // kRun. Visits and accesses are used before the next question; lanes may be needed as long as an access takes.
  std::span<const trace::BlockVisit> visits{};
  const trace::MemoryAccess* accesses = nullptr;
  const trace::CtaTrace* lanes = nullptr;
  const DecodedCode* code = nullptr;
  // kBlock. The block is copied.
  const FedBlock* block = nullptr;
  std::uint32_t warp = 0;  ///< of the block's trace
  /// Warps of this SM that wait, and are asked again in the next cycle. Used at once.
  std::span<const FedWarp> wakes{};
};

/// Software that stays on the device (sim/hardware/pagoda): its warps have no trace, it is asked what they do.
class WarpFeed {
 public:
  static constexpr std::uint32_t kMostBlocks = 64;
  virtual ~WarpFeed() = default;
  /// Whether the warps of this launch are told.
  virtual bool Feeds(std::uint32_t launch) const = 0;
  /// The warp has issued all it had, fences behind that are through, and of a block all it waited for has come.
  virtual FedPiece Next(Cycle now, const FedWarp& warp) = 0;
  /// All warps of the block have left it.
  virtual void OnBlockEnd(Cycle now, std::uint32_t sm, std::uint32_t number, std::uint64_t warp_instructions,
                          std::uint64_t thread_instructions) = 0;
};

/// A line that an SM's load/store unit is about to access in global, local, constant or texture memory.
struct LineIssue {
  std::uint32_t sm = 0;
  std::uint32_t warp = 0;
  std::uint32_t launch = 0;
  std::uint64_t line = 0;  ///< address / 128
  bool writes = false;
};

/// Holds the load/store unit at a line, and with it all memory instructions of the SM behind it.
class LineGate {
 public:
  virtual ~LineGate() = default;
  /// First cycle at which the access may go on; `now` for at once. Asked again at that cycle, for the same access.
  virtual Cycle MayAccess(Cycle now, const LineIssue& line) = 0;
};

// ---- L2 and DRAM: while a window is simulated; cycles are those of their clocks

struct L2Access {
  std::uint32_t partition = 0, slice = 0;  ///< `slice` of the partition
  std::uint32_t launch = 0;
  std::uint32_t sm = 0;    ///< Request::kNobody: a part's
  std::uint64_t line = 0;  ///< address / 128
  RequestKind kind = RequestKind::kRead;
  std::uint8_t sectors = 0;  ///< mask
};

/// Where a line is in its slice.
struct L2Place {
  std::uint32_t set = 0, way = 0;
};

/// Who stays in a set of L2, and whose line it is. A part that keeps owners keeps them itself, by slice, set and way.
class L2Replacement {
 public:
  virtual ~L2Replacement() = default;
  /// Ways of the set that may be given up for a line which is brought in, as a mask; 0: any. The least recently used of
  /// them goes, once nothing is outstanding for it. Asked again while the request has to wait.
  virtual std::uint64_t Candidates(Cycle, const L2Access&, std::uint32_t /*set*/) { return 0; }
  /// A request was taken. `hit`: the line had its place, whether or not its sectors had come; else it was put there.
  virtual void OnAccess(Cycle, const L2Access&, L2Place, bool /*hit*/) {}
  /// A line left its place: it was evicted, or flushed.
  virtual void OnEvict(Cycle, std::uint32_t /*partition*/, std::uint32_t /*slice*/, L2Place) {}
  /// A sweep (DeviceInput::SweepL2) has come to the slice: adds the lines of it that are to be written back and
  /// dropped.
  virtual void OnSweep(Cycle, std::uint32_t /*partition*/, std::uint32_t /*slice*/, std::uint64_t /*tag*/,
                       std::vector<L2Place>&) {}
};

/// Sectors of a line in an SM's L1 or read-only cache.
struct CachedSectors {
  std::uint32_t sm = 0;
  std::uint32_t cache = 0;   ///< 0: L1, 1: the read-only cache
  std::uint32_t place = 0;   ///< of the line in that cache, below its number of lines
  std::uint32_t launch = 0;  ///< whose load is served
  std::uint64_t line = 0;    ///< address / 128, physical
  std::uint8_t sectors = 0;  ///< mask
};

/// Told of accesses to memory when they happen: what checkers stand on. Instructions and requests while a window is
/// simulated, by the threads of SMs and partitions; transfers between windows.
class AccessEvents {
 public:
  virtual ~AccessEvents() = default;
  /// The instruction issues; once.
  virtual void OnIssue(Cycle, const GatedAccess&) {}
  /// A cache of the SM serves sectors that it holds to a load of global or texture memory.
  virtual void OnHit(Cycle, const CachedSectors&) {}
  /// Sectors have come to a cache of the SM.
  virtual void OnFill(Cycle, const CachedSectors&) {}
  /// L2 has taken a request. Cycles are L2's.
  virtual void OnL2(Cycle, const L2Access&) {}
  /// A copy or fill, or a part of one, has moved these bytes of device memory.
  virtual void OnTransfer(Cycle, WorkId, std::uint32_t /*address_space*/, std::uint64_t /*address*/,
                          std::uint64_t /*bytes*/, bool /*writes*/) {}
};

struct DramRequest {
  std::uint32_t partition = 0;
  std::uint32_t bank = 0;
  std::uint32_t row = 0;
  std::uint32_t bursts = 0;
  bool writes = false;
};

/// Told what DRAM is asked for.
class DramEvents {
 public:
  virtual ~DramEvents() = default;
  virtual void OnEnqueue(Cycle dram_cycle, const DramRequest& request) = 0;
};

// ---- time of its own

/// Something that acts at times of its own: storage, links, tables in memory. Between windows.
class TimedSource {
 public:
  virtual ~TimedSource() = default;
  /// When it acts next; kNever: when something else happens.
  virtual Cycle next() const = 0;
  /// Acts, in the order of time, on all that is due before `end`. What it does to the device it does through
  /// DeviceInput, from the cycle on at which it acts.
  virtual void Run(Cycle end) = 0;
};

// ---- looking on

/// Looks on: nothing that it does reaches the model. Called by one thread, between windows.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Told when it is decided, up to launch.cta_cycles before `at`.
  virtual void OnCtaStart(Cycle at, const CtaPlace& place) = 0;
  virtual void OnCtaEnd(Cycle at, const CtaPlace& place) = 0;
  /// After OnCtaEnd of its last CTA.
  virtual void OnKernelEnd(Cycle at, std::uint32_t launch) = 0;
  /// All cycles before engine.now() have been simulated; nothing happens before `begin`.
  virtual void OnWindow(const Engine& engine, Cycle begin) = 0;
  /// The device does the same again every `period` cycles. It may be moved on by as many periods as end by the cycle
  /// that is answered, without windows between them. 0: it is told of all windows.
  virtual Cycle WantsWindows(const Engine& /*engine*/, Cycle /*period*/) const { return 0; }
};

/// Who is at each port.
struct Ports {
  static constexpr std::size_t kMostGates = 4;  ///< each has a counter of its own in SmCounters

  std::vector<CtaEvents*> cta_events;
  std::vector<WorkEvents*> work_events;
  std::vector<StartRule*> start_rules;
  std::vector<CopyPath*> copy_paths;
  std::vector<LaunchPath*> launch_paths;
  KernelPath* kernel_path = nullptr;
  WarpFeed* feed = nullptr;
  const LaunchCost* launch_cost = nullptr;  ///< in place of timing.device_launch
  std::vector<CtaLimit*> cta_limits;
  CtaPlacer* placer = nullptr;
  PageShares* page_shares = nullptr;
  std::vector<WarpGate*> warp_gates;  ///< at most kMostGates
  std::vector<AccessEvents*> access_events;
  std::vector<LineGate*> line_gates;
  L2Replacement* l2 = nullptr;
  std::vector<DramEvents*> dram_events;
  std::vector<TimedSource*> sources;

  /// Somebody is asked or told while a window is simulated, and may keep something of it.
  bool acts_in_windows() const {
    const bool of_sms =
        feed != nullptr || !line_gates.empty() || !std::ranges::all_of(warp_gates, &WarpGate::stays_open);
    return of_sms || l2 != nullptr || !dram_events.empty() || !access_events.empty();
  }
  /// Somebody acts between windows on what partitions keep, so that these may not stay behind.
  bool needs_partitions() const {
    return l2 != nullptr || !dram_events.empty() || !access_events.empty() || !sources.empty();
  }
};

}  // namespace gridloom::timing
