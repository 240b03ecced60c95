// gridloom replay: traces on the timing model, on several devices and under several policies at once.
#include "interpose/launcher/commands.h"
#include "interpose/launcher/replay/options.h"
#include "interpose/launcher/replay/print.h"
#include "rewriter/support/terminal.h"
#include "sim/device/device_files.h"
#include "sim/study/measure/kernel_profiles.h"
#include "sim/study/replay/run.h"
#include "sim/study/report/files.h"

namespace gridloom::launcher {
namespace {

class ReplayCommand final : public TraceReplay {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("traces", traces_, "traces, as `gridloom run --trace` writes them; each is replayed alone")
        ->type_name("")
        ->required();
    app.add_flag("--mix", mix_, "all traces together: programs that share the device");
    DescribeReplay(app, options_);
    app.add_option("--write-profiles", write_profiles_,
                   "profile the kernels on the device, write FILE and replay nothing")
        ->type_name("FILE");
    app.add_flag("--json", json_, "print JSON, every statistic included");
  }

  std::vector<std::string> Split(std::vector<std::string> arguments) override {
    options_.command = CommandLine("replay", arguments);
    return arguments;
  }

  void SetTraces(std::vector<std::string> traces) override { traces_ = std::move(traces); }

  Status Check() override {
    GL_TRY_STATUS(options_.Complete());
    return study::CheckNames(options_);
  }

  Result<std::string> Ranges() const override { return study::RangesFor(options_); }

  int Run() override {
    options_.workloads = study::WorkloadsOf(traces_, mix_);
    const Status complete = options_.Complete();
    if (!complete.ok()) return Fail(complete.error().message);
    if (!write_profiles_.empty()) return WriteProfiles();
    const auto run = study::RunReplay(options_);
    if (!run.ok()) return Fail(run.error().message);
    const int exit_code = PrintReplay(*run, json_);
    if (!options_.report.empty() && !json_) Print("report: " + options_.report + "/report.html\n");
    return exit_code;
  }

 private:
  int WriteProfiles() const {
    const auto written = ProfileAndWrite();
    if (!written.ok()) return Fail(written.error().message);
    Print(write_profiles_ + ": profiles of " + std::to_string(*written) + " kernels on " + options_.devices[0] + "\n");
    return kExitOk;
  }

  Result<std::size_t> ProfileAndWrite() const {
    if (options_.devices.size() != 1) return Error{"profiles are of one device: name one with --device"};
    GL_TRY(device, sim::LoadDevice(options_.devices[0]));
    study::Traces traces;
    for (const std::string& path : traces_) {
      GL_TRY(file, trace::TraceFile::Open(path));
      traces.push_back(std::move(file));
    }
    GL_TRY(config, study::LoadKerneletConfig());
    GL_TRY(profiles, study::ProfileTraces(device, traces, config));
    GL_TRY_STATUS(report::WriteFile(write_profiles_, model::ToJson(profiles)));
    return profiles.kernels.size();
  }

  study::ReplayOptions options_;
  std::vector<std::string> traces_;
  std::string write_profiles_;
  bool mix_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<TraceReplay> MakeTraceReplay() { return std::make_unique<ReplayCommand>(); }
std::unique_ptr<Command> MakeReplay() { return MakeTraceReplay(); }

}  // namespace gridloom::launcher
