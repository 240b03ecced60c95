// What the SMs of a device have room for, and which of them gets the next CTA.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/policy/policy.h"
#include "sim/timing/cta.h"
#include "sim/timing/parameters.h"
#include "sim/timing/ports.h"

namespace gridloom::timing {

class CtaPlacement {
 public:
  CtaPlacement(const Parameters& parameters, const Ports& ports);

  const std::vector<policy::SmView>& sms() const { return sms_; }
  /// Where the next CTA of the slice goes; nothing: nowhere now. `limited`: an SM would have taken it but for a limit
  /// of a part.
  std::optional<Placement> Choose(Cycle now, const policy::KernelView& kernel, const policy::Slice& slice,
                                  bool& limited) const;
  struct Taken {
    Cycle at = 0;  ///< the CTA's first cycle
    std::uint16_t slot = 0;
  };
  /// Takes the room, and the dispatcher's time for a decision.
  Taken Take(Cycle now, std::uint32_t sm, const policy::CtaNeeds& needs);
  void Release(std::uint32_t sm, std::uint16_t slot, const policy::CtaNeeds& needs);

 private:
  const Parameters& parameters_;
  const Ports& ports_;
  std::vector<policy::SmView> sms_;
  std::vector<std::vector<std::uint16_t>> free_slots_;  // by SM, the next one last
  std::uint32_t next_sm_ = 0;
  Cycle next_decision_ = 0;
};

}  // namespace gridloom::timing
