#include "sim/hardware/crcs/scoreboard.h"

#include <algorithm>
#include <bit>

#include "sim/timing/sm/memory_instruction.h"

namespace gridloom::hardware::crcs {

using timing::Cycle;
using timing::kNever;

namespace {

void Put(std::uint64_t first, std::uint64_t last, TouchedPages& touched) {
  if (touched.count == 0 || touched.pages[touched.count - 1] != first) touched.pages[touched.count++] = first;
  if (last != first) touched.pages[touched.count++] = last;
}

}  // namespace

void PagesTouched(const timing::MemoryInstruction& instruction, unsigned page_shift, TouchedPages& touched) {
  touched.count = 0;
  const trace::MemoryAccess& access = instruction.access;
  if (access.mask == 0) return;
  const std::uint64_t width = std::max<std::uint64_t>(instruction.op->width, 1);
  if (access.stride >= trace::MemoryAccess::kLeastStride) {
    // Rows of lanes mostly lie in one page.
    const auto at = [&](int lane) {
      return access.base + instruction.shift + static_cast<std::uint64_t>(std::int64_t{access.stride} * lane);
    };
    const std::uint64_t a = at(std::countr_zero(access.mask)), b = at(31 - std::countl_zero(access.mask));
    const std::uint64_t first = std::min(a, b) >> page_shift, last = (std::max(a, b) + width - 1) >> page_shift;
    if (first == last) return Put(first, first, touched);
  }
  std::array<std::uint64_t, trace::kWarpSize> addresses;
  trace::LaneAddresses(*instruction.cta, access, addresses);
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t address = addresses[static_cast<std::size_t>(std::countr_zero(lanes))] + instruction.shift;
    Put(address >> page_shift, (address + width - 1) >> page_shift, touched);
  }
}

/// When SMs know that copies to the device which come before the kernel have brought the page.
Cycle Scoreboard::WhenFilled(OnSm& sm, const PageEntry& entry) {
  const Turn& turn = sm.kernel.turn;
  if (std::ranges::any_of(entry.users, [&](const PageUser& user) { return user.fills && user.turn < turn; })) {
    sm.waits = true;
    return kNever;
  }
  Cycle visible = 0;
  for (const PageEntry::Filled& filled : entry.filled)
    visible = std::max(visible, filled.by < turn ? filled.visible : 0);
  return visible;
}

Cycle Scoreboard::MayTouch(Cycle now, OnSm& sm, std::uint64_t page) {
  std::uint64_t& owned = sm.owned[page % OnSm::kPages];
  if (owned == page) return now;
  const PageEntry* const entry = sm.kernel.table->Find(page);
  if (entry == nullptr) return now;
  if (sm.kernel.tracked && entry->OwnedBy(sm.launch)) {
    if (entry->visible > now) return entry->visible;
    owned = page;
    return now;
  }
  if (sm.kernel.tracked && entry->Has(sm.launch)) {
    sm.awaited.insert(page);
    return kNever;
  }
  // What was not announced cannot be waited for, except that data is on its way.
  return std::max(now, WhenFilled(sm, *entry));
}

Cycle Scoreboard::MayIssue(Cycle now, const timing::GatedAccess& access) {
  const timing::MemoryInstruction& instruction = access.instruction;
  const trace::AccessWindow window =
      trace::WindowOf(instruction.op->space, instruction.op->flags, *instruction.cta, instruction.access);
  if (window.space != trace::Space::kGlobal && window.space != trace::Space::kTexture) return now;
  OnSm& sm = sms_[access.sm];
  if (sm.launch != instruction.launch) {
    const auto kernel = kernels_.find(instruction.launch);
    sm.launch = instruction.launch;
    sm.kernel = kernel == kernels_.end() ? Kernel() : kernel->second;
    sm.owned.fill(~std::uint64_t{0});
    sm.awaited.clear();
  }
  if (sm.kernel.table == nullptr) return now;
  TouchedPages touched;
  PagesTouched(instruction, page_shift_, touched);
  Cycle until = now;
  for (std::uint32_t i = 0; i < touched.count && until != kNever; ++i) {
    until = std::max(until, MayTouch(now, sm, touched.pages[i]));
  }
  return until;
}

}  // namespace gridloom::hardware::crcs
