// What Fermi and Kepler do: thread blocks start in the order of the kernels, and a later kernel gets only what is left
// over once the last block of every earlier one has started. A block that has no room holds back the later kernels,
// too.
#pragma once

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

class Leftover final : public Policy {
 public:
  /// Under another name where something else goes with it (sim/hardware/pagoda).
  explicit Leftover(std::string_view name = "leftover") : name_(name) {}
  std::string_view name() const override { return name_; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;

 private:
  const std::string_view name_;
};

}  // namespace gridloom::policy
