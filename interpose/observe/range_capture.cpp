#include "interpose/observe/range_capture.h"

#include <algorithm>

#include "interpose/base/log.h"
#include "interpose/base/rewrites.h"
#include "interpose/base/settings.h"
#include "interpose/objects/device.h"
#include "interpose/observe/launch_capture.h"
#include "interpose/observe/live_timing.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/timeline.h"
#include "rewriter/support/terminal.h"
#include "sim/exec/ranges/undoable.h"
#include "sim/exec/ranges/written_memory.h"
#include "sim/trace/range_forms.h"

namespace gridloom::session {

using Ranges = trace::LaunchInfo::Ranges;

namespace {

/// So much of the memory that one launch may write is kept at most, to be put back.
constexpr std::uint64_t kMostSaved = std::uint64_t{1} << 30;

bool IsGiven(const std::optional<std::string>& setting) { return setting && !setting->empty(); }

std::string FaultOf(const char* what, const exec::LaunchFault& fault) {
  return std::string("the run of ") + what + " ended with a fault" + (fault.text.empty() ? "" : ": " + fault.text);
}

/// Why the bytes that lie there cannot be put back later.
std::string WhyNotKept(const exec::DeviceMemory& memory, const std::vector<exec::ByteRange>& ranges) {
  if (const std::uint64_t bytes = exec::SavedMemory::BytesOf(ranges); bytes > kMostSaved)
    return "it may write " + SizeText(bytes) + ", and no more than " + SizeText(kMostSaved) +
           " are kept to be put back";
  for (const exec::ByteRange& range : ranges) {
    if (!memory.Accessible(range.begin, range.end - range.begin, true))
      return "some of the memory that it may write is not mapped";
  }
  return {};
}

/// Puts memory back when it goes.
class Undo {
 public:
  explicit Undo(const exec::SavedMemory& saved) : saved_(saved) {}
  ~Undo() { saved_.Restore(); }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

 private:
  const exec::SavedMemory& saved_;
};

/// One alone on the device, from construction on if that could be had.
class AloneTurn {
 public:
  explicit AloneTurn(DeviceTurns& turns) : turns_(turns), alone_(turns.BeginAlone()) {}
  ~AloneTurn() {
    if (alone_) turns_.EndAlone();
  }
  AloneTurn(const AloneTurn&) = delete;
  AloneTurn& operator=(const AloneTurn&) = delete;
  bool alone() const { return alone_; }

 private:
  DeviceTurns& turns_;
  const bool alone_;
};

}  // namespace

passes::RangeForm PassFormOf(Ranges form) {
  return form == Ranges::kStrided ? passes::RangeForm::kStrided : passes::RangeForm::kInterval;
}

// ---- settings

RangeCapture::Wanted RangeCapture::WantedNow(Observers& observers) {
  Wanted wanted{.traced = {}, .timed = LiveTiming::RangesWanted(observers)};
  const Settings& settings = TheSettings();
  if (!IsGiven(settings.ranges) || !IsGiven(settings.trace)) return wanted;
  if (auto forms = trace::ParseRangeForms(*settings.ranges); forms.ok()) wanted.traced = *std::move(forms);
  return wanted;
}

RangeCapture::RangeCapture(Observers& observers, Wanted wanted)
    : observers_(observers), wanted_(std::move(wanted)), forms_(wanted_.traced) {
  if (wanted_.timed && std::ranges::find(forms_, *wanted_.timed) == forms_.end()) forms_.push_back(*wanted_.timed);
}

std::unique_ptr<RangeCapture> RangeCapture::Make(Observers& observers) {
  Wanted wanted = WantedNow(observers);
  if (!wanted.any()) return nullptr;
  return std::unique_ptr<RangeCapture>(new RangeCapture(observers, std::move(wanted)));
}

Status RangeCapture::CheckSetting() {
  const Settings& settings = TheSettings();
  if (IsGiven(settings.ranges)) {
    if (const auto forms = trace::ParseRangeForms(*settings.ranges); !forms.ok())
      return Error{"GRIDLOOM_RANGES is " + forms.error().message};
  }
  return {};
}

// ---- launches

/// Reasons that are known before anything has run.
std::string RangeCapture::WhyNot(const KernelOp& op, Origin origin) {
  if (origin == Origin::kKernel) return "a kernel launches it";
  if (origin == Origin::kGraph) return "it is a node of a graph";
  if (op.cooperative) return "the launch is cooperative";
  if (op.cluster.count() > 1) return "it is launched in clusters";
  const std::lock_guard lock(mutex_);
  ProgramEntry& entry = programs_[op.bound.program];
  if (entry.calls == nullptr) entry.calls = std::make_unique<analysis::CallGraph>(op.bound.program->module());
  const auto [known, added] = entry.why_not.try_emplace(op.bound.info->function);
  if (added) known->second = exec::WhyNotUndoable(*entry.calls, *op.bound.info->function);
  return known->second;
}

exec::RangedKernel RangeCapture::Find(Context& context, const KernelOp& op, Ranges form) {
  std::shared_ptr<exec::RangedProgram> ranged;
  {
    const std::lock_guard lock(mutex_);
    auto& entry = programs_[op.bound.program].forms[form];
    if (entry == nullptr)
      entry = std::make_shared<exec::RangedProgram>(op.bound.program, context.device().memory(), TheRewrites(),
                                                    PassFormOf(form));
    ranged = entry;
  }
  return ranged->Find(std::string(op.bound.info->name));
}

exec::RangedKernel RangeCapture::Expect(Context& context, const KernelOp& op) {
  if (!wanted_.timed) return {};
  std::string why = WhyNot(op, Origin::kStream);
  exec::RangedKernel kernel;
  if (why.empty()) kernel = Find(context, op, *wanted_.timed);
  if (why.empty() && kernel.program == nullptr) why = kernel.why_not;
  if (!why.empty()) Note(op, why);
  return kernel;
}

/// Why the timing model got a launch without its ranges, or nothing: it got them. Whether the reason is new.
bool RangeCapture::Note(const KernelOp& op, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!why.empty()) return outcome_.AddUntracked(op.kernel->name(), why);
  outcome_.AddTracked();
  return false;
}

