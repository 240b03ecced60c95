#include "scheduler/policy/serial.h"

namespace gridloom::policy {

std::optional<Slice> Serial::Next(const Snapshot& snapshot) {
  // Finished kernels are not in the snapshot, so its first kernel is the one that runs or the next to run.
  if (snapshot.kernels.empty()) return std::nullopt;
  const KernelView& first = snapshot.kernels.front();
  if (first.all_started()) return std::nullopt;
  return Slice{.kernel = first.id, .ctas = first.ctas - first.started};
}

}  // namespace gridloom::policy
