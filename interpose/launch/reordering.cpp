#include "interpose/launch/reordering.h"

#include <cstdlib>

#include "interpose/base/at_end.h"
#include "interpose/base/log.h"
#include "interpose/base/rewrites.h"
#include "interpose/base/settings.h"
#include "interpose/base/summary.h"
#include "interpose/launch/launches.h"
#include "interpose/objects/errors.h"
#include "interpose/objects/process.h"
#include "interpose/observe/work_memory.h"
#include "rewriter/passes/cta_order.h"
#include "sim/exec/reorder/cta_chooser.h"
#include "sim/exec/slices/slices.h"

namespace gridloom::session {
namespace {

/// A parameter points to memory that the host reaches: it may look there for results at any time.
bool PointsToHostMemory(const exec::DeviceMemory& memory, const KernelOp& op) {
  return PointsInto(memory, op, {exec::MemoryKind::kPinned, exec::MemoryKind::kRegistered, exec::MemoryKind::kManaged});
}

}  // namespace

std::unique_ptr<Reordering> Reordering::Make() {
  const auto& text = TheSettings().reorder;
  const auto setting = text ? exec::ParseReorder(*text) : std::nullopt;
  if (!setting) return nullptr;
  std::unique_ptr<Reordering> reordering(new Reordering(*setting));
  AtEnd([reordering = reordering.get()] { LogText(reordering->Text()); });
  return reordering;
}

Reordering* Reordering::Of(const Process& process) {
  return process.launches().reordering.Get([] { return Make(); });
}

Status Reordering::CheckSetting() {
  const Settings& settings = TheSettings();
  if (!settings.reorder || settings.reorder->empty()) return {};
  if (!exec::ParseReorder(*settings.reorder))
    return Error{"GRIDLOOM_REORDER=" + *settings.reorder +
                 " is not a number, alone or with :interval or :strided behind it"};
  return {};
}

/// A program whose kernels were looked at.
struct Reordering::Program {
  Program(const std::shared_ptr<exec::Program>& program, exec::DeviceMemory& memory, passes::RangeForm form)
      : ranged(program, memory, TheRewrites(), form), calls(program->module()), waits(program->module(), calls) {}

