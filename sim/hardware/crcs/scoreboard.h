// The scoreboard (CRCS paper, section 4.1): a warp's global access issues once its kernel owns all the pages that it
// touches. Kernels that nothing is known of wait until no copy to the device owns the page.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/hardware/crcs/page_table.h"
#include "sim/timing/ports.h"

namespace gridloom::hardware::crcs {

/// Pages that an access touches, rising in the order of lanes, some of them perhaps more than once.
struct TouchedPages {
  std::uint32_t count = 0;
  std::array<std::uint64_t, 2 * trace::kWarpSize> pages;
};
void PagesTouched(const timing::MemoryInstruction& instruction, unsigned page_shift, TouchedPages& touched);

class Scoreboard final : public timing::WarpGate {
 public:
  Scoreboard(std::uint32_t sms, unsigned page_shift) : page_shift_(page_shift), sms_(sms) {}

  /// Between windows: a kernel of which CTAs will start. `tracked`: it owns pages; else it looks at what is ready
  /// alone.
  void Add(const Turn& turn, const PageTable& table, bool tracked) { kernels_[turn.work] = {&table, turn, tracked}; }
  void Forget(timing::WorkId kernel) { kernels_.erase(kernel); }
  /// Between windows: whether the SM has asked for a page that was not announced and waits for a copy, since the last
  /// call.
  bool TakeWaits(std::uint32_t sm) { return std::exchange(sms_[sm].waits, false); }
  /// Between windows: whether a warp of the SM was held back because its kernel did not own this page, which it now
  /// does.
  bool TakeWaitFor(std::uint32_t sm, std::uint64_t page) { return sms_[sm].awaited.erase(page) != 0; }

  timing::Cycle MayIssue(timing::Cycle now, const timing::GatedAccess& access) override;
  /// Pages become visible as time passes, and no longer are when something happens to works.
  bool stays_open() const override { return true; }

 private:
  struct Kernel {
    const PageTable* table = nullptr;
    Turn turn;
    bool tracked = false;
  };
  /// What belongs to one SM, and so to one thread while a window is simulated.
  struct alignas(64) OnSm {
    timing::WorkId launch = timing::kNoWork;
    Kernel kernel;
    bool waits = false;
    // Pages that the launch was found to own. It owns them until none of its CTAs uses them any more.
    static constexpr std::size_t kPages = 64;
    std::array<std::uint64_t, kPages> owned;
    std::unordered_set<std::uint64_t> awaited;  ///< pages that the launch will own later
  };
  static timing::Cycle MayTouch(timing::Cycle now, OnSm& sm, std::uint64_t page);
  static timing::Cycle WhenFilled(OnSm& sm, const PageEntry& entry);

  const unsigned page_shift_;
  std::vector<OnSm> sms_;
  std::unordered_map<timing::WorkId, Kernel> kernels_;
};

}  // namespace gridloom::hardware::crcs
