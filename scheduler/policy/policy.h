// What a scheduling policy sees and answers. A policy decides and does nothing else: no clock, no threads, no I/O, so
// that the same object serves the timing model, a broker and a real GPU, and a test is a snapshot and a decision.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace gridloom::policy {

/// What one thread block takes of a multiprocessor, rounded up as the device allocates.
struct CtaNeeds {
  std::uint32_t warps = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
};

/// A launch that may run now: all that it has to wait for is done.
struct KernelView {
  std::uint64_t id = 0;  ///< of the launch
  std::uint32_t stream = 0;
  std::uint64_t ctas = 0;     ///< of the grid
  std::uint64_t started = 0;  ///< of them
  std::uint64_t finished = 0;
  CtaNeeds needs{};
  std::uint32_t tenant = 0;  ///< whose launch it is; 0 where there is one program
  double weight = 1;  ///< the tenant's share of the device among those that want it, > 0; the same in all its kernels
  std::int32_t priority = 0;  ///< larger goes first, where a policy cares
  /// Kernels of one kind have the same; a planner (co_schedule.h) knows it; 0: not profiled.
  std::uint64_t profile = 0;
  std::uint64_t code = 0;  ///< launches of one kernel with blocks of one shape have the same; 0: not known
  bool followed = false;   ///< another launch is there already that comes behind it in its stream
  /// Blocks that each multiprocessor holds now; empty where that is not known (real GPU).
  std::span<const std::uint16_t> resident{};
  bool divisible = true;  ///< false: where blocks are granted in ranges (broker, real GPU), all of them go as one slice
  std::uint64_t pages = 0;  ///< of Snapshot::pages those that it owns
  /// Hardware knows the pages of single blocks (crcs-ready): `ready` and `begun` hold.
  bool announced = false;
  /// Blocks that have not started and of whose pages the kernel owns enough. `ready`: all pages that the block touches.
  /// `begun`: half of the pages that the block reads.
  std::uint64_t ready = 0, begun = 0;
  /// Part of the device that its running blocks have, where that is not what they hold of it; else < 0.
  double occupied = -1;

  bool all_started() const { return started == ctas; }
};

/// What a multiprocessor has left.
struct SmView {
  std::uint32_t free_ctas = 0;
  std::uint32_t free_warps = 0;
  std::uint32_t free_registers = 0;
  std::uint32_t free_shared_bytes = 0;
  std::uint32_t resident_ctas = 0;  ///< of all kernels; 0: idle

  bool Fits(const CtaNeeds& needs) const {
    return free_ctas >= 1 && free_warps >= needs.warps && free_registers >= needs.registers &&
           free_shared_bytes >= needs.shared_bytes;
  }
};

struct Snapshot {
  std::uint64_t cycle = 0;              ///< or another steady unit of time: nanoseconds in the broker
  std::span<const KernelView> kernels;  ///< not finished, in the order in which they became ready
  std::span<const SmView> sms;
  /// Where hardware follows who may touch which page of device memory (sim/hardware/crcs): pages that hold data which a
  /// kernel may use, and whether more of the program's inputs are still on their way. Else 0 and false.
  std::uint64_t pages = 0;
  bool loading = false;
};

/// Which blocks of a kernel start. On hardware that does not know, all are as kInOrder.
enum class Pick : std::uint8_t {
  kInOrder,
  kReady,  ///< of KernelView::ready
  kBegun,  ///< of KernelView::begun
};

/// Start up to `ctas` further thread blocks of a kernel, as many as have room now.
struct Slice {
  std::uint64_t kernel = 0;
  std::uint64_t ctas = 0;
  Pick pick = Pick::kInOrder;
  /// No multiprocessor may hold more blocks of the kernel; 0: what has room. A hint on a real GPU.
  std::uint32_t max_per_sm = 0;
  /// Multiprocessors that may get them, rising; empty: all. The policy keeps the numbers until it is asked again. A
  /// hint on a real GPU.
  std::span<const std::uint32_t> sms{};
};

/// All blocks of a kernel that have not started.
inline Slice Rest(const KernelView& kernel) { return {.kernel = kernel.id, .ctas = kernel.ctas - kernel.started}; }

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  /// What to start next, if anything. Asked again until it answers nothing or nothing of its answer has room; then
  /// whenever a kernel becomes ready or a thread block ends. A slice of a kernel that the snapshot lacks, or of no
  /// blocks, is nothing.
  virtual std::optional<Slice> Next(const Snapshot& snapshot) = 0;
  /// After an answer of nothing: the Snapshot::cycle at which it is worth asking again although nothing happens;
  /// nothing: none.
  virtual std::optional<std::uint64_t> Again() const { return std::nullopt; }
  /// After an answer of nothing: the tenants for whom the device is kept free although another one wants it. While
  /// nothing runs the time is theirs, in equal parts.
  virtual std::span<const std::uint32_t> KeptFor() const { return {}; }
};

}  // namespace gridloom::policy
