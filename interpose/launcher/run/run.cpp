// gridloom run: starts a program with the driver shim preloaded, in place of this process, so that exit code, signals
// and terminal are the program's own. Only under memcheck this process stays beside it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "interpose/launcher/run/checked_run.h"
#include "interpose/launcher/run/options.h"
#include "interpose/settings/features.h"
#include "rewriter/support/terminal.h"
#include "scheduler/protocol/socket.h"
#include "sim/device/device_files.h"
#include "sim/study/measure/timed_device.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

/// `first`, then what the variable has, separated by a colon.
std::string Prepend(const std::string& first, const char* variable) {
  const char* old = std::getenv(variable);
  return old == nullptr || *old == '\0' ? first : first + ":" + old;
}
std::string Append(const std::string& last, const char* variable) {
  const char* old = std::getenv(variable);
  return old == nullptr || *old == '\0' ? last : std::string(old) + ":" + last;
}

/// Where execvp finds the program; empty when nowhere.
fs::path FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return fs::exists(name) ? fs::path(name) : fs::path{};
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
  }
  return {};
}

/// Says why execvp failed; returns the exit code a shell would.
int ExplainFailure(const std::string& name, int error) {
  const fs::path program = FindProgram(name);
  if (program.empty()) {
    const bool here = name.find('/') == std::string::npos && fs::exists(name);
    Fail("cannot find program '" + name + "'" + (here ? "; it is in this folder: did you mean './" + name + "'?" : ""));
    return kExitNotFound;
  }
  if (error == ENOENT) {
    Fail("cannot start '" + name + "': the interpreter or dynamic loader that it names does not exist");
    return kExitNotFound;
  }
  const bool folder = fs::is_directory(program);
  const bool no_right = access(program.c_str(), X_OK) != 0;
  std::string reason = std::strerror(error);
  if (folder) reason = "it is a folder";
  else if (error == EACCES && no_right) reason = "it is not executable; `chmod +x " + Quoted(name) + "` makes it so";
  else if (error == ENOEXEC) reason = "it is neither a program for this machine nor a script that begins with #!";
  Fail("cannot run '" + name + "': " + reason);
  return kExitNotExecutable;
}

class RunProgram final : public Command {
 public:
  void Describe(CLI::App& app) override {
    values_.resize(RunOptions().size());
    for (std::size_t i = 0; i < RunOptions().size(); ++i) {
      const RunOption& option = RunOptions()[i];
      if (option.placeholder.empty()) {
        app.add_flag(std::string(option.flags), values_[i].given, option.help);
      } else {
        auto* added = app.add_option(std::string(option.flags), values_[i].text, option.help);
        added->type_name(std::string(option.placeholder));
        if (option.value_optional) added->expected(0, 1);
        values_[i].option = added;
      }
    }
    app.add_flag("--dry-run", dry_run_, "print the command line that does the same, and start nothing");
  }

  std::vector<std::string> Split(std::vector<std::string> arguments) override {
    RunArguments split = SplitRunArguments(arguments);
    program_ = std::move(split.program);
    return std::move(split.own);
  }

  int Run() override {
    if (program_.empty()) return Fail("no program to run\n  for example: gridloom run -- ./app");
    auto environment = Environment();
    if (!environment.ok()) return Fail(environment.error().message);
    if (dry_run_) return Show(*environment);
    // Processes of the program append to it.
    if (const std::string report = ValueOf(*environment, "GRIDLOOM_REPORT_UNSUPPORTED");
        !report.empty() && report != "-")
      if (std::ofstream file(report, std::ios::trunc); !file) return Fail("cannot write to " + report);
    for (const Assignment& assignment : *environment) setenv(assignment.first.c_str(), assignment.second.c_str(), 1);
    const auto set = [&](std::string_view variable) { return ValueOf(*environment, variable); };
    if (settings::AskedFor(set).Has(settings::Feature::kMemcheck)) return RunChecked(*environment);
    execvp(program_[0].c_str(), Pointers(program_).data());
    return ExplainFailure(program_[0], errno);
  }

 private:
  /// Under memcheck this process stays and counts what the program and those that it starts have found, however they
  /// end.
  int RunChecked(const std::vector<Assignment>& environment) {
    auto run = CheckedRun::Make(ValueOf(environment, "GRIDLOOM_MEMCHECK_JSON"));
    if (!run.ok()) return Fail(run.error().message);
    setenv("GRIDLOOM_MEMCHECK_JOURNAL", run->journal().c_str(), 1);
    const ProgramEnd end = RunToItsEnd(program_);
    if (end.error != 0) return ExplainFailure(program_[0], end.error);
    const auto found = run->Finish();
    if (!found.ok()) return Fail(found.error().message);
    const std::string code = ValueOf(environment, "GRIDLOOM_ERROR_EXITCODE");
    const int wanted = code.empty() ? 1 : std::atoi(code.c_str());  // Environment has checked it
    if (*found && wanted != 0) return wanted;
    if (end.signal != 0) EndBySignal(end.signal);
    return end.exit_code;
  }

  struct Value {
    bool given = false;                   ///< flags
    const CLI::Option* option = nullptr;  ///< of the others
    std::string text;
  };

