// A host thread's equipment for running CTAs: its own context to come back to, its units, and what the fault handler
// needs to know. The thread that launches borrows one; pool threads own one each.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {

class Worker {
 public:
  explicit Worker(DeviceMemory& memory) : memory_(memory) {}

  /// Runs CTAs of the launch until none is left to start. With `share`, nobody else takes part yet: it is called after
  /// the first unit, told how long that took and how many are left, and answers whether others do from now on.
  void Run(Launch& launch, bool (*share)(void* context, std::uint64_t first_unit_ns, std::uint64_t units_left),
           void* share_context);

  /// The thread that is in Run, by the system's number; 0: none.
  pid_t thread() const { return thread_.load(); }
  /// In a forked child, whose only thread has another number there.
  static void ForgetThreadNumber();

  /// Copies a launch's parameters to where generated code may read past their end. They stay until the next call.
  void KeepParams(Launch& launch);

  unsigned share = 0;        ///< which part of a grid is its own, where units are dealt
  SwitchableWarp root;       ///< the thread's own stack while a warp runs
  Launch* launch = nullptr;  ///< not null while this thread may be inside a kernel
  /// The running warp when warps run one after the other; the first where a CtaEntry runs.
  WarpCtx* volatile direct_warp = nullptr;
  volatile std::uint64_t trail = 0;  ///< of the CtaEntry that runs, or 0

  // Lane by lane access in a helper: a SIGSEGV there is the program's fault, not ours.
  volatile std::int32_t access_lane = -1;
  volatile std::uint32_t access_line = 0;
  Warp* volatile access_warp = nullptr;
  // What the handler saw, read on landing.
  std::uint64_t fault_address = 0;
  std::uintptr_t fault_pc = 0;  // in generated code, else 0
  bool fault_is_stack = false;
  bool fault_is_bus = false;

  /// The warp that runs on the stack that holds `sp`, or null. `registers`: what the general registers hold.
  Warp* WarpAt(std::uintptr_t sp, std::span<const std::uint64_t> registers);
  /// Whether `address` lies in the guard page of this worker's stack.
  bool IsStackGuard(std::uintptr_t address);
  Unit& main_unit();
  UndoLog::Part overwritten;  ///< by the launch's stores, if it has an UndoLog

  static constexpr std::size_t kStackBytes = 256u << 10;
  static constexpr std::size_t kRecursiveStackBytes = 1u << 20;

 private:
  friend struct DirectLoop;
  bool Claim(UnitSpan& span, std::uint64_t most, bool even_if_superseded = false);
  void RunDirect();
  void RunRings();
  void RunResident();
  void BeginResident();
  bool RunRound();
  void EndResident();
  bool StartUnit(bool even_if_superseded);
  void AwaitFeed();
  bool Watchdog();
  void PaceRecorded();
  Unit* TakeUnit();
  void Abandon(Unit& unit);
  void NextTrail();

  DeviceMemory& memory_;
  std::atomic<pid_t> thread_{0};
  std::vector<std::byte> params_;
  std::vector<std::unique_ptr<Unit>> units_;  // units_[0] serves kernels that run one CTA at a time
  std::vector<Unit*> resident_, idle_;
  bool solo_ = false;
  bool (*share_)(void*, std::uint64_t, std::uint64_t) = nullptr;
  void* share_context_ = nullptr;
  std::uint64_t watched_progress_ = 0, watch_since_ns_ = 0, looked_ns_ = 0;
  bool short_watch_ = false;  // memcheck: all have but asked for mbarriers since the last look
  unsigned looks_ = 0, quiet_examinations_ = 0;
  bool counted_stuck_ = false;
  std::uint64_t waiting_since_ns_ = 0, seen_clock_reads_ = 0;  ///< of PaceRecorded; 0: it does not wait
  std::uint64_t last_trail_ = 0;
};

}  // namespace gridloom::exec
