#include "scheduler/policy/priority.h"

namespace gridloom::policy {

std::optional<Slice> Priority::Next(const Snapshot& snapshot) {
  const KernelView* best = nullptr;
  for (const KernelView& kernel : snapshot.kernels) {
    if (!kernel.all_started() && (best == nullptr || kernel.priority > best->priority)) best = &kernel;
  }
  if (best == nullptr) return std::nullopt;
  return Slice{.kernel = best->id, .ctas = best->ctas - best->started};
}

}  // namespace gridloom::policy
