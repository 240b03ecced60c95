// A stage of a launch: what one feature does with it, from the call that makes it to the end of its grid. The list of
// all of them, and what their order means, is stages.def. A stage is a file of its own, which nobody includes.
#pragma once

#include <memory>
#include <string>

#include "interpose/objects/operation.h"
#include "sim/exec/slices/slices.h"

namespace gridloom::session {

class BrokeredLaunch;
class Process;
struct LaunchRequest;

/// A launch that is being made: checked, its parameters copied.
struct PlannedLaunch {
  Context& context;
  const LaunchRequest& request;
  KernelOp& op;
  /// It may run in parts that others name, and whole, too.
  bool in_parts = false;
  /// Forms that are compiled before the call returns.
  bool compile_whole = true, compile_sliced = false;
};

/// A launch that is put into a stream.
struct EnteringLaunch {
  Stream& stream;
  KernelOp& op;
  const bool host_waits;     ///< for it, or until it is known to be over
  const std::uint64_t lane;  ///< of its task
  TaskPtr task = {};         ///< the one that runs it, where a stage has made it
  bool entered = false;      ///< a stage has put it into the stream
};

/// A launch whose turn has come, on the thread that runs it.
struct RunningLaunch {
  Context& context;
  const KernelOp& op;
  const WorkOriginPtr& origin;  ///< null where nobody asks
  const bool by_kernel;         ///< a grid has launched it
  exec::LaunchParams params;    ///< what the engine is told
  exec::SlicedRun run = {};     ///< what came of it
  bool ran = false;             ///< its context had not failed

  // What stages leave for those inside of them.
  BrokeredLaunch* brokered = nullptr;  ///< its place at the broker
  bool traced = false;                 ///< it goes to the trace file
  std::string no_ranges = {};          ///< why no ranges were captured before it
};

/// The stages inside of one, and at last the engine.
class Next {
 public:
  using Run = void (*)(RunningLaunch& launch, Next next);
  explicit Next(const Run* rest) : rest_(rest) {}
  void operator()(RunningLaunch& launch) const { (*rest_)(launch, Next(rest_ + 1)); }

 private:
  const Run* rest_;
};

/// Whatever a stage has nothing to do with is null.
struct Stage {
  /// Of which launches: all, or those of the host alone. Grids that a kernel launches are part of its launch.
  enum class Of : std::uint8_t { kAll, kHost };
  Of of = Of::kAll;
  /// Whether the process has the stage: asked once, before the first launch. Null: every process has.
  bool (*wants)(const Process& process) = nullptr;
  /// The launch is made. An error is the answer of the call that makes it.
  cuda::CUresult (*plan)(PlannedLaunch& launch) = nullptr;
  /// It is put into a stream, after the program's timeline has been told. The first stage that makes a task of it, or
  /// puts it there, is the last one that is asked.
  void (*enter)(EnteringLaunch& launch) = nullptr;
  /// It runs: what there is to do before and after `next(launch)`, or in place of it.
  Next::Run run = nullptr;
  /// Its grid has run, and so has all that the grid launched.
  void (*ended)(Context& context, const KernelOp& op) = nullptr;
};

}  // namespace gridloom::session
