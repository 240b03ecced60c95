#include "scheduler/model/kernelet_setup.h"

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
      std::make_shared<GreedyPlanner>(file.sm, profiles, std::make_shared<MarkovModel>(file.sm, config.model), config.plan, deferred);
  setup.inputs = {.planner = setup.planner, .kernelet = config.policy};
  return setup;
}

}  // namespace gridloom::model
