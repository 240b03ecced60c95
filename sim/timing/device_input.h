// What a part does to the device, between windows.
#pragma once

#include <cstdint>
#include <memory>

#include "rewriter/support/result.h"
#include "sim/timing/memory/message.h"
#include "sim/timing/parameters.h"
#include "sim/timing/sm/decoded_code.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

/// A request that a part sends to L2 itself. Nobody is answered.
struct PartRequest {
  std::uint64_t line = 0;  ///< address / 128, physical
  /// kRead, kWrite, kReduce, or kFlush: the line is written back if it is dirty, and dropped.
  RequestKind kind = RequestKind::kRead;
  std::uint8_t sectors = 0xf;  ///< mask
  std::uint32_t launch = 0;
};

/// What became of a kernel that a KernelPath took.
struct KernelEnd {
  WorkId kernel = 0;
  Cycle at = 0;       ///< what comes behind it may begin
  Cycle started = 0;  ///< its first warp
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
};

/// Only between windows: in the calls of CtaEvents, StartRule, CopyPath, CtaLimit, CtaPlacer and TimedSource. Cycles
/// are SM cycles, and none of them may lie before earliest().
class DeviceInput {
 public:
  virtual ~DeviceInput() = default;
  virtual const Parameters& parameters() const = 0;
  /// The SMs have been simulated up to there. What follows from something that happened at cycle t can be had from t +
  /// Parameters::window on; what a TimedSource does at t, from t on.
  virtual Cycle earliest() const = 0;

  // ---- works ----
  /// Launches from the device. `order.submitted` may be the cycle of the cause, even before earliest().
  virtual Result<WorkId> Add(KernelWork work) = 0;
  virtual Result<WorkId> Add(CopyWork work) = 0;
  virtual Result<WorkId> Add(MarkerWork work) = 0;
  /// A stream that nobody else has.
  virtual std::uint32_t NewStream() = 0;
  /// Further CTAs, of the same code and shape, for a kernel that has not ended (thread-block groups). They follow those
  /// it has.
  virtual Status Extend(WorkId kernel, std::shared_ptr<trace::CtaSource> group) = 0;
  /// Launches by kernels that a LaunchPath took. Join: its CTAs become CTAs of a kernel of the same code and shape,
  /// behind those it has, and the launch has ended when they have; if all others of the kernel have started, it comes
  /// behind all kernels that run. Launch: it goes to the kernel management unit, at a cycle that may be that of the
  /// cause.
  virtual Status Join(WorkId kernel, WorkId launch) = 0;
  virtual void Launch(WorkId launch, Cycle at) = 0;
  /// Ends a copy that a CopyPath took.
  virtual void EndCopy(WorkId copy, Cycle at) = 0;
  /// Ends a kernel that a KernelPath took.
  virtual void EndKernel(const KernelEnd& end) = 0;
  /// The code of such a kernel as the device executes it, and its CTAs, each once and in their order. Without a trace
  /// there is no such CTA.
  virtual std::shared_ptr<const DecodedCode> CodeOf(WorkId kernel) const = 0;
  virtual Result<trace::LoadedCta> Load(WorkId kernel, std::uint64_t cta) = 0;
  /// Nobody wants the kernel any more: what has been loaded of it and does not run yet need not run. Also while a
  /// window is simulated.
  virtual bool IsCancelled(WorkId kernel) const = 0;
  /// Start rules, limits and the policy are asked again at that cycle. May be the cycle of the cause.
  virtual void Recheck(Cycle at) = 0;

  // ---- SMs ----
  /// Accesses that gates hold back are asked for again.
  virtual void AskGates(std::uint32_t sm, Cycle at) = 0;
  /// The SM's L1 and read-only cache lose all lines; dirty ones are written back.
  virtual void DropL1(std::uint32_t sm, Cycle at) = 0;

  // ---- L2 ----
  /// Leaves at `at` and arrives crossbar.latency later.
  virtual void Send(Cycle at, const PartRequest& request) = 0;
  /// A message to all slices, which goes the same way: each asks L2Replacement::OnSweep for its lines, drops those that
  /// are clean at once and writes back one that is dirty per cycle, for which DRAM's queue has to have room; requests
  /// behind it wait. `tag` is below 2^31.
  virtual void SweepL2(Cycle at, std::uint64_t tag) = 0;

  /// The simulation cannot go on; it ends with this.
  virtual void Fail(Error error) = 0;
};

}  // namespace gridloom::timing
