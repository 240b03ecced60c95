// The MasterKernel (rewriter/passes/master_kernel.h) as the model runs it: its code, where its tables are, and the
// tasks in them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "rewriter/kernels/task_records.h"
#include "rewriter/support/result.h"
#include "sim/hardware/pagoda/resident_code.h"
#include "sim/timing/device_input.h"
#include "sim/timing/ports.h"
#include "sim/timing/sm/decoded_code.h"

namespace gridloom::hardware::pagoda {

using timing::Cycle;
using Entry = passes::task::Entry;

/// Kernels of a MasterKernel; those of a program that come later are launched as they were.
inline constexpr std::uint32_t kMostKernels = 64;

/// Where it keeps what in global memory: an address space of its own.
inline constexpr std::uint64_t kTableAt = std::uint64_t{1} << 32, kControlAt = kTableAt - (std::uint64_t{1} << 24);
inline constexpr std::uint32_t kAddressSpace = 0x7000'0000;

/// How it is launched.
struct MasterShape {
  std::uint32_t columns = 0;  ///< blocks of it
  std::uint32_t rows = 32;
  std::uint32_t warps = 32;  ///< of a block, the scheduler's among them
  std::uint32_t pool_bytes = 32 << 10;
  std::uint32_t entry_bytes = 256;
  bool polls = false;  ///< warps without a task look for one all the time; else they are woken
  /// Scheduler warps whose looks at their column have found nothing for some time only tell the time, until one would
  /// find something.
  bool parks_schedulers = false;
  std::uint32_t entries() const { return columns * rows; }
};

/// The MasterKernel's code, for devices of one architecture.
struct Master {
  resident::ResidentCode code;
  std::shared_ptr<const timing::DecodedCode> decoded;
  std::uint16_t wait = 0;  ///< the block in which a warp without a task looks for one
  std::uint16_t scan = 0;  ///< the block with which a scheduler warp begins to look at its column
};
/// `sm`: the target's number, such as 52.
Result<std::shared_ptr<const Master>> MakeMaster(unsigned sm, const sim::TimingSpec& timing);

/// A word of the table that somebody has written: seen by others from `seen` on.
struct TableWrite {
  Cycle seen = 0;
  std::uint32_t entry = 0, field = 0, value = 0;
  std::uint32_t sm = kHost;  ///< who wrote it
  static constexpr std::uint32_t kHost = ~0u;
  static constexpr std::uint32_t kControl = ~0u;  ///< a field: the word that ends the MasterKernel
};

/// A kernel that runs as a task: what the host has put into an entry, and what became of it. One SM has it while it
/// runs.
struct Task {
  timing::WorkId work = 0;
  const timing::DeviceInput* input = nullptr;            ///< that it is loaded from
  std::vector<timing::WorkId> inputs;                    ///< copies to the device that it comes behind
  std::array<std::uint32_t, sizeof(Entry) / 4> words{};  ///< of its entry, but for the two that change
  std::vector<timing::FedBlock> blocks;
  std::shared_ptr<const timing::DecodedCode> code;
  Cycle started = timing::kNever;
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
};

/// The kernel that a runtime takes up, with all its CTAs; none of them: it was cancelled.
Result<std::shared_ptr<Task>> LoadTask(timing::DeviceInput& input, const timing::WorkView& kernel);

/// Before its first warp begins a block. Of a kernel that nobody wants any more it has nothing to do then; blocks that
/// run are cut short by the SM (Engine::Cancel).
void DropIfCancelled(const Task& task, timing::FedBlock& block);

}  // namespace gridloom::hardware::pagoda
