#include "interpose/launcher/run/checked_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "rewriter/support/json.h"
#include "rewriter/support/printable.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::launcher {
namespace {

using SortedJson = nlohmann::json;

volatile sig_atomic_t g_child = 0;

void PassOn(int signal) {
  if (g_child != 0) kill(g_child, signal);
}

/// While one lives, this process waits for a program and is not ended before it.
class WaitingSignals {
 public:
  WaitingSignals() {
    struct sigaction passes {
    }, ignores{};
    passes.sa_handler = PassOn;
    passes.sa_flags = SA_RESTART;
    ignores.sa_handler = SIG_IGN;  // the terminal sends these to the program, too
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], kSignals[i] == SIGINT || kSignals[i] == SIGQUIT ? &ignores : &passes, &before_[i]);
  }
  ~WaitingSignals() { Restore(); }
  /// Also in the child, before it becomes the program.
  void Restore() const {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  WaitingSignals(const WaitingSignals&) = delete;
  WaitingSignals& operator=(const WaitingSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  struct sigaction before_[std::size(kSignals)]{};
};

constexpr const char* kLeakLists[] = {"leaks", "object_leaks"};  // with --leak-check

/// What one process has said: findings one by one, or all of them, with their numbers, at its end.
struct Process {
  int pid = 0;
  std::string program;
  bool ended = false;
  SortedJson all = {{"findings", SortedJson::array()},
                    {"calls", SortedJson::array()},
                    {"faults", SortedJson::array()},
                    {"not_kept", 0}};

  std::size_t errors() const { return all["findings"].size() + all["calls"].size() + all["faults"].size() + leaks(); }
  std::size_t leaks() const {
    std::size_t count = 0;
    for (const char* const list : kLeakLists) count += all.contains(list) ? all[list].size() : 0;
    return count;
  }
};

bool HasLists(const SortedJson& all) {
  for (const char* const key : {"findings", "calls", "faults"}) {
    if (!all.contains(key) || !all[key].is_array()) return false;
  }
  return std::ranges::all_of(kLeakLists, [&](const char* list) { return !all.contains(list) || all[list].is_array(); });
}

/// A process may become another program by exec, with the same number. Lines that are none of ours are passed over: a
/// program can write there, too.
std::vector<Process> ReadJournal(const std::string& text) {
  std::vector<Process> processes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const SortedJson json = ParseJson<SortedJson>(line);
    if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer()) continue;
    const int pid = json["pid"].get<int>();
    if (json.contains("program") && json["program"].is_string()) {
      Process& process = processes.emplace_back();
      process.pid = pid;
      process.program = json["program"].get<std::string>();
      continue;
    }
    auto process = processes.rbegin();
    while (process != processes.rend() && process->pid != pid) ++process;
    if (process == processes.rend()) continue;
    for (const auto& [key, list] :
         {std::pair("finding", "findings"), std::pair("call", "calls"), std::pair("fault", "faults")}) {
      if (json.contains(key) && json[key].is_object()) process->all[list].push_back(json[key]);
    }
    if (json.contains("end") && HasLists(json["end"])) {
      process->all = json["end"];
      process->ended = true;
    }
  }
  return processes;
}

/// The findings of all processes in the form of one process; where several have used a GPU, each entry says which.
SortedJson Merged(const std::vector<Process>& processes) {
  if (processes.size() == 1) return processes.front().all;
  SortedJson merged = {{"findings", SortedJson::array()},
                       {"calls", SortedJson::array()},
                       {"faults", SortedJson::array()},
                       {"not_kept", 0}};
  std::uint64_t not_kept = 0;
  for (const Process& process : processes) {
    for (const char* const list : {"findings", "calls", "faults", "leaks", "object_leaks"}) {
      if (!process.all.contains(list)) continue;
      for (SortedJson entry : process.all[list]) {
        if (!entry.is_object()) continue;
        entry["pid"] = process.pid;
        entry["program"] = process.program;
        merged[list].push_back(std::move(entry));
      }
    }
    if (process.all.contains("not_kept") && process.all["not_kept"].is_number_unsigned())
      not_kept += process.all["not_kept"].get<std::uint64_t>();
  }
  merged["not_kept"] = not_kept;
  return merged;
}

std::string Errors(std::size_t count) {
  if (count == 0) return "no errors";
  return std::to_string(count) + (count == 1 ? " error" : " errors");
}

}  // namespace

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

ProgramEnd RunToItsEnd(std::vector<std::string>& program) {
  ProgramEnd end;
  int failed[2];
  if (pipe2(failed, O_CLOEXEC) != 0) {
    end.error = errno;
    return end;
  }
  std::fflush(nullptr);
  const WaitingSignals signals;
  const pid_t child = fork();
  if (child == 0) {
    signals.Restore();
    execvp(program[0].c_str(), Pointers(program).data());
    const int error = errno;
    if (write(failed[1], &error, sizeof error) < 0) _exit(126);
    _exit(127);
  }
  const int no_child = errno;
  g_child = child > 0 ? child : 0;
  close(failed[1]);
  int error = 0;
  if (child < 0) end.error = no_child;
  else if (read(failed[0], &error, sizeof error) == sizeof error) end.error = error;
  close(failed[0]);
  if (child < 0) return end;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  g_child = 0;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  else end.exit_code = WEXITSTATUS(status);
  return end;
}

void EndBySignal(int signal) {
  std::fflush(nullptr);
  constexpr rlimit kNone{0, 0};  // the program has left its core
  setrlimit(RLIMIT_CORE, &kNone);
  ::signal(signal, SIG_DFL);
  raise(signal);
  _exit(128 + signal);
}

Result<CheckedRun> CheckedRun::Make(std::string json) {
  CheckedRun run;
  run.folder_ = std::make_unique<TemporaryFolder>("memcheck");
  run.json_ = std::move(json);
  run.journal_ = run.folder_->path() / "journal";
  const int file =
      run.folder_->path().empty() ? -1 : open(run.journal_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return Error{std::string("memcheck needs a folder for temporary files: ") + std::strerror(errno)};
  close(file);
  return run;
}

Result<bool> CheckedRun::Finish() const {
  GL_TRY(text, ReadWholeFile(journal_));
  const std::vector<Process> processes = ReadJournal(text);
  std::size_t errors = 0;
  for (const Process& process : processes) {
    errors += process.errors();
    if (process.ended || process.errors() == 0) continue;
    std::fprintf(stderr, "gridloom: memcheck: %s (process %d) ended without its exit handlers: %s\n",
                 PrintableText(process.program).c_str(), process.pid, Errors(process.errors()).c_str());
  }
  if (processes.size() > 1)
    std::fprintf(stderr, "gridloom: memcheck: %s in %zu processes\n", Errors(errors).c_str(), processes.size());
  if (json_.empty()) return errors != 0;
  const std::string json = JsonText(Merged(processes), 2) + "\n";
  if (json_ == "-") {
    std::fputs(json.c_str(), stderr);
    return errors != 0;
  }
  std::ofstream file(json_);
  file << json;
  file.close();
  if (!file) return Error{"cannot write memcheck's findings to " + json_};
  return errors != 0;
}

}  // namespace gridloom::launcher
