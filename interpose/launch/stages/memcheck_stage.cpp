// GRIDLOOM_MEMCHECK: findings in a grid know where it was launched and in which file its code lies, and its uses of
// stream-ordered memory are looked at.
#include <atomic>

#include "interpose/launch/stage.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::session {
namespace {

/// What a grid uses of memory that is there for part of the work alone, and what it and the host may tell each other by
/// flags: a grid that makes fences or strong accesses and reads what the host can write may come after all that the
/// host had seen, and one that writes what the host can read may have told it all that it has done. Strong accesses of
/// one instruction are told of once, so both count for as long as the grid runs.
class GridUses final : public exec::UseOrder {
 public:
  GridUses(MemcheckLog& log, const WorkOriginPtr& origin, const std::string& kernel)
      : log_(log), origin_(origin), kernel_(kernel) {}

  std::string Use(const exec::Allocation& allocation) override {
    Look();
    return log_.KernelUses(*origin_, allocation, kernel_);
  }
  void ShareWithHost(bool reads, bool writes) override {
    if (reads) reads_ = true;
    if (writes) writes_ = true;
    Tell();
  }
  void Fence() override {
    fences_ = true;
    Tell();
  }
  /// What comes behind the grid has learned from it what it has seen.
  void Look() {
    if (reads_ && fences_) log_.LooksAtHost(*origin_);
  }

 private:
  void Tell() {
    if (writes_ && fences_ && !told_.exchange(true)) log_.TellsHost(*origin_);
  }

  MemcheckLog& log_;
  const WorkOriginPtr& origin_;
  const std::string& kernel_;
  std::atomic<bool> reads_ = false, writes_ = false, fences_ = false, told_ = false;
};

void CheckGrid(RunningLaunch& launch, Next next) {
  MemcheckLog& log = launch.context.process().observers().memcheck();
  const std::shared_ptr<Code> code = launch.op.kernel->code();
  if (code != nullptr) launch.params.library = code->library();
  GridUses uses(log, launch.origin, launch.op.kernel->name());
  if (launch.origin != nullptr && launch.origin->place) launch.params.use_order = &uses;
  const MemcheckLog::LaunchScope scope(launch.origin != nullptr ? launch.origin->stack : nullptr);
  next(launch);
  if (launch.params.use_order != nullptr) uses.Look();
  if (launch.run.fault.kind != exec::FaultKind::kNone)
    log.GridFailed(launch.context.device().engine(), launch.run.fault);
}

}  // namespace

extern constexpr Stage kMemcheckStage{
    .wants = [](const Process& process) { return process.observers().memcheck().on(); }, .run = &CheckGrid};

}  // namespace gridloom::session
