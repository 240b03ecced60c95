#include "sim/exec/runtime/kernel_table.h"

#include <algorithm>
#include <utility>

namespace gridloom::exec {

bool KernelTable::Slot::MatchesButForBlock(const CompileOptions& options) const {
  return small_grid == options.small_grid && clusters == options.clusters && memcheck == options.memcheck &&
         record == options.record;
}

bool KernelTable::Slot::Matches(const CompileOptions& options) const {
  return std::ranges::equal(block, options.block) && MatchesButForBlock(options);
}

std::shared_ptr<KernelTable::Slot> KernelTable::SlotFor(const ptx::Function* function, CompileOptions& options) {
  const std::lock_guard lock(mutex_);
  auto& slots = slots_[function];
  const auto find = [&] {
    return std::ranges::find_if(slots, [&](const auto& slot) { return slot->Matches(options); });
  };
  auto it = find();
  if (it == slots.end() && options.record == Recording::kNone && IsRowOfWarps(options.block)) {
    const auto alike =
        std::ranges::count_if(slots, [&](const auto& slot) { return slot->MatchesButForBlock(options); });
    if (static_cast<std::size_t>(alike) >= kOwnShapes) {
      std::ranges::copy(kRowOfWarps, options.block);
      it = find();
    }
  }
  if (it == slots.end() && slots.size() >= kMaxShapes) {
    std::ranges::fill(options.block, 0u);
    it = find();
  }
  if (it != slots.end()) return *it;
  auto slot = std::make_shared<Slot>();
  std::ranges::copy(options.block, slot->block);
  slot->small_grid = options.small_grid;
  slot->clusters = options.clusters;
  slot->memcheck = options.memcheck;
  slot->record = options.record;
  slots.push_back(slot);
  return slot;
}

Result<KernelTable::Found> KernelTable::Get(const ptx::Function* function, const CompileOptions& wanted,
                                            const Build& build) {
  CompileOptions options = wanted;
  const std::shared_ptr<Slot> slot = SlotFor(function, options);
  bool built_now = false;
  if (!slot->settled.load(std::memory_order_acquire)) {
    const std::lock_guard lock(slot->building);
    if (!slot->settled.load(std::memory_order_relaxed)) {
      built_now = true;
      Built built = build(options);
      if (!built.kernel.ok() && !built.lasts) return std::move(built.kernel).error();
      if (built.kernel.ok()) slot->kernel = std::make_unique<LoadedKernel>(std::move(*built.kernel));
      else slot->error = built.kernel.error().message;
      slot->settled.store(true, std::memory_order_release);
    }
  }
  if (!slot->kernel) return Error{slot->error};
  if (slot->kernel->tier)
    if (const LoadedKernel* const better = slot->kernel->tier->better.load(std::memory_order_acquire))
      return Found{better, false};
  return Found{slot->kernel.get(), built_now};
}

}  // namespace gridloom::exec
