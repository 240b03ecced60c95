#include "sim/timing/dispatch/cta_starts.h"

#include <utility>

namespace gridloom::timing {

Result<CtaStarts::Placed> CtaStarts::Place(Cycle now, policy::KernelView& kernel, const policy::Slice& slice,
                                           const StartCta& start) {
  bool limited = false;
  const auto chosen = placement_.Choose(now, kernel, slice, limited);
  if (!chosen) return limited ? Placed::kLimited : Placed::kNoRoom;
  const auto launch = static_cast<std::uint32_t>(kernel.id);
  WorkState& work = works_.at(launch);
  GL_TRY(cta, work.kernel.Load(chosen->cta));
  if (cta.trace == nullptr) return Placed::kNoMore;
  const CtaPlacement::Taken taken = placement_.Take(now, chosen->sm, kernel.needs);
  const CtaPlace place{.launch = launch, .sm = chosen->sm, .slot = taken.slot, .cta = chosen->cta};
  reports_.Started(launch, taken.at);
  const KernelState::Group* const group = work.kernel.GroupOf(chosen->cta);
  if (group != nullptr && group->work != kNoWork) reports_.Started(group->work, taken.at);
  ++work.kernel.resident[chosen->sm];
  for (CtaEvents* const listener : ports_.cta_events) listener->OnCtaStart(taken.at, place);
  if (observer_ != nullptr) observer_->OnCtaStart(taken.at, place);
  start(chosen->sm, {.at = taken.at,
                     .cta = chosen->cta,
                     .launch = launch,
                     .slot = taken.slot,
                     .trace = std::move(cta.trace),
                     .shifts = std::move(cta.shifts),
                     .code = work.kernel.code->decoded.get(),
                     .memory = work.kernel.memory.get()});
  ++kernel.started;
  return Placed::kYes;
}

void CtaStarts::Release(const CtaEnd& end) {
  KernelState& kernel = works_.at(end.launch).kernel;
  --kernel.resident[end.sm];
  placement_.Release(end.sm, end.slot, kernel.needs);
}

}  // namespace gridloom::timing
