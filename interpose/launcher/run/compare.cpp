// gridloom compare: a program is run once, with a trace; the trace is replayed on several devices and under several
// policies. Each process of the program that uses the GPU has a trace of its own.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "interpose/launcher/temporary_folder.h"
#include "sim/trace/trace_file.h"
#include "sim/trace/trace_names.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

/// What stands behind `name` in "--name VALUE" or "--name=VALUE".
std::string ValueOf(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> names) {
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    for (const std::string_view name : names) {
      if (*argument == name && argument + 1 != arguments.end()) return argument[1];
      if (argument->starts_with(std::string(name) + "=")) return argument->substr(name.size() + 1);
    }
  }
  return "";
}

/// Its options are those of `replay`, which does the second half.
class CompareCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    replay_ = MakeTraceReplay();
    replay_->Describe(app);
    app.add_option("--trace", kept_, "keep the trace in this file")->type_name("FILE");
  }

  std::vector<std::string> Split(std::vector<std::string> arguments) override {
    const auto end = std::ranges::find(arguments, "--");
    std::vector<std::string> own(arguments.begin(), end);
    if (end != arguments.end()) program_.assign(end + 1, arguments.end());
    json_ = std::ranges::find(own, "--json") != own.end();
    trace_ = ValueOf(own, {"--trace"});
    if (trace_.empty() && !folder_.path().empty()) trace_ = folder_.path() / (TraceName() + ".gltrace");
    mixed_ = std::ranges::find(own, "--mix") != own.end();
    own = replay_->Split(std::move(own));
    own.push_back(trace_);  // what `replay` replays
    return own;
  }

  int Run() override {
    if (program_.empty()) return Fail("no program to run\n  for example: gridloom compare --device a100,h200 -- ./app");
    if (trace_.empty()) return Fail(std::string("cannot make a temporary folder: ") + std::strerror(errno));
    // What is misspelt should be said before the program has run for an hour.
    if (const Status names = replay_->Check(); !names.ok()) return Fail(names.error().message);
    const auto ranges = replay_->Ranges();
    if (!ranges.ok()) return Fail(ranges.error().message);
    const int status = RunProgram(*ranges);
    if (status != 0) {
      return Fail("nothing is compared: the program ended with " +
                  (status < 0 ? "signal " + std::to_string(-status) : "exit code " + std::to_string(status)));
    }
    const std::vector<std::string> traces = NameTraces();
    if (traces.empty()) return Fail("nothing to compare: the program did not use the GPU");
    if (traces.size() > 1) {
      const std::string how = mixed_ ? "they are replayed together" : "each is replayed alone (--mix: together)";
      std::fprintf(stderr, "gridloom: %zu processes of the program launched kernels; %s\n", traces.size(), how.c_str());
    }
    replay_->SetTraces(traces);
    return replay_->Run();
  }

 private:
  std::string ProcessTraces() const { return trace_ + ".%p"; }

  /// Gives the traces of processes with launches their names: that of the only one, or numbered ones in the order of
  /// the processes' numbers. Of several without launches one is left.
  std::vector<std::string> NameTraces() const {
    std::vector<std::string> files = trace::FilesOfProcesses(ProcessTraces());
    const auto has_launches = [](const std::string& path) {
      const auto file = trace::TraceFile::Open(path);
      return file.ok() &&
             std::ranges::any_of((*file)->launches(), [](const auto& launch) { return launch.info.of_program(); });
    };
    auto empty = std::ranges::stable_partition(files, has_launches);
    if (empty.begin() == files.begin() && !empty.empty()) empty.advance(1);
    std::error_code error;
    for (const std::string& file : empty) fs::remove(file, error);
    files.erase(empty.begin(), empty.end());
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string name = files.size() == 1 ? trace_ : NumberedName(i + 1);
      fs::rename(files[i], name, error);
      if (!error) files[i] = name;
    }
    return files;
  }

  /// "app.gltrace" -> "app-2.gltrace"
  std::string NumberedName(std::size_t number) const {
    const fs::path path(trace_);
    return path.parent_path() / (path.stem().string() + "-" + std::to_string(number) + path.extension().string());
  }

  /// Workloads are named after their traces, this one after the program's file. Names of traces may have placeholders
  /// (sim/trace/trace_names.h), so that a percent sign cannot stay.
  std::string TraceName() const {
    std::string name = program_.empty() ? "" : std::filesystem::path(program_.front()).filename().string();
    std::ranges::replace(name, '%', '_');
    return name.empty() ? "program" : name;
  }

  /// The program's exit code, or minus the signal that ended it. `ranges`: the forms that its traces have to tell of.
  int RunProgram(const std::string& ranges) const {
    const std::string self = ToolDirectory() / "gridloom";
    std::vector<std::string> words = {self, "run", "--trace", ProcessTraces()};
    if (!ranges.empty()) words.insert(words.end(), {"--ranges", ranges});
    words.emplace_back("--");
    words.insert(words.end(), program_.begin(), program_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (json_) dup2(STDERR_FILENO, STDOUT_FILENO);  // the JSON stands alone
      execv(self.c_str(), arguments.data());
      _exit(kExitNotFound);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0) return kExitFailed;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  const TemporaryFolder folder_{"compare"};
  std::unique_ptr<TraceReplay> replay_;
  std::string trace_, kept_;
  std::vector<std::string> program_;
  bool json_ = false, mixed_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCompare() { return std::make_unique<CompareCommand>(); }

}  // namespace gridloom::launcher
