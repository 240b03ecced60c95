// All that the policy `kernelet` needs, put together from profiles and parameters.
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

/// Fails when a profile or the SM makes no sense. `deferred`: as GreedyPlanner has it, for who decides in real time; `kernelet-probing` is
/// `kernelet` there, since the profiles' rates are in cycles of their device.
Result<KerneletSetup> SetUpKernelet(const ProfileFile& file, const KerneletConfig& config = {}, bool deferred = false);

}  // namespace gridloom::model
