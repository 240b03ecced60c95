// How a kernel's time depends on the number of its multiprocessors: what a policy asks a performance model. Policies
// depend on no model; who makes a policy hands one in (scheduler/model/sm_scaling.h).
#pragma once

#include <cstdint>
#include <optional>

namespace gridloom::policy {

class ScalingModel {
 public:
  virtual ~ScalingModel() = default;
  /// What it takes on `sms` multiprocessors, 1 to as many as there are, in any unit that is the same for all of them;
  /// nothing where the kernel is not known. `profile`: KernelView::profile.
  virtual std::optional<double> Time(std::uint64_t profile, std::uint32_t sms) const = 0;
};

}  // namespace gridloom::policy
