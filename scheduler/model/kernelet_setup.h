// All that policies with Need::kProfiles need, put together from profiles and parameters.
#pragma once

#include <memory>

#include "scheduler/model/kernelet_config.h"
#include "scheduler/model/planner.h"
#include "scheduler/model/profile_file.h"
#include "scheduler/policy/builtin.h"

namespace gridloom::model {

struct KerneletSetup {
  std::shared_ptr<const ProfileTable> profiles;  ///< Find(kernel) is KernelView::profile of the kernel's launches
  std::shared_ptr<GreedyPlanner> planner;
  policy::PolicyInputs inputs;  ///< for policy::MakePolicy
};

/// Fails when the SM makes no sense. Profiles may be added to the table later, on the thread that asks the policy.
/// `deferred`: as GreedyPlanner has it, for who decides in real time; there is no planner that learns then, since the
/// profiles' rates are in cycles of their device.
Result<KerneletSetup> SetUpKernelet(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                                    const KerneletConfig& config = {}, bool deferred = false);
/// The same with the profiles of a file; fails when one makes no sense.
Result<KerneletSetup> SetUpKernelet(const ProfileFile& file, const KerneletConfig& config = {}, bool deferred = false);

}  // namespace gridloom::model