  std::mutex mutex;
  exec::RangedProgram ranged;
  const analysis::CallGraph calls;
  const passes::CtaWaits waits;
  std::unique_ptr<const analysis::CallGraph> profiler_calls;  ///< of the rewritten module
  std::map<const exec::KernelInfo*, std::shared_ptr<const Facts>> kernels;
};

std::shared_ptr<const Reordering::Facts> Reordering::Find(exec::DeviceMemory& memory,
                                                          const std::shared_ptr<exec::Program>& program,
                                                          const exec::KernelInfo& info) {
  std::shared_ptr<Program> known;
  {
    const std::lock_guard lock(mutex_);
    auto& entry = programs_[program];
    if (entry == nullptr) entry = std::make_shared<Program>(program, memory, setting_.form);
    known = entry;
  }
  const std::lock_guard lock(known->mutex);
  auto& facts = known->kernels[&info];
  if (facts != nullptr) return facts;
  auto made = std::make_shared<Facts>();
  const passes::CtaOrder order = passes::OrderOf(known->calls, known->waits, *info.function);
  made->why_whole = order.why_whole;
  if (order.loc.line != 0) made->why_whole += ", PTX line " + std::to_string(order.loc.line);
  made->in_turn = order.own_order_matters;
  made->names_managed = passes::NamesManaged(known->calls, *info.function);
  if (made->why_whole.empty()) {
    made->ranged = known->ranged.Find(std::string(info.name));
    made->why_whole = made->ranged.why_not;
  }
  if (made->why_whole.empty()) {
    if (known->profiler_calls == nullptr)
      known->profiler_calls = std::make_unique<analysis::CallGraph>(made->ranged.program->module());
    made->profiler_reads = passes::ReadsGlobal(*known->profiler_calls, *made->ranged.profiler->function);
  }
  return facts = std::move(made);
}

void Reordering::NoteWhole(const KernelOp& op, const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++whole_[{op.kernel->name(), why}];
}

Reordering::Place Reordering::PlaceOf(Context& context, const KernelOp& op) {
  std::string why;
  if (op.cooperative) why = "the launch is cooperative";
  else if (op.cluster.count() != 1) why = "it is launched in clusters";
  else if (op.plan.in_slices) why = "the file has it sliced";
  bool host_may_poll = false;
  if (why.empty()) {
    const auto facts = Find(context.device().memory(), op.bound.program, *op.bound.info);
    why = facts->why_whole;
    host_may_poll = facts->names_managed || PointsToHostMemory(context.device().memory(), op);
  }
  if (why.empty()) return host_may_poll ? Place::kLast : Place::kInBatch;
  NoteWhole(op, why);
  return Place::kAlone;
}

void Reordering::AddCounts(const exec::Reorderer::Counts& counts) {
  const std::lock_guard lock(mutex_);
  counts_.batches += counts.batches;
  counts_.launches += counts.launches;
  counts_.ctas += counts.ctas;
  counts_.ahead += counts.ahead;
  counts_.side_by_side = std::max(counts_.side_by_side, counts.side_by_side);
}

void Reordering::Enter(Stream& stream, KernelOp launch, Place place) {
  stream.context().EnqueueInBatch(stream, [&](std::shared_ptr<StreamBatch>& open) {
    if (open == nullptr) {
      const auto made = std::make_shared<LaunchBatch>();
      made->number = batches_.fetch_add(1, std::memory_order_relaxed);
      open = made;
    }
    auto& batch = static_cast<LaunchBatch&>(*open);  // there are no others
    batch.launches.push_back(std::move(launch));
    return place == Place::kLast || batch.launches.size() == LaunchBatch::kMost;
  });
}

void LaunchBatch::Run(Context& context) { Reordering::Of(context.process())->Run(context, *this); }

void Reordering::Run(Context& context, const LaunchBatch& batch) {
  if (context.failed()) return;
  const std::uint64_t seed = setting_.seed ^ exec::Lots(batch.number).Next();
  exec::Reorderer reorderer(context.device().engine(), context.device().memory(),
                            {.seed = seed, .stop = [&] { return context.failed(); }});
  std::vector<exec::ReorderedRun> runs(batch.launches.size());
  exec::LaunchFault fault;
  for (std::size_t i = 0; i < runs.size() && fault.kind == exec::FaultKind::kNone; ++i) {
    const KernelOp& op = batch.launches[i];
    const auto facts = Find(context.device().memory(), op.bound.program, *op.bound.info);
    fault = reorderer.Add({LaunchOf(op), facts->ranged, facts->in_turn, facts->profiler_reads}, runs[i]);
  }
  if (fault.kind == exec::FaultKind::kNone) fault = reorderer.RunOut();
  AddCounts(reorderer.counts());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const KernelOp& op = batch.launches[i];
    context.process().summary().Add(op.kernel->name(), runs[i].stats, 0);
    if (!runs[i].why_whole.empty()) {
      NoteWhole(op, runs[i].why_whole);
      continue;
    }
    const std::lock_guard lock(mutex_);
    ++mixed_[op.kernel->name()];
  }
  if (fault.kind == exec::FaultKind::kNone) return;
  Log(LogLevel::kError, Describe(fault));
  context.Fail(StatusOf(fault.kind));
}

std::string Reordering::Text() const {
  const std::lock_guard lock(mutex_);
  std::string text = Format(
      "reorder: seed %llu, %s: %llu launches of %zu kernels in %llu batches, at most %llu side by side; %llu of %llu "
      "thread blocks ran "
      "before an older launch had ended\n",
      static_cast<unsigned long long>(setting_.seed),
      setting_.form == passes::RangeForm::kInterval ? "interval" : "strided",
      static_cast<unsigned long long>(counts_.launches), mixed_.size(),
      static_cast<unsigned long long>(counts_.batches), static_cast<unsigned long long>(counts_.side_by_side),
      static_cast<unsigned long long>(counts_.ahead), static_cast<unsigned long long>(counts_.ctas));
  for (const auto& [kernel, launches] : whole_) {
    text += Format("reorder: as it is, %llu launches: %s: %s\n", static_cast<unsigned long long>(launches),
                   ShortKernelName(kernel.first, 60).c_str(), kernel.second.c_str());
  }
  return text;
}

}  // namespace gridloom::session
