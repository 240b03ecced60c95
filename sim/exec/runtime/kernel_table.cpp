#include "sim/exec/runtime/kernel_table.h"

#include <algorithm>
#include <utility>

namespace gridloom::exec {

bool KernelTable::Slot::MatchesButForBlock(const CompileOptions& options) const {
  return small_grid == options.small_grid && clusters == options.clusters && memcheck == options.memcheck && record == options.record;
}

bool KernelTable::Slot::Matches(const CompileOptions& options) const {
  return std::ranges::equal(block, options.block) && MatchesButForBlock(options);
}

std::shared_ptr<KernelTable::Slot> KernelTable::SlotFor(const ptx::Function* function, CompileOptions& options) {
  const std::lock_guard lock(mutex_);
  auto& slots = slots_[function];
  const auto find = [&] { return std::ranges::find_if(slots, [&](const auto& slot) { return slot->Matches(options); }); };
  auto it = find();
  if (it == slots.end() && options.record == Recording::kNone && IsRowOfWarps(options.block)) {
    const auto alike = std::ranges::count_if(slots, [&](const auto& slot) { return slot->MatchesButForBlock(options); });
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

void KernelTable::Slot::To(State next) {
  {
    const std::lock_guard lock(mutex);
    state = next;
  }
  changed.notify_all();
}

void KernelTable::Slot::Done(Result<LoadedKernel> built) {
  {
    const std::lock_guard lock(mutex);
    if (built) kernel = std::make_unique<LoadedKernel>(std::move(*built));
    else error = built.error().message;
    state = State::kDone;
  }
  changed.notify_all();
}

Result<KernelTable::Found> KernelTable::Get(const ptx::Function* function, const CompileOptions& wanted, const Build& build) {
  CompileOptions options = wanted;
  const std::shared_ptr<Slot> slot = SlotFor(function, options);
  std::unique_lock lock(slot->mutex);
  const bool builds = slot->state == Slot::State::kNone;
  if (builds) {
    slot->state = Slot::State::kBegun;
    lock.unlock();
    slot->Done(build(options));
    lock.lock();
  }
  slot->changed.wait(lock, [&] { return slot->state == Slot::State::kDone; });
  if (!slot->kernel) return Error{slot->error};
  return Found{slot->kernel.get(), builds};
}

Status KernelTable::Begin(const ptx::Function* function, const CompileOptions& wanted, const BeginBuild& begin, const Later& later) {
  CompileOptions options = wanted;
  const std::shared_ptr<Slot> slot = SlotFor(function, options);
  std::unique_lock lock(slot->mutex);
  if (slot->state == Slot::State::kNone) {
    slot->state = Slot::State::kBegun;
    lock.unlock();
    Result<Begun> begun = begin(options);
    if (!begun) {
      slot->Done(std::move(begun).error());
    } else if (auto* const kernel = std::get_if<LoadedKernel>(&*begun)) {
      slot->Done(std::move(*kernel));
    } else {
      slot->To(Slot::State::kCertain);
      later([slot, rest = std::get<Rest>(std::move(*begun))] { slot->Done(rest()); });
    }
    lock.lock();
  }
  slot->changed.wait(lock, [&] { return slot->state >= Slot::State::kCertain; });
  if (slot->state == Slot::State::kDone && !slot->kernel) return Error{slot->error};
  return {};
}

}  // namespace gridloom::exec
