// The copy engines of a device, the host's storage, and what copies and fills take.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/timing/parameters.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

/// One engine serves both directions over PCIe; with more, one serves each. Behind them come one that copies and fills
/// on the device, one after the other, launched like kernels; and two drives of the host's, from which it reads and to
/// which it writes.
class CopyEngines {
 public:
  explicit CopyEngines(const Parameters& parameters);

  std::size_t EngineOf(WorkKind kind) const;
  std::size_t count() const { return busy_.size(); }
  bool on_device(std::size_t engine) const { return engine == on_device_; }
  bool busy(std::size_t engine) const { return busy_[engine]; }
  void Take(std::size_t engine) { busy_[engine] = true; }
  void Free(std::size_t engine) { busy_[engine] = false; }

  /// Copies over PCIe have a latency and their bytes; those on the device move at 7/8 of DRAM's peak, as copying
  /// kernels do.
  Cycle Cycles(const WorkResult& copy) const;
  /// Until its engine takes the next one.
  Cycle BusyCycles(const WorkResult& copy) const;
  /// Besides, of both, where the copy has to hear that works elsewhere have ended (WaitingCopies).
  Cycle HandoverCycles() const;
  static bool OverPcie(WorkKind kind) { return kind == WorkKind::kCopyToDevice || kind == WorkKind::kCopyToHost; }

 private:
  Cycle PcieCycles(const WorkResult& copy, std::uint64_t ns) const;

  const Parameters& parameters_;
  const std::size_t on_device_;
  std::vector<bool> busy_;
};

}  // namespace gridloom::timing
