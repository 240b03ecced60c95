#include "sim/study/replay/run.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "rewriter/support/printable.h"
#include "rewriter/support/progress.h"
#include "sim/study/replay/report.h"

namespace gridloom::study {
namespace {

/// Opens each trace once, when it is first needed.
class TraceLibrary {
 public:
  Result<Traces> Open(const std::vector<FileIdentity>& identities, Progress& progress) {
    const std::lock_guard lock(mutex_);
    Traces traces;
    for (const auto& [path, bytes, hash] : identities) {
      auto& file = files_[path];
      if (file == nullptr) {
        GL_TRY(opened, trace::TraceFile::Open(path));
        file = std::move(opened);
        if (!file->problem().empty()) progress.Note(file->problem());
      }
      traces.push_back(file);
    }
    return traces;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<trace::TraceFile>> files_;
};

class Runner {
 public:
  Runner(const ReplayOptions& options, ReplayRun& run, const std::vector<std::size_t>& missing)
      : options_(options),
        run_(run),
        missing_(missing),
        store_(options.report),
        running_(missing.size()),
        progress_(missing.size(), {.out = stderr,
                                   .bar = Progress::IsTerminal(stderr),
                                   .quiet = options.quiet || (missing.size() < 2 && !Progress::IsTerminal(stderr)),
                                   .running = [this] { return Running(); }}) {}

  Status Run() {
    if (!options_.profiles.empty()) {
      GL_TRY(profiles, model::LoadProfiles(options_.profiles));
      profiles_ = std::move(profiles);
    }
    const unsigned wanted = options_.jobs != 0 ? options_.jobs : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::min<std::size_t>(wanted, missing_.size()); ++i)
      threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    return {};
  }

 private:
  void Work() {
    for (std::size_t i = next_++; i < missing_.size(); i = next_++) {
      const Cell& cell = run_.plan.cells[missing_[i]];
      CellOutcome& outcome = run_.cells[missing_[i]];
      const Status done = One(cell, running_[i], outcome);
      const std::string name = run_.plan.NameOf(cell);
      running_[i].ctas = 0;
      if (!done.ok()) outcome.problem = done.error().message;
      char text[64];
      if (done.ok()) {
        std::snprintf(text, sizeof text, ", %.3f ms simulated in %.1f s", outcome.result["seconds"].get<double>() * 1e3,
                      outcome.result["host_seconds"].get<double>());
      }
      progress_.Done(name + (done.ok() ? text : ": failed"));
    }
  }

  Status One(const Cell& cell, ReplayProgress& running, CellOutcome& outcome) {
    GL_TRY(traces, library_.Open(run_.plan.TracesOf(cell), progress_));
    const ReplayInputs inputs{.profiles = profiles_ ? &*profiles_ : nullptr,
                              .kernels_only = options_.kernels_only,
                              .most_instructions = std::uint64_t{options_.most_instructions} * 1'000'000};
    GL_TRY(result, Replay(run_.plan.SpecOf(cell), cell.policy, traces, options_.threads, inputs, &running));
    for (const std::string& note : result.notes) NoteOnce(note);
    Json json = CellJson(run_.plan, cell, result);
    for (const auto& trace : traces) {
      if (!trace->problem().empty()) json["damaged_traces"].push_back(trace->problem());
    }
    GL_TRY_STATUS(store_.Save(cell, json));
    outcome.result = WithoutTimeline(json);
    return {};
  }

  /// Several replays of a trace may have the same to say.
  void NoteOnce(const std::string& note) {
    const std::lock_guard lock(mutex_);
    if (noted_.insert(note).second) progress_.Note(note);
  }

  double Running() const {
    double sum = 0;
    for (const ReplayProgress& one : running_) {
      const std::uint64_t ctas = one.ctas;
      if (ctas != 0) sum += static_cast<double>(one.ended_ctas) / static_cast<double>(ctas);
    }
    return sum;
  }

  const ReplayOptions& options_;
  ReplayRun& run_;
  const std::vector<std::size_t>& missing_;
  const CellStore store_;
  TraceLibrary library_;
  std::optional<model::ProfileFile> profiles_;
  std::vector<ReplayProgress> running_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::set<std::string> noted_;
  Progress progress_;  // last: its thread looks at running_
};

}  // namespace

Result<ReplayRun> RunCells(ReplayPlan plan, const ReplayOptions& options, const std::vector<std::size_t>& cells) {
  ReplayRun run{std::move(plan), {}};
  run.cells.resize(run.plan.cells.size());
  const CellStore store(options.report);
  GL_TRY_STATUS(store.Prepare());
  std::vector<std::size_t> missing;
  for (const std::size_t i : cells) {
    const Cell& cell = run.plan.cells[i];
    const auto kept =
        options.fresh ? Result<std::optional<Json>>(std::nullopt) : store.Load(cell, run.plan.SpecOf(cell));
    if (!kept) std::fprintf(stderr, "gridloom: %s; it is replayed again\n", Printable(kept.error().message).c_str());
    if (kept && *kept) run.cells[i].result = WithoutTimeline(**kept);
    else missing.push_back(i);
  }
  if (missing.size() < cells.size() && !options.quiet) {
    std::fprintf(stderr, "gridloom: %zu of %zu replays are finished in %s\n", cells.size() - missing.size(),
                 cells.size(), options.report.c_str());
  }
  if (!missing.empty()) GL_TRY_STATUS(Runner(options, run, missing).Run());
  return run;
}

ReplayRun GatherCells(ReplayPlan plan, const ReplayOptions& options) {
  ReplayRun run{std::move(plan), {}};
  const CellStore store(options.report);
  for (const Cell& cell : run.plan.cells) {
    run.cells.emplace_back();
    const auto kept = store.Load(cell, run.plan.SpecOf(cell));
    if (kept && *kept) run.cells.back().result = WithoutTimeline(**kept);
    else run.cells.back().problem = kept ? "no result" : kept.error().message;
  }
  return run;
}

Result<ReplayRun> RunReplay(const ReplayOptions& options) {
  GL_TRY(plan, PlanReplays(options));
  std::vector<std::size_t> all(plan.cells.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  GL_TRY(run, RunCells(std::move(plan), options, all));
  if (!options.report.empty()) GL_TRY_STATUS(WriteReport(run, options));
  return run;
}

double SpeedUp(const ReplayRun& run, std::size_t number) {
  const Cell& cell = run.plan.cells[number];
  const auto matches = [&](const Cell& other) {
    const std::string& device =
        run.plan.base_device.empty() ? run.plan.devices[cell.device].label : run.plan.base_device;
    const std::string& policy = run.plan.base_policy.empty() ? cell.policy : run.plan.base_policy;
    return !other.program && other.workload == cell.workload && run.plan.devices[other.device].label == device &&
           other.policy == policy;
  };
  const auto base = std::ranges::find_if(run.plan.cells, matches);
  if (base == run.plan.cells.end()) return 0;
  const CellOutcome& base_outcome = run.cells[static_cast<std::size_t>(base - run.plan.cells.begin())];
  const CellOutcome& outcome = run.cells[number];
  if (!base_outcome.ok() || !outcome.ok()) return 0;
  const double seconds = outcome.result["seconds"].get<double>();
  return seconds == 0 ? 0 : base_outcome.result["seconds"].get<double>() / seconds;
}

}  // namespace gridloom::study
