// The Markov chain of Kernelet knows one pipeline and one memory. Kernels that fill something else of an SM first (the load/store unit with
// shared memory, the way into the SM, the rows that DRAM can open) run slower than it says; this takes the chain's answer and keeps it
// within what the resources allow. Not in the paper; model.bounds of an experiment turns it off.
#pragma once

#include <map>
#include <string>

#include "interpose/launcher/experiment/profiling.h"
#include "scheduler/model/plan.h"

namespace gridloom::experiment {

class BoundedModel final : public model::CoRunModel {
 public:
  /// Demands of every kernel that will be asked about, by name. `usable`: part of a resource that can be in use all the time, at most 1;
  /// what asks for it does not come evenly.
  BoundedModel(const model::SmModel& sm, std::map<std::string, Demands> demands, double usable);
  double Alone(const model::KernelProfile& kernel) const override;
  std::optional<std::array<double, 2>> Together(const model::KernelProfile& a, std::uint32_t ctas_a, const model::KernelProfile& b,
                                                std::uint32_t ctas_b) const override;

 private:
  model::MarkovModel markov_;
  std::map<std::string, Demands> demands_;
};

/// IPC of two kernels that want `ipc`, where what they take together of a resource is more than there is: each gives way in proportion
/// to its part of the load, so that who does not use the resource keeps its IPC.
std::array<double, 2> WithinBounds(std::array<double, 2> ipc, const Demands& a, const Demands& b);

}  // namespace gridloom::experiment
