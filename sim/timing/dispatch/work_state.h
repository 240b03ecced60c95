// What the front end of a device keeps of a work until the work has ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/memory/address_space.h"
#include "sim/timing/ports.h"
#include "sim/timing/sm/decoded_code.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

/// Code as the device executes it, shared by works that have one trace::KernelCode. Only works hold it, each beside its
/// source: as long as it is there, so is the KernelCode.
struct CodeOfWorks {
  std::shared_ptr<const DecodedCode> decoded;  ///< parts may keep it longer
};

/// What only a kernel has.
struct KernelState {
  /// CTAs behind those of the launch itself (DeviceInput::Extend and Join).
  struct Group {
    std::uint64_t first_cta = 0;
    std::shared_ptr<trace::CtaSource> source;
    WorkId work = kNoWork;   ///< whose CTAs they are: of a launch that joined
    std::uint64_t left = 0;  ///< of them, those that have not ended
  };
  std::shared_ptr<trace::CtaSource> source;
  std::vector<Group> groups;
  std::uint64_t ctas = 0;                      ///< the launch's own and those of groups
  std::shared_ptr<const CodeOfWorks> code;     // resident warps point to what it decoded
  std::unique_ptr<const AddressSpace> memory;  // likewise
  trace::CtaChecks checks;  // of CTAs as they are loaded; those of groups are of the same code and shape
  policy::CtaNeeds needs;
  std::uint64_t profile = 0;
  std::uint64_t identity = 0;  ///< policy::KernelView::code
  KernelOwner owner;
  bool cancelled = false;               ///< it gets no further CTAs
  std::vector<std::uint16_t> resident;  ///< CTAs by SM while it runs; KernelView::resident refers to its elements

  /// Without a trace there is no such CTA. Fails when the trace cannot be read, or is not of this code and shape.
  Result<trace::LoadedCta> Load(std::uint64_t cta);
  /// Null: the CTA is the launch's own.
  Group* GroupOf(std::uint64_t cta) {
    const auto behind = std::ranges::upper_bound(groups, cta, {}, &Group::first_cta);
    return behind == groups.begin() ? nullptr : &*std::prev(behind);
  }
};

struct WorkState {
  enum class Stage : std::uint8_t { kWaiting, kRunning, kDone };
  WorkOrder order;
  Stage stage = Stage::kWaiting;
  WorkKind kind = WorkKind::kKernel;
  bool has_predecessor = false;        ///< in its stream, when it was submitted
  bool predecessor_elsewhere = false;  ///< of a copy: another part of the device does that one
  Cycle predecessor_ended = 0;
  KernelState kernel;
  MemoryUse use;
  LaunchedBy launched_by;
  bool own_queue = false;  ///< as KernelWork has it
  bool queued = false;     ///< a kernel that comes through a hardware queue
  WorkResult result;
  std::uint32_t waiters = 0;             ///< works that have not ended and ask for its end
  mutable std::size_t ended_before = 0;  ///< of order.after, those from the first one on that are known to have ended
  mutable Cycle last_ended = 0;          ///< of those, when the last one did

  WorkView View(WorkId id) const {
    return {.id = id,
            .kind = kind,
            .stream = order.stream,
            .submitted = order.submitted,
            .bytes = result.bytes,
            .source = kernel.source.get(),
            .code = kernel.identity,
            .started = result.started != kNever,
            .after = order.after,
            .memory = kernel.memory.get(),
            .use = use};
  }
};

}  // namespace gridloom::timing
