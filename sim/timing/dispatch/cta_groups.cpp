#include "sim/timing/dispatch/cta_groups.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {

Status CtaGroups::Extend(WorkId id, std::shared_ptr<trace::CtaSource> group) {
  GL_TRY(code, codes_.DecodedOf(group->code()));
  GL_TRY_STATUS(CheckLike(id, *group, *code->decoded));
  Append(id, {.source = std::move(group)});
  return {};
}

Status CtaGroups::Join(WorkId id, WorkId launch) {
  WorkState& joins = works_.at(launch);
  if (joins.kernel.source == nullptr || joins.stage != WorkState::Stage::kWaiting)
    return Error{"a launch joins a kernel that has begun"};
  GL_TRY_STATUS(CheckLike(id, *joins.kernel.source, *joins.kernel.code->decoded));
  joins.stage = WorkState::Stage::kRunning;
  const auto kernel = ready_.Find(id);
  const bool unmarked = kernel != ready_.end() && kernel->all_started();
  Append(id, {.source = joins.kernel.source, .work = launch, .left = joins.result.ctas});
  if (unmarked) ready_.MoveBehindOthers(kernel);
  return {};
}

/// Whether a group of CTAs may become part of a kernel. `code`: of the group.
Status CtaGroups::CheckLike(WorkId id, const trace::CtaSource& group, const DecodedCode& code) const {
  if (works_.done(id)) return Error{"a group of CTAs was given to kernel " + std::to_string(id) + ", which has ended"};
  const WorkState& work = works_.at(id);
  const std::string& name = group.code().name;
  if (work.kind != WorkKind::kKernel || name != work.result.name || !IsSame(code, *work.kernel.code->decoded)) {
    return Error{"a group of CTAs of " + name + " was given to " + work.result.name + ", which has other code"};
  }
  GL_TRY(needs, NeedsOf(group.shape(), parameters_.device));
  if (needs.warps != work.kernel.needs.warps || needs.registers != work.kernel.needs.registers ||
      needs.shared_bytes != work.kernel.needs.shared_bytes) {
    return Error{"a group of CTAs was given to " + work.result.name + " that need something else than its own"};
  }
  return {};
}

void CtaGroups::Append(WorkId id, KernelState::Group group) {
  WorkState& work = works_.at(id);
  const std::uint64_t ctas = group.source->shape().ctas;
  if (group.work == kNoWork) work.result.ctas += ctas;
  group.first_cta = work.kernel.ctas;
  work.kernel.groups.push_back(std::move(group));
  work.kernel.ctas += ctas;
  const auto kernel = ready_.Find(id);
  if (kernel != ready_.end()) kernel->ctas = work.kernel.ctas;
}

std::vector<WorkId> CtaGroups::Cut(policy::KernelView& kernel, Cycle now) {
  WorkState& work = works_.at(static_cast<WorkId>(kernel.id));
  const std::uint64_t started = kernel.started;
  kernel.ctas = work.kernel.ctas = started;
  work.result.ctas = std::min(work.result.ctas, started);
  if (work.result.started == kNever) work.result.started = now;
  std::vector<WorkId> over;
  for (KernelState::Group& group : std::views::reverse(work.kernel.groups)) {
    if (group.work == kNoWork || group.left == 0) continue;
    const std::uint64_t ctas = works_.at(group.work).result.ctas;
    const std::uint64_t there = std::min(started > group.first_cta ? started - group.first_cta : 0, ctas);
    group.left -= ctas - there;
    works_.at(group.work).result.ctas = there;
    if (group.left == 0) over.push_back(group.work);
  }
  return over;
}

}  // namespace gridloom::timing
