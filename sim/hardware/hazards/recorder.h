// What happened to memory, as SMs, memory partitions and copies tell of it while they are simulated apart from each
// other, put in the order of time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/timing_spec.h"
#include "sim/timing/ports.h"

namespace gridloom::hardware::hazards {

inline constexpr std::uint64_t kSectorBytes = sim::TimingSpec::kSectorBytes,
                               kLineSectors = sim::TimingSpec::kLineBytes / kSectorBytes;

struct Record {
  enum class Kind : std::uint8_t { kFill, kHit, kAccess };  // in this order within a cycle
  timing::Cycle at = 0;
  std::uint64_t line = 0;      ///< address / 128 as the program has it; of an access
  std::uint64_t physical = 0;  ///< the same in the device's memory
  timing::WorkId work = 0;
  std::uint32_t place = 0;  ///< in the cache: of a fill or hit
  std::uint16_t sm = 0;
  Kind kind = Kind::kAccess;
  std::uint8_t sectors = 0;  ///< mask
  std::uint8_t cache = 0;    ///< of a fill or hit
  bool first = false;        ///< of the lines of its instruction
  bool writes = false;
  bool counts = true;  ///< false: a prefetch, which nobody goes by
};

/// What a copy or fill has moved.
struct Transfer {
  timing::Cycle at = 0;
  timing::WorkId work = 0;
  std::uint32_t space = 0;
  std::uint64_t address = 0, bytes = 0;
  bool writes = false;
};

/// A request that L2 took.
struct Taken {
  std::uint64_t line = 0;  ///< physical
  timing::WorkId work = 0;
  std::uint8_t sectors = 0;
  bool writes = false;
};

class Recorder final : public timing::AccessEvents {
 public:
  Recorder(std::uint32_t sms, std::uint32_t partitions) : sms_(sms), partitions_(partitions) {}

  void OnIssue(timing::Cycle now, const timing::GatedAccess& access) override;
  void OnHit(timing::Cycle now, const timing::CachedSectors& hit) override;
  void OnFill(timing::Cycle now, const timing::CachedSectors& fill) override;
  void OnL2(timing::Cycle, const timing::L2Access& access) override;
  void OnTransfer(timing::Cycle now, timing::WorkId work, std::uint32_t space, std::uint64_t address,
                  std::uint64_t bytes, bool writes) override {
    transfers_.push_back({now, work, space, address, bytes, writes});
  }

  // Between windows.
  /// Accesses of lines of global memory since the last call.
  template <typename Function>
  void ForEachNewAccess(const Function& function) {
    for (OnSm& sm : sms_) {
      for (; sm.told < sm.records.size(); ++sm.told) {
        if (sm.records[sm.told].kind == Record::Kind::kAccess) function(sm.records[sm.told]);
      }
    }
  }
  /// Takes all that happened up to that cycle, in the order of time; within a cycle by work.
  void Take(timing::Cycle until, std::vector<Record>& records, std::vector<Transfer>& transfers);
  /// Takes the requests that L2 took, those of each partition in their order.
  template <typename Function>
  void TakeRequests(const Function& function) {
    for (OnPartition& partition : partitions_) {
      for (const Taken& request : partition.requests) function(request);
      partition.requests.clear();
    }
  }
  std::size_t waiting() const;  ///< that have not been taken

 private:
  /// What belongs to one SM, and so to one thread while a window is simulated.
  struct alignas(64) OnSm {
    std::vector<Record> records;
    std::size_t told = 0;  ///< of `records`
  };
  std::vector<OnSm> sms_;
  struct alignas(64) OnPartition {
    std::vector<Taken> requests;
  };
  std::vector<OnPartition> partitions_;
  std::vector<Transfer> transfers_;
};

}  // namespace gridloom::hardware::hazards
