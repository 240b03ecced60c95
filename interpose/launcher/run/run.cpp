// gridloom run: starts a program with the driver shim preloaded, in place of this process, so that exit code, signals
// and terminal are the program's own.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "interpose/launcher/run/options.h"
#include "rewriter/support/terminal.h"
#include "scheduler/protocol/socket.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

/// `first`, then what the variable has, separated by a colon.
std::string Prepend(const std::string& first, const char* variable) {
  const char* old = std::getenv(variable);
  return old == nullptr || *old == '\0' ? first : first + ":" + old;
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
        app.add_flag(std::string(option.flags), values_[i].given, std::string(option.help));
      } else {
        auto* added = app.add_option(std::string(option.flags), values_[i].text, std::string(option.help));
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
    for (const Assignment& assignment : *environment) setenv(assignment.first.c_str(), assignment.second.c_str(), 1);
    std::vector<char*> arguments;
    for (std::string& argument : program_) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    return ExplainFailure(program_[0], errno);
  }

 private:
  struct Value {
    bool given = false;                   ///< flags
    const CLI::Option* option = nullptr;  ///< of the others
    std::string text;
  };

  /// Who wants to join a broker wants it to be there; later its loss is dealt with as --on-broker-loss says, and `embedded` given
  /// in so many words does not mind its absence now.
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

  /// What parts and keys the simulated device gets can be said to be wrong before the program runs.
  static Status CheckTimedDevice(const std::vector<Assignment>& environment) {
    const auto variable = [](const char* name) {
      const char* const value = std::getenv(name);
      return std::string(value == nullptr ? "" : value);
    };
    std::string seen = variable("GRIDLOOM_DEVICE"), timed = variable("GRIDLOOM_TIMING_DEVICE");
    std::string parts = variable("GRIDLOOM_HARDWARE"), values = variable("GRIDLOOM_TIMING_SET");
    for (const auto& [name, value] : environment) {
      if (name == "GRIDLOOM_DEVICE") seen = value;
      if (name == "GRIDLOOM_TIMING_DEVICE") timed = value;
      if (name == "GRIDLOOM_HARDWARE") parts = value;
      if (name == "GRIDLOOM_TIMING_SET") values = value;
    }
    const std::string name = !timed.empty() ? timed : !seen.empty() ? seen : std::string(sim::kDefaultDevice);
    if (name == "real" || (parts.empty() && values.empty())) return {};
    GL_TRY(device, sim::LoadDevice(name));
    return hardware::Equip(parts, values, device);
  }

  Result<std::vector<Assignment>> Environment() const {
    std::vector<Assignment> environment;
    for (std::size_t i = 0; i < RunOptions().size(); ++i) {
      const Value& value = values_[i];
      const bool given = value.option == nullptr ? value.given : value.option->count() != 0;
      if (!given || (value.option != nullptr && value.text.empty() && !RunOptions()[i].value_optional)) continue;
      GL_TRY(assignments, Assignments(RunOptions()[i], values_[i].text));
      environment.insert(environment.end(), assignments.begin(), assignments.end());
    }
    GL_TRY_STATUS(CheckBroker(environment));
    GL_TRY_STATUS(CheckTimedDevice(environment));
    const auto shim = FindLibrary(kShim);
    if (!shim) {
      return Error{"cannot find " + std::string(kShim) + " beside " + ToolDirectory().string() +
                   "; build it with scripts/build or install Gridloom again"};
    }
    // ld.so splits LD_PRELOAD at blanks and colons and knows no quotes.
    if (shim->string().find_first_of(" :") != std::string::npos) {
      return Error{"the path of the driver shim has a blank or a colon, which LD_PRELOAD cannot carry: " + shim->string() +
                   "; move Gridloom to another folder"};
    }
    environment.emplace_back("LD_PRELOAD", Prepend(shim->string(), "LD_PRELOAD"));
    if (const auto links = FindDriverLinks()) environment.emplace_back("LD_LIBRARY_PATH", Prepend(links->string(), "LD_LIBRARY_PATH"));
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
