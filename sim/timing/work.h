// What a host gives a device to do, and what became of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

using WorkId = std::uint32_t;

/// Works of one stream run one after the other. Times are SM cycles.
struct WorkOrder {
  std::uint32_t stream = 0;
  Cycle submitted = 0;        ///< when the host gives it to the device; not before Engine::now()
  std::vector<WorkId> after;  ///< works of other streams that must have ended (events)
};

/// Whose a kernel is, for policies that care; as in policy::KernelView.
struct KernelOwner {
  std::uint32_t tenant = 0;
  double weight = 1;
  std::int32_t priority = 0;
};

/// What a work is to hardware that follows who touches which memory (sim/hardware/crcs). Whoever gives works says as
/// much as is known; without such hardware it means nothing.
enum class Tracking : std::uint8_t {
  kNone,
  kProfiler,  ///< a kernel whose CTAs say (EventKind::kSetRange) what those of another one will touch
  kKernel,    ///< a kernel whose CTAs were announced that way, and say (kReleaseRange) when they are done with it
};

inline constexpr WorkId kNoWork = ~WorkId{0};

/// Memory of the host's that a copy over PCIe has in common with an earlier one.
struct HostReuse {
  WorkId earlier = kNoWork;  ///< that copy; or, where it has one, its partner that writes to storage what it brings
  std::int64_t begin = 0;    ///< of the earlier copy's memory, counted from where this one's begins
};

struct MemoryUse {
  Tracking tracking = Tracking::kNone;
  /// A copy or fill of memory that kernels reach by other ways than global accesses (arrays, constants).
  bool special = false;
  /// The partner of a kernel is its profiler, which the kernel waits for; of a copy to the device, the reading from
  /// storage that fills its source; of a copy to the host, the writing of what it brings to storage. Given before the
  /// work.
  WorkId partner = kNoWork;
  std::uint32_t address_space = 0;  ///< as KernelWork::address_space
  std::uint64_t address = 0,
                span = 0;  ///< of a copy or fill: first byte on the device, bytes up to the last one; span 0: not known
  std::uint64_t source = 0, source_span = 0;                  ///< of a copy on the device: what it reads
  std::shared_ptr<const std::vector<std::uint32_t>> ranks{};  ///< of a reading: as trace::HostAction::ranks
  /// Bytes up to the last one on the host, of a copy over PCIe and of a reading; 0: as many as it moves.
  std::uint64_t host_span = 0;
  /// Works that use the same memory of the host's, of a copy over PCIe and of a reading. The work writes there where
  /// these are done with the memory; a copy to the device that has such works is filled there.
  std::shared_ptr<const std::vector<HostReuse>> reuses{};
};

/// Which launch of which kernel a kernel is that another one launched: its call's number,
/// trace::EventKind::kDeviceLaunch.
struct LaunchedBy {
  WorkId parent = kNoWork;   ///< given before it
  std::uint64_t number = 0;  ///< within an address space
};

struct KernelWork {
  WorkOrder order;
  /// A launch that ended early has fewer CTAs than its shape says: for the first one that is not there, nor any of
  /// those that were not loaded yet, Load gives no trace.
  std::shared_ptr<trace::CtaSource> source;
  std::uint64_t profile = 0;  ///< policy::KernelView::profile
  KernelOwner owner{};
  std::uint32_t address_space = 0;  ///< of the process (memory/address_space.h); 0: memory lies where the trace says
  MemoryUse use{};
  bool own_queue = false;  ///< it waits for no other: a runtime's, which others may wait for
  /// If its number is not 0: the work waits, without a place in a hardware queue, until a warp has made that call, or
  /// its parent has ended without it. Its order has nothing to say but which other launches it comes behind.
  LaunchedBy launched_by{};
};

/// A fill writes its bytes, a copy on the device reads and writes them. Storage is the host's: it reads from one drive
/// and writes to another (timing.host.storage_mb_s).
enum class CopyDirection : std::uint8_t { kToDevice, kToHost, kOnDevice, kFill, kFromStorage, kToStorage };

struct CopyWork {
  WorkOrder order;
  CopyDirection direction = CopyDirection::kToDevice;
  std::uint64_t bytes = 0;
  MemoryUse use{};
};

/// Nothing that takes time: it ends when all before it has. An event that is recorded or waited for.
struct MarkerWork {
  WorkOrder order;
};

enum class WorkKind : std::uint8_t {
  kKernel,
  kCopyToDevice,
  kCopyToHost,
  kCopyOnDevice,
  kFill,
  kMarker,
  kStorageRead,
  kStorageWrite
};
inline constexpr WorkKind kLastWorkKind = WorkKind::kStorageWrite;
/// By CopyDirection.
inline constexpr WorkKind kCopyKinds[] = {WorkKind::kCopyToDevice, WorkKind::kCopyToHost,  WorkKind::kCopyOnDevice,
                                          WorkKind::kFill,         WorkKind::kStorageRead, WorkKind::kStorageWrite};

struct WorkResult {
  WorkKind kind = WorkKind::kKernel;
  std::string name;  ///< of the kernel; empty for all else
  std::uint32_t stream = 0;
  Cycle submitted = 0;
  Cycle started = kNever;  ///< first CTA's first cycle, or first byte
  Cycle ended = kNever;    ///< last CTA's end, or last byte; kNever while it has not
  std::uint64_t ctas = 0;
  std::uint64_t bytes = 0;  ///< of a copy or fill
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  bool done() const { return ended != kNever; }
};

}  // namespace gridloom::timing
