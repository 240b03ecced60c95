// One kernel at a time: the next one starts when the last thread block of the one before has ended.
#pragma once

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Serial final : public Policy {
 public:
  std::string_view name() const override { return "serial"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
};

}  // namespace gridloom::policy
