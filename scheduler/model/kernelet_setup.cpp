#include "scheduler/model/kernelet_setup.h"

#include "scheduler/model/bounded_model.h"
#include "scheduler/model/probing_planner.h"

namespace gridloom::model {

Result<KerneletSetup> SetUpKernelet(const ProfileFile& file, const KerneletConfig& config, bool deferred) {
  GL_TRY_STATUS(Validate(file.sm));
  auto profiles = std::make_shared<ProfileTable>();
  for (const KernelProfile& profile : file.kernels) {
    GL_TRY(id, profiles->Add(profile));
    static_cast<void>(id);
  }
  KerneletSetup setup;
  setup.profiles = profiles;
  const std::shared_ptr<const CoRunModel> model = MakeCoRunModel(file.sm, config.model, config.bounds);
  setup.planner = std::make_shared<GreedyPlanner>(file.sm, profiles, model, config.plan, deferred);
  setup.inputs = {.planner = setup.planner, .learning_planner = setup.planner, .kernelet = config.policy};
  if (!deferred) setup.inputs.learning_planner = std::make_shared<LearningPlanner>(file.sm, profiles, model, config.plan);
  return setup;
}

}  // namespace gridloom::model
