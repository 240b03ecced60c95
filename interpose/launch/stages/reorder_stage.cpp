// GRIDLOOM_REORDER: the launch waits in its stream for others, and their CTAs run mixed.
#include "interpose/launch/reordering.h"
#include "interpose/launch/stage.h"
#include "interpose/objects/process.h"

namespace gridloom::session {
namespace {

void EnterBatch(EnteringLaunch& launch) {
  if (launch.host_waits) return;
  Context& context = launch.stream.context();
  Reordering& reordering = *Reordering::Of(context.process());
  const auto place = reordering.PlaceOf(context, launch.op);
  if (place == Reordering::Place::kAlone) return;
  reordering.Enter(launch.stream, std::move(launch.op), place);
  launch.entered = true;
}

}  // namespace

extern constexpr Stage kReorderStage{.of = Stage::Of::kHost,
                                     .wants = [](const Process& process) { return Reordering::Of(process) != nullptr; },
                                     .enter = &EnterBatch};

}  // namespace gridloom::session
