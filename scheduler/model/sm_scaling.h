// How a kernel's time depends on the number of its multiprocessors, as Kernelet's model says: fewer of them share the
// device's memory, so that each has more of it.
#pragma once

#include <memory>
#include <utility>

#include "scheduler/model/plan.h"
#include "scheduler/model/planner.h"
#include "scheduler/policy/scaling_model.h"

namespace gridloom::model {

/// The same SM where only so many of them want something of the device's memory: 1 to sm.sms.
SmModel WithActiveSms(const SmModel& sm, std::uint32_t active);
/// The same kernel there. Of what accesses wait for (SmModel::first_memory_resource) the first is the SM's own, the
/// others are the device's.
KernelProfile WithActiveSms(const SmModel& sm, const KernelProfile& kernel, std::uint32_t active);

/// Blocks that come in waves, and what of L2 a kernel loses to others, are not in it. Thread-compatible.
class SmScaling final : public policy::ScalingModel {
 public:
  /// `bounds`: as MakeCoRunModel has it.
  SmScaling(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles, const ModelOptions& options, double bounds)
      : sm_(sm), profiles_(std::move(profiles)), options_(options), bounds_(bounds) {}
  std::optional<double> Time(std::uint64_t profile, std::uint32_t sms) const override;

 private:
  SmModel sm_;
  std::shared_ptr<const ProfileTable> profiles_;
  ModelOptions options_;
  double bounds_;
};

}  // namespace gridloom::model
