// Kernels of the highest priority first, in the order in which they became ready; the others get what is left over. A
// block of a more urgent kernel that has no room holds back the less urgent kernels.
#pragma once

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Priority final : public Policy {
 public:
  std::string_view name() const override { return "priority"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
};

}  // namespace gridloom::policy
