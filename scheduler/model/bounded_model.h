// The Markov chain of Kernelet knows one pipeline and one memory. Kernels that fill something else of an SM first (the
// load/store unit with shared memory, the way into the SM, the rows that DRAM can open) run slower than it says; this
// takes the chain's answer and keeps it within what the resources allow (KernelProfile::demands). Not in the paper;
// bounds of 0 turn it off.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/model/plan.h"

namespace gridloom::model {

class BoundedModel final : public CoRunModel {
 public:
  /// `usable`: part of a resource that can be in use all the time, above 0 and at most 1; what asks for it does not
  /// come evenly.
  BoundedModel(const SmModel& sm, const ModelOptions& options, double usable) : markov_(sm, options), usable_(usable) {}
  double Alone(const KernelProfile& kernel) const override;
  std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                std::uint32_t ctas_b) const override;

 private:
  MarkovModel markov_;
  double usable_;
};

/// What Kernelet decides with, wherever it works or is measured. `bounds`: as BoundedModel's `usable`; 0: the chain
/// alone, as in the paper.
std::shared_ptr<const CoRunModel> MakeCoRunModel(const SmModel& sm, const ModelOptions& options, double bounds);

/// IPC of two kernels that want `ipc`, where what they take together of a resource is more than `usable`: each gives
/// way in proportion to its part of the load, so that who does not use the resource keeps its IPC. `a`, `b`: demands of
/// each; missing ones are 0.
std::array<double, 2> WithinBounds(std::array<double, 2> ipc, const std::vector<double>& a,
                                   const std::vector<double>& b, double usable = 1);

}  // namespace gridloom::model
