// What part of the device a kernel's blocks hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// Blocks of such needs that a multiprocessor has room for.
inline std::uint64_t RoomOf(const SmView& sm, const CtaNeeds& needs) {
  std::uint64_t room = sm.free_ctas;
  const auto within = [&](std::uint64_t free, std::uint64_t need) {
    room = need == 0 ? room : std::min(room, free / need);
  };
  within(sm.free_warps, needs.warps);
  within(sm.free_registers, needs.registers);
  within(sm.free_shared_bytes, needs.shared_bytes);
  return room;
}

/// All there is of each resource: what the multiprocessors have left and what the kernels' blocks hold.
class WholeDevice {
 public:
  explicit WholeDevice(const Snapshot& snapshot) {
    for (const SmView& sm : snapshot.sms) {
      ctas_ += sm.free_ctas;
      warps_ += sm.free_warps;
      registers_ += sm.free_registers;
      shared_bytes_ += sm.free_shared_bytes;
    }
    for (const KernelView& kernel : snapshot.kernels) {
      const std::uint64_t resident = kernel.started - kernel.finished;
      ctas_ += resident;
      warps_ += resident * kernel.needs.warps;
      registers_ += resident * kernel.needs.registers;
      shared_bytes_ += resident * kernel.needs.shared_bytes;
    }
  }

  /// The largest part that the kernel's blocks hold of any resource, or what is known better (KernelView::occupied).
  double PartOf(const KernelView& kernel) const {
    if (kernel.occupied >= 0) return kernel.occupied;
    const std::uint64_t resident = kernel.started - kernel.finished;
    return std::max({Part(resident, ctas_), Part(resident * kernel.needs.warps, warps_),
                     Part(resident * kernel.needs.registers, registers_),
                     Part(resident * kernel.needs.shared_bytes, shared_bytes_)});
  }

 private:
  static double Part(std::uint64_t used, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(used) / static_cast<double>(all);
  }

  std::uint64_t ctas_ = 0, warps_ = 0, registers_ = 0, shared_bytes_ = 0;
};

}  // namespace gridloom::policy
