#include "scheduler/model/kernelet_setup.h"

#include "scheduler/model/bounded_model.h"

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
  setup.planner =
      std::make_shared<GreedyPlanner>(file.sm, profiles, MakeCoRunModel(file.sm, config.model, config.bounds), config.plan, deferred);
  setup.inputs = {.planner = setup.planner, .kernelet = config.policy};
  return setup;
}

}  // namespace gridloom::model