  /// Who wants to join a broker wants it to be there; later its loss is dealt with as --on-broker-loss says, and
  /// `embedded` given in so many words does not mind its absence now.
  static Status CheckBroker(const std::vector<Assignment>& environment) {
    std::string socket, loss;
    for (const auto& [name, value] : environment) {
      if (name == "GRIDLOOM_CONNECT") socket = value;
      if (name == "GRIDLOOM_ON_BROKER_LOSS") loss = value;
    }
    if (socket.empty() || loss == "embedded") return {};
    const auto connection = protocol::Connect(socket == "1" ? protocol::DefaultSocketPath() : socket);
    return connection.ok() ? Status() : Status(connection.error());
  }

  static void Add(Assignment assignment, std::vector<Assignment>& environment) {
    const auto known = std::ranges::find(environment, kTimingSet, &Assignment::first);
    if (assignment.first == kTimingSet && known != environment.end()) known->second += "," + assignment.second;
    else environment.push_back(std::move(assignment));
  }

  /// What a variable will be for the program.
  static std::string ValueOf(const std::vector<Assignment>& environment, std::string_view variable) {
    const char* const old = std::getenv(std::string(variable).c_str());
    std::string value = old == nullptr ? "" : old;
    for (const auto& [name, set] : environment) {
      if (name == variable) value = set;
    }
    return value;
  }

  /// What parts and keys the simulated device gets can be said to be wrong before the program runs. Whether it goes by
  /// ranges of CTAs.
  static Result<bool> CheckTimedDevice(const std::vector<Assignment>& environment) {
    const auto value = [&](std::string_view variable) { return ValueOf(environment, variable); };
    if (!settings::IsOn(value("GRIDLOOM_TIMING"))) return false;
    const std::string seen = value("GRIDLOOM_DEVICE"), timed = value("GRIDLOOM_TIMING_DEVICE");
    const std::string name = !timed.empty() ? timed : !seen.empty() ? seen : std::string(sim::kDefaultDevice);
    if (name == "real") return false;
    GL_TRY(device, sim::LoadDevice(name));
    GL_TRY_STATUS(study::EquipForTiming({.policy = value("GRIDLOOM_POLICY"),
                                         .parts = value("GRIDLOOM_HARDWARE"),
                                         .values = value("GRIDLOOM_TIMING_SET"),
                                         .launches = value("GRIDLOOM_DEVICE_LAUNCHES"),
                                         .ranges = value("GRIDLOOM_RANGES")},
                                        device));
    return study::RangesOf(device).has_value();
  }

  Result<std::vector<Assignment>> Environment() const {
    std::vector<Assignment> environment;
    for (std::size_t i = 0; i < RunOptions().size(); ++i) {
      const Value& value = values_[i];
      const bool given = value.option == nullptr ? value.given : value.option->count() != 0;
      if (!given || (value.option != nullptr && value.text.empty() && !RunOptions()[i].value_optional)) continue;
      GL_TRY(assignments, Assignments(RunOptions()[i], values_[i].text));
      for (Assignment& assignment : assignments) Add(std::move(assignment), environment);
    }
    auto features = settings::AskedFor([&](std::string_view variable) { return ValueOf(environment, variable); });
    const auto by_ranges = CheckTimedDevice(environment);
    if (by_ranges.ok() && *by_ranges) features.Add(settings::Feature::kTimedRanges);
    GL_TRY_STATUS(settings::CheckExclusions(features));
    GL_TRY_STATUS(CheckBroker(environment));
    if (!by_ranges.ok()) return by_ranges.error();
    GL_TRY_STATUS(settings::CheckNeeds(features));
    const auto shim = FindLibrary(kShim);
    if (!shim) {
      return Error{"cannot find " + std::string(kShim) + " beside " + ToolDirectory().string() +
                   "; build it with scripts/build or install Gridloom again"};
    }
    // ld.so splits LD_PRELOAD at blanks and colons and knows no quotes.
    if (shim->string().find_first_of(" :") != std::string::npos) {
      return Error{"the path of the driver shim has a blank or a colon, which LD_PRELOAD cannot carry: " +
                   shim->string() + "; move Gridloom to another folder"};
    }
    // Behind what the user preloads, which sees the program's calls first, as it does in front of a driver.
    environment.emplace_back("LD_PRELOAD", Append(shim->string(), "LD_PRELOAD"));
    if (const auto links = FindDriverLinks())
      environment.emplace_back("LD_LIBRARY_PATH", Prepend(links->string(), "LD_LIBRARY_PATH"));
    return environment;
  }

  int Show(const std::vector<Assignment>& environment) const {
    std::string line;
    for (const Assignment& assignment : environment) line += assignment.first + "=" + Quoted(assignment.second) + " ";
    for (const std::string& argument : program_) line += Quoted(argument) + " ";
    line.back() = '\n';
    Print(line);
    return kExitOk;
  }

  std::vector<Value> values_;
  std::vector<std::string> program_;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeRun() { return std::make_unique<RunProgram>(); }

}  // namespace gridloom::launcher
