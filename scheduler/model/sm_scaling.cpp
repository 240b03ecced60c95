#include "scheduler/model/sm_scaling.h"

#include "scheduler/model/bounded_model.h"

namespace gridloom::model {

SmModel WithActiveSms(const SmModel& sm, std::uint32_t active) {
  SmModel changed = sm;
  changed.requests_per_cycle *= static_cast<double>(sm.sms) / active;
  return changed;
}

KernelProfile WithActiveSms(const SmModel& sm, const KernelProfile& kernel, std::uint32_t active) {
  KernelProfile changed = kernel;
  if (sm.first_memory_resource == 0) return changed;
  for (std::size_t i = sm.first_memory_resource + 1; i < changed.demands.size(); ++i)
    changed.demands[i] *= static_cast<double>(active) / sm.sms;
  return changed;
}

std::optional<double> SmScaling::Time(std::uint64_t profile, std::uint32_t sms) const {
  const KernelProfile* const kernel = profiles_->Get(profile);
  if (kernel == nullptr || sms == 0 || sms > sm_.sms) return std::nullopt;
  const double ipc =
      MakeCoRunModel(WithActiveSms(sm_, sms), options_, bounds_)->Alone(WithActiveSms(sm_, *kernel, sms));
  return ipc > 0 ? std::optional(1 / (ipc * sms)) : std::nullopt;
}

}  // namespace gridloom::model
