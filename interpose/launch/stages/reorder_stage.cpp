// GRIDLOOM_REORDER: the launch waits in its stream for others, and their CTAs run mixed.
#include "interpose/launch/reordering.h"
#include "interpose/launch/stage.h"

namespace gridloom::session {
namespace {

void EnterBatch(EnteringLaunch& launch) {
  if (launch.host_waits) return;
  Context& context = launch.stream.context();
  const auto place = Reordering::Get()->PlaceOf(context, launch.op);
  if (place == Reordering::Place::kAlone) return;
  Reordering::Get()->Enter(launch.stream, std::move(launch.op), place);
  launch.entered = true;
}

}  // namespace

extern constexpr Stage kReorderStage{
    .of = Stage::Of::kHost, .wants = [] { return Reordering::Get() != nullptr; }, .enter = &EnterBatch};

}  // namespace gridloom::session
