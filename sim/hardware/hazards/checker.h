// What joins clocks of works, the order of accesses and the age of cached lines with the ports.
#pragma once

#include <array>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/hardware/hazards/memory_lines.h"
#include "sim/hardware/hazards/recorder.h"
#include "sim/hardware/hazards/sector_order.h"
#include "sim/hardware/hazards/work_clocks.h"
#include "sim/timing/device_input.h"
#include "sim/timing/memory/address_space.h"
#include "sim/timing/part.h"

namespace gridloom::hardware::hazards {

enum Counter : std::size_t {
  kAccessesChecked,
  kTransfersChecked,
  kEarlyAccesses,
  kRaw,
  kWar,
  kWaw,
  kL2Hazards,
  kStaleReads,
  kCounters
};

/// What is done with the first hazard.
enum class Told : std::uint8_t { kCount, kTell, kStop };

/// Accesses count when they issue, and again when L2 takes them: a store that issues in time may still land too late.
/// What a cache of an SM serves must not be older than another work's write. Writes of the work itself to what its
/// other SMs hold are its own business.
class Checker final : public timing::Part, timing::WorkEvents, timing::CtaEvents, timing::TimedSource {
 public:
  Checker(std::uint32_t sms, std::uint32_t partitions, Told told)
      : told_(told), recorder_(sms, partitions), filled_(sms) {}
  void Attach(timing::Ports& ports, timing::DeviceInput& input) override;
  std::size_t counters() const override { return kCounters; }
  void Count(std::span<std::uint64_t> values) const override;

 private:
  struct Work {
    std::string name;
    std::uint32_t space = 0;
    timing::Cycle started = timing::kNever;  ///< of a kernel: its first CTA
  };
  using Sectors = std::array<timing::Cycle, MemoryLines::kSectors>;
  /// An address space in which there were kernels.
  struct Space {
    timing::AddressSpace memory;
    std::set<std::uint64_t> pages;  ///< of 4 KiB, in which kernels have accessed global memory
    std::uint64_t last = ~std::uint64_t{0};
  };

  // WorkEvents
  void OnWorkGiven(const timing::WorkView& work) override;
  void OnWorkEnd(timing::Cycle now, timing::WorkId work) override;
  // CtaEvents
  void OnCtaStart(timing::Cycle at, const timing::CtaPlace& place) override;
  void OnCtaEnd(const timing::CtaEnd& end) override { Check(end.at); }
  // TimedSource: kernels whose CTAs run long must not fill the memory
  timing::Cycle next() const override { return recorder_.waiting() > kMostWaiting ? 0 : timing::kNever; }
  void Run(timing::Cycle) override { Check(input_->earliest() - 1); }

  void Check(timing::Cycle until);
  void NoteAccess(const Record& access);
  void CheckTransfer(const Transfer& transfer);
  void NoteWritten(const Transfer& transfer);
  void CheckRecord(const Record& record);
  void CheckAccess(const Record& access);
  void CheckHit(const Record& hit);
  void CheckRequests();
  Sectors& FilledAt(const Record& record);
  void Find(timing::WorkId earlier, const Hazard& hazard, std::uint64_t address, std::uint64_t sectors, bool at_l2);
  void Tell(std::string sentence);
  std::string NameOf(timing::WorkId work) const;

  static constexpr std::size_t kMostWaiting = std::size_t{1} << 20;

  const Told told_;
  timing::DeviceInput* input_ = nullptr;
  Recorder recorder_;
  WorkClocks clocks_;
  SectorOrder issued_{clocks_};  ///< by address space and address
  SectorOrder taken_{clocks_};   ///< by physical address
  MemoryLines lines_;
  std::unordered_map<timing::WorkId, Work> works_;  ///< that have not ended
  std::unordered_map<std::uint32_t, Space> spaces_;
  std::vector<Record> records_;                              ///< that are being checked
  std::vector<Transfer> transfers_;                          ///< likewise
  std::vector<std::array<std::vector<Sectors>, 2>> filled_;  ///< by SM, cache and place: when each sector came
  std::array<std::uint64_t, kCounters> counts_{};
  bool has_told_ = false;
};

}  // namespace gridloom::hardware::hazards
