#include "scheduler/model/kernelet_setup.h"

#include "scheduler/model/bounded_model.h"
#include "scheduler/model/probing_planner.h"
#include "scheduler/model/sm_scaling.h"

namespace gridloom::model {

Result<KerneletSetup> SetUpKernelet(const ProfileFile& file, const KerneletConfig& config, bool deferred) {
  auto profiles = std::make_shared<ProfileTable>();
  for (const KernelProfile& profile : file.kernels) {
    GL_TRY(id, profiles->Add(profile));
    static_cast<void>(id);
  }
  return SetUpKernelet(file.sm, std::move(profiles), config, deferred);
}

Result<KerneletSetup> SetUpKernelet(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                                    const KerneletConfig& config, bool deferred) {
  GL_TRY_STATUS(Validate(sm));
  KerneletSetup setup;
  setup.profiles = profiles;
  const std::shared_ptr<const CoRunModel> model = MakeCoRunModel(sm, config.model, config.bounds);
  setup.planner = std::make_shared<GreedyPlanner>(sm, profiles, model, config.plan, deferred);
  setup.inputs = {.planner = setup.planner, .kernelet = config.policy};
  setup.inputs.scaling = std::make_shared<SmScaling>(sm, profiles, config.model, config.bounds);
  if (!deferred) setup.inputs.learning_planner = std::make_shared<LearningPlanner>(sm, profiles, model, config.plan);
  return setup;
}

}  // namespace gridloom::model
