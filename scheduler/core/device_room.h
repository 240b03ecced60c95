// The multiprocessors of a device, and who holds what of them: how many CTAs have room now.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::sched {

/// CTAs by multiprocessor: what one grant holds.
using Holding = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class DeviceRoom {
 public:
  DeviceRoom(std::uint32_t sms, const policy::SmView& empty) : sms_(sms, empty) {}

  std::span<const policy::SmView> sms() const { return sms_; }

  /// Takes room for up to `want` CTAs, spread evenly, no more than `max_per_sm` of them on one multiprocessor (0: what
  /// fits); answers for how many, adds them to what the launch has there (`resident`), and appends what they hold.
  std::uint64_t Take(const policy::CtaNeeds& needs, std::uint64_t want, std::uint32_t max_per_sm,
                     std::span<std::uint16_t> resident, Holding* holding);
  void Give(const policy::CtaNeeds& needs, const Holding& holding, std::span<std::uint16_t> resident);

 private:
  std::uint64_t TakeUpTo(std::uint32_t per_sm, const policy::CtaNeeds& needs, std::uint64_t want,
                         std::uint32_t max_per_sm, std::span<std::uint16_t> resident, Holding* holding);

  std::vector<policy::SmView> sms_;
  std::uint32_t next_ = 0;  ///< where the next CTA is tried first
};

}  // namespace gridloom::sched