void RangeCapture::NoteTooLarge(const KernelOp& op, const std::string& why) {
  const std::string with_code = "with release code, " + why;
  if (Note(op, with_code)) Log(LogLevel::kWarn, timing::WhyItDoesNotOverlap(op.kernel->name(), with_code));
}

timing::OverlapOutcome RangeCapture::outcome() const {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

struct RangeCapture::FormRun {
  Context& context;
  const KernelOp& op;
  const exec::LaunchParams& launch;
  Ranges form;
  bool traced;
  RangedLaunch* timed;  ///< null: the timing model does not want it
};

std::string RangeCapture::Run(Context& context, const KernelOp& op, const exec::LaunchParams& launch, Origin origin,
                              bool traced) {
  std::string why = WhyNot(op, origin);
  for (const Ranges form : forms_) {
    const bool in_trace = traced && std::ranges::find(wanted_.traced, form) != wanted_.traced.end();
    RangedLaunch* const timed = form == wanted_.timed ? RangedLaunchOf(op) : nullptr;
    if (!why.empty() || (!in_trace && timed == nullptr)) continue;
    why = RunForm({context, op, launch, form, in_trace, timed});
    if (timed != nullptr) Note(op, why);
  }
  return why;
}

std::string RangeCapture::RunForm(const FormRun& run) {
  const exec::RangedKernel kernel = Find(run.context, run.op, run.form);
  if (kernel.program == nullptr) return kernel.why_not;
  const AloneTurn turn(turns_);
  if (!turn.alone()) return "other work on the device did not come to an end";
  return RunBoth(run, kernel);
}

/// Profiler, and behind it the kernel with release code, which leaves no trace in memory. The calling thread is alone
/// on the device.
std::string RangeCapture::RunBoth(const FormRun& run, const exec::RangedKernel& kernel) {
  const exec::DeviceMemory& memory = run.context.device().memory();
  exec::WrittenMemory written(memory);
  if (std::string why = RunProfiler(run, kernel, written); !why.empty()) return why;
  const std::vector<exec::ByteRange> ranges = written.Ranges();
  if (written.SharedWithHost()) return "it may write memory that the host writes, too (managed, pinned or registered)";
  if (std::string why = WhyNotKept(memory, ranges); !why.empty()) return why;
  return RunReleasing(run, kernel, ranges);
}

std::string RangeCapture::RunProfiler(const FormRun& run, const exec::RangedKernel& kernel,
                                      exec::WrittenMemory& written) {
  std::vector<std::byte> params;
  exec::LaunchParams profile = exec::ProfilerLaunch(run.launch, kernel, params);
  LaunchCapture capture(run.op, ProfilerOf(kernel, run.form), run.traced ? observers_.tracing() : nullptr,
                        run.timed != nullptr ? run.timed->profiler() : nullptr);
  profile.ranges = &written;
  profile.records = capture.sink();
  const exec::LaunchFault fault = run.context.device().engine().Run(profile);
  if (fault.kind != exec::FaultKind::kNone) return FaultOf("its profiler", fault);
  capture.End();
  return {};
}

std::string RangeCapture::RunReleasing(const FormRun& run, const exec::RangedKernel& kernel,
                                       const std::vector<exec::ByteRange>& ranges) {
  const auto saved = exec::SavedMemory::Of(ranges);
  if (!saved) return "the host has no memory to keep what it may write";
  const TracedLaunch what = ReleasingOf(run.op, kernel, run.form);
  const bool timed = run.timed != nullptr && run.timed->Decide(CodeTableOf(what).code, ShapeOf(run.op, what), true);
  LaunchCapture capture(run.op, what, run.traced ? observers_.tracing() : nullptr, timed ? run.op.plan.ctas : nullptr);
  exec::LaunchParams releasing = run.launch;
  releasing.program = kernel.program;
  releasing.kernel = kernel.info;
  releasing.children = nullptr;
  releasing.records = capture.sink();
  exec::LaunchFault fault;
  {
    const Undo undo(*saved);
    fault = run.context.device().engine().Run(releasing);
  }
  if (fault.kind != exec::FaultKind::kNone) return FaultOf("the kernel with release code", fault);
  capture.End();
  return {};
}

}  // namespace gridloom::session
