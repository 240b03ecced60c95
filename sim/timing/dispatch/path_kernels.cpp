#include "sim/timing/dispatch/path_kernels.h"

#include <iterator>
#include <optional>
#include <span>
#include <vector>

namespace gridloom::timing {
namespace {

/// Copies to the device that come before a kernel and have not ended, if nothing else holds it back: engines do copies
/// in their order, so software can tell the device of a kernel by a copy behind them.
std::optional<std::vector<WorkId>> InputsOf(const StreamOrder& works, WorkId id) {
  std::vector<WorkId> inputs;
  for (auto before = works.Blocker(id); before; before = works.Blocker(*before)) {
    const WorkState& work = works.at(*before);
    if (work.kind != WorkKind::kCopyToDevice || !works.at(id).order.after.empty()) return std::nullopt;
    inputs.push_back(*before);
  }
  return inputs;
}

}  // namespace

bool PathKernels::Wants(WorkId kernel) const {
  return ports_.kernel_path != nullptr && ports_.kernel_path->Wants(works_.at(kernel).View(kernel));
}

void PathKernels::Check(Cycle now) {
  for (auto next = waiting_.begin(); next != waiting_.end() && next->first <= now;) {
    const WorkId id = next->second;
    const bool begins = lot_.MayBegin(id, now, false);
    const auto inputs = begins || lot_.has_rules() ? std::nullopt : InputsOf(works_, id);
    if (!begins && !inputs) {
      next = lot_.Park(id) ? waiting_.erase(next) : std::next(next);
      continue;
    }
    next = waiting_.erase(next);
    WorkState& work = works_.at(id);
    work.stage = WorkState::Stage::kRunning;
    reports_.Started(id, now);
    WorkView view = work.View(id);
    view.after = inputs ? std::span<const WorkId>(*inputs) : std::span<const WorkId>();
    ports_.kernel_path->Take(now, view);
  }
}

}  // namespace gridloom::timing
