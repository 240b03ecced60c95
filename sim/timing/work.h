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

struct KernelWork {
  WorkOrder order;
  /// A launch that ended early has fewer CTAs than its shape says: for the first one that is not there, nor any of those that were not
  /// loaded yet, Load gives no trace.
  std::shared_ptr<trace::CtaSource> source;
  std::uint64_t profile = 0;  ///< policy::KernelView::profile
  KernelOwner owner{};
  std::uint32_t address_space = 0;  ///< of the process (memory/address_space.h); 0: memory lies where the trace says
};

/// A fill writes its bytes, a copy on the device reads and writes them.
enum class CopyDirection : std::uint8_t { kToDevice, kToHost, kOnDevice, kFill };

struct CopyWork {
  WorkOrder order;
  CopyDirection direction = CopyDirection::kToDevice;
  std::uint64_t bytes = 0;
};

/// Nothing that takes time: it ends when all before it has. An event that is recorded or waited for.
struct MarkerWork {
  WorkOrder order;
};

enum class WorkKind : std::uint8_t { kKernel, kCopyToDevice, kCopyToHost, kCopyOnDevice, kFill, kMarker };

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
