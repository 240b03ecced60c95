// gridloom sweep: replays that a file describes, on this machine or as array jobs of Slurm.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/replay/print.h"
#include "rewriter/support/progress.h"
#include "rewriter/support/terminal.h"
#include "sim/study/replay/report.h"
#include "sim/study/sweep/plan.h"
#include "sim/study/sweep/slurm.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;
using study::CellOutcome;
using study::CellStore;
using study::ReplayRun;
using study::SlurmRequest;
using study::SweepPlan;

constexpr auto kBetweenLooks = std::chrono::milliseconds(1000);
/// Slurm's controller may be away for a while (a restart); after so many failures in a row we no longer wait.
constexpr int kMostFailedLooks = 30;

class SweepCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("file", path_, "the sweep: a YAML file; with --task, the sweep.json in a report's folder")
        ->type_name("")
        ->required();
    app.add_option("--on", where_, "local, slurm, or auto: Slurm where sbatch is found (default: auto)")
        ->type_name("PLACE")
        ->check(CLI::IsMember({"auto", "local", "slurm"}));
    app.add_option("--report,-r", report_, "folder for results and report (default: what the file says)")
        ->type_name("DIR");
    app.add_option("--hardware", hardware_,
                   "proposed parts in place of what the file says, or `none`; again to compare with other parts (see "
                   "`gridloom replay`)")
        ->type_name("NAME,...")
        ->allow_extra_args(false);
    app.add_option("--set", sets_,
                   "a key of the device file, or hardware.PART.KEY, and its values, besides the file's parameters")
        ->type_name("KEY=VALUE,...")
        ->allow_extra_args(false);
    app.add_option("--jobs,-j", jobs_, "local: replays at the same time (default: one per core)")->type_name("N");
    app.add_flag("!--no-alone", alone_,
                 "do not replay each program of a mix alone, which stp, antt and fairness are made of");
    app.add_flag("--write", write_, "slurm: write the job's script and do not submit it");
    app.add_flag("--no-wait", no_wait_, "slurm: submit and do not wait; --gather makes the report later");
    app.add_flag("--gather", gather_,
                 "replay nothing: make the report from the results there are, and say which are missing");
    app.add_option("--task", task_, "what a task of the array job runs: its share of the replays")->type_name("N");
    app.add_flag("--json", json_, "print JSON, every statistic included");
  }

  std::vector<std::string> Split(std::vector<std::string> arguments) override {
    command_ = CommandLine("sweep", arguments);
    return arguments;
  }

  int Run() override {
    const Status done = task_ >= 0 ? RunTask() : RunSweep();
    return done.ok() ? exit_code_ : Fail(done.error().message);
  }

 private:
  Status RunSweep() {
    GL_TRY(sweep, study::ReadSweepFile(path_));
    SweepPlan plan;
    plan.options = std::move(sweep.replays);
    slurm_ = sweep.slurm;
    if (!report_.empty()) plan.options.report = fs::absolute(report_).lexically_normal().string();
    if (!hardware_.empty()) plan.options.hardware = hardware_;
    plan.options.sets = sets_;
    plan.options.alone = alone_;
    plan.options.command = command_;
    plan.options.jobs = jobs_;
    GL_TRY_STATUS(plan.options.Complete());
    GL_TRY(replays, study::PlanReplays(plan.options));
    plan.replays = std::move(replays);
    plan.tasks = std::min<std::size_t>(slurm_.tasks, plan.replays.cells.size());
    const bool on_slurm = where_ == "slurm" || write_ || (where_ == "auto" && study::SlurmIsThere());
    if (gather_) return Report(plan, study::GatherCells(plan.replays, plan.options));
    return on_slurm ? RunOnSlurm(plan) : RunHere(plan);
  }

  Status RunHere(const SweepPlan& plan) {
    std::fprintf(stderr, "gridloom: %zu replays on this machine\n", plan.replays.cells.size());
    std::vector<std::size_t> all(plan.replays.cells.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    GL_TRY(run, study::RunCells(plan.replays, plan.options, all));
    return Report(plan, std::move(run));
  }

  /// A task of the array: its share, one line for each replay in the log.
  Status RunTask() {
    GL_TRY(plan, study::LoadSweep(path_));
    std::vector<std::size_t> share;
    for (std::size_t i = 0; i < plan.replays.cells.size(); ++i) {
      if (plan.TaskOf(i) == static_cast<std::size_t>(task_)) share.push_back(i);
    }
    GL_TRY(run, study::RunCells(plan.replays, plan.options, share));
    for (const std::size_t i : share) {
      if (!run.cells[i].ok()) exit_code_ = Fail(run.plan.NameOf(run.plan.cells[i]) + ": " + run.cells[i].problem);
    }
    return {};
  }

  Status RunOnSlurm(SweepPlan& plan) {
    const std::string folder = plan.options.report, script = folder + "/sweep.sbatch";
    std::error_code error;
    fs::create_directories(folder + "/slurm", error);
    if (error) return Error{"cannot make the folder " + folder + "/slurm: " + error.message()};
    plan.options.jobs = slurm_.cpus;
    GL_TRY_STATUS(study::SaveSweep(plan));
    const std::string self = fs::read_symlink("/proc/self/exe", error).string();
    GL_TRY_STATUS(report::WriteFile(
        script, study::BatchScript(slurm_, plan.options.title, folder, {self, "sweep", plan.path(), "--task"})));
    if (write_) {
      Print("submit it by: sbatch --array=0-" + std::to_string(plan.tasks - 1) + " " + Quoted(script) + "\n");
      return {};
    }
    ReplayRun run = study::GatherCells(plan.replays, plan.options);
    std::string job;
    for (unsigned attempt = 0; attempt <= slurm_.retries; ++attempt) {
      const std::vector<std::size_t> tasks = TasksToDo(plan, run);
      if (tasks.empty()) break;
      GL_TRY(submitted, study::SubmitArray(script, tasks, slurm_.at_once));
      job = submitted;
      std::fprintf(stderr, "gridloom: job %s of Slurm: %zu tasks for %zu replays%s\n", job.c_str(), tasks.size(),
                   Missing(run), attempt == 0 ? "" : ", which failed before");
      if (no_wait_) {
        Print("when job " + job + " has ended: gridloom sweep --gather " + Quoted(path_) + "\n");
        return {};
      }
      GL_TRY_STATUS(WaitFor(job, plan, run));
      run = study::GatherCells(plan.replays, plan.options);
    }
    for (std::size_t i = 0; i < run.cells.size(); ++i) {
      if (run.cells[i].ok()) continue;
      const std::size_t task = plan.TaskOf(i);
      const std::string words = study::LastWords(folder, job, task);
      run.cells[i].problem = "no result; task " + std::to_string(task) + " of job " + job +
                             (words.empty() ? " left no log" : " said: " + words);
    }
    return Report(plan, std::move(run));
  }

  static std::size_t Missing(const ReplayRun& run) {
    return static_cast<std::size_t>(
        std::ranges::count_if(run.cells, [](const CellOutcome& cell) { return !cell.ok(); }));
  }

  static std::vector<std::size_t> TasksToDo(const SweepPlan& plan, const ReplayRun& run) {
    std::set<std::size_t> tasks;
    for (std::size_t i = 0; i < run.cells.size(); ++i) {
      if (!run.cells[i].ok()) tasks.insert(plan.TaskOf(i));
    }
    return {tasks.begin(), tasks.end()};
  }

  /// Until no task of the job is left; shows results as they come.
  Status WaitFor(const std::string& job, const SweepPlan& plan, const ReplayRun& before) const {
    const CellStore store(plan.options.report);
    std::set<std::size_t> awaited;
    for (std::size_t i = 0; i < before.cells.size(); ++i) {
      if (!before.cells[i].ok()) awaited.insert(i);
    }
    Progress progress(awaited.size(),
                      {.out = stderr, .bar = Progress::IsTerminal(stderr), .quiet = false, .running = {}});
    const auto look = [&] {
      std::erase_if(awaited, [&](std::size_t i) {
        const bool there = access(store.PathOf(plan.replays.cells[i]).c_str(), R_OK) == 0;
        if (there) progress.Done(plan.replays.NameOf(plan.replays.cells[i]));
        return there;
      });
    };
    for (int failed = 0;;) {
      const auto left = study::UnfinishedTasks(job);
      look();
      if (left.ok() && *left == 0) return {};
      failed = left.ok() ? 0 : failed + 1;
      if (failed == kMostFailedLooks)
        return Error{left.error().message + "; when the job has ended, gridloom sweep --gather makes the report"};
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  Status Report(const SweepPlan& plan, ReplayRun run) {
    GL_TRY_STATUS(CellStore(plan.options.report).Prepare());
    GL_TRY_STATUS(study::WriteReport(run, plan.options));
    exit_code_ = PrintReplay(run, json_);
    if (!json_) Print("report: " + plan.options.report + "/report.html\n");
    return {};
  }

  std::string path_, where_ = "auto", report_, command_;
  std::vector<std::string> hardware_, sets_;
  SlurmRequest slurm_;
  unsigned jobs_ = 0;
  int task_ = -1, exit_code_ = kExitOk;
  bool write_ = false, no_wait_ = false, gather_ = false, json_ = false, alone_ = true;
};

}  // namespace

std::unique_ptr<Command> MakeSweep() { return std::make_unique<SweepCommand>(); }

}  // namespace gridloom::launcher
