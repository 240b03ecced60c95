// GRIDLOOM_MEMCHECK: findings in a grid know where it was launched and in which file its code lies, and its uses of
// stream-ordered memory are looked at.
#include "interpose/launch/stage.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::session {
namespace {

/// What a grid uses of memory that is there for part of the work alone.
class GridUses final : public exec::UseOrder {
 public:
  GridUses(MemcheckLog& log, const WorkOriginPtr& origin, const std::string& kernel)
      : log_(log), origin_(origin), kernel_(kernel) {}
  std::string Use(const exec::Allocation& allocation) override {
    return log_.KernelUses(*origin_, allocation, kernel_);
  }

 private:
  MemcheckLog& log_;
  const WorkOriginPtr& origin_;
  const std::string& kernel_;
};

void CheckGrid(RunningLaunch& launch, Next next) {
  MemcheckLog& log = launch.context.process().observers().memcheck();
  const std::shared_ptr<Code> code = launch.op.kernel->code();
  if (code != nullptr) launch.params.library = code->library();
  GridUses uses(log, launch.origin, launch.op.kernel->name());
  if (launch.origin != nullptr && launch.origin->place) launch.params.use_order = &uses;
  const MemcheckLog::LaunchScope scope(launch.origin != nullptr ? launch.origin->stack : nullptr);
  next(launch);
  if (launch.run.fault.kind != exec::FaultKind::kNone)
    log.GridFailed(launch.context.device().engine(), launch.run.fault);
}

}  // namespace

extern constexpr Stage kMemcheckStage{
    .wants = [](const Process& process) { return process.observers().memcheck().on(); }, .run = &CheckGrid};

}  // namespace gridloom::session
