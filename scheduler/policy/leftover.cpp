#include "scheduler/policy/leftover.h"

namespace gridloom::policy {

std::optional<Slice> Leftover::Next(const Snapshot& snapshot) {
  for (const KernelView& kernel : snapshot.kernels) {
    if (!kernel.all_started()) return Slice{.kernel = kernel.id, .ctas = kernel.ctas - kernel.started};
  }
  return std::nullopt;
}

}  // namespace gridloom::policy
