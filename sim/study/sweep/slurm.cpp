#include "sim/study/sweep/slurm.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rewriter/support/printable.h"
#include "rewriter/support/terminal.h"

namespace gridloom::study {
namespace {

constexpr std::size_t kMostSaid = 64u << 20;  // bytes of a program's answer: 2 million tasks
constexpr std::size_t kMostShown = 2000;      // of them in a message

struct Said {
  int exit_code = 0;
  std::string text;  ///< standard output and error
};

Result<Said> RunProgram(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += Quoted(word) + " ";
  FILE* pipe = popen((line + "2>&1").c_str(), "r");
  if (pipe == nullptr) return Error{"cannot start " + words[0]};
  Said said;
  std::array<char, 4096> buffer;
  // What is too long is read to its end, so that the program ends, too.
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    if (said.text.size() < kMostSaid) said.text.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  said.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  while (said.text.ends_with('\n')) said.text.pop_back();
  return said;
}

/// What a program said, for a message.
std::string Shown(const std::string& text) { return Cut(Printable(text), kMostShown); }

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 19 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void Directive(std::string& script, const std::string& option, const std::string& value) {
  if (!value.empty()) script += "#SBATCH --" + option + "=" + value + "\n";
}

}  // namespace

bool SlurmIsThere() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (std::filesystem::exists(folder + "/sbatch", error)) return true;
  }
  return false;
}

std::string BatchScript(const SlurmRequest& request, const std::string& name, const std::string& folder,
                        const std::vector<std::string>& command) {
  std::string script = "#!/bin/bash\n# Written by gridloom sweep.\n";
  std::string job = name;
  std::ranges::replace_if(
      job, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '_');
  Directive(script, "job-name", "gridloom-" + job);
  // %A and %a are the job's and the task's number; a folder with a % would be taken for more of them.
  std::string logs;
  for (const char c : folder) logs += c == '%' ? std::string("%%") : std::string(1, c);
  script += "#SBATCH --output=\"" + logs + "/slurm/%A_%a.log\"\n";
  Directive(script, "partition", request.partition);
  Directive(script, "account", request.account);
  Directive(script, "time", request.time);
  Directive(script, "mem", request.memory);
  Directive(script, "cpus-per-task", std::to_string(request.cpus));
  for (const std::string& option : request.options) script += "#SBATCH " + option + "\n";
  script += "exec";
  for (const std::string& word : command) script += " " + Quoted(word);
  return script + " \"$SLURM_ARRAY_TASK_ID\"\n";
}

std::string ArrayRange(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text +=
        (text.empty() ? "" : ",") + std::to_string(numbers[i]) + (last == i ? "" : "-" + std::to_string(numbers[last]));
    i = last + 1;
  }
  return text;
}

Result<std::string> SubmitArray(const std::string& script, const std::vector<std::size_t>& tasks, unsigned at_once) {
  const std::string range = ArrayRange(tasks) + (at_once == 0 ? "" : "%" + std::to_string(at_once));
  GL_TRY(said, RunProgram({"sbatch", "--parsable", "--array=" + range, script}));
  // "ID" or "ID;CLUSTER", perhaps after warnings.
  const std::string last = said.text.substr(said.text.rfind('\n') + 1), id = last.substr(0, last.find(';'));
  if (said.exit_code != 0 || !IsNumber(id)) return Error{"sbatch refused " + script + ": " + Shown(said.text)};
  return id;
}

Result<std::size_t> UnfinishedTasks(const std::string& job) {
  GL_TRY(said, RunProgram({"squeue", "--noheader", "--array", "--jobs=" + job, "--format=%i"}));
  if (said.exit_code != 0) {
    // Slurm forgets finished jobs after a while (MinJobAge).
    if (said.text.find("Invalid job id") != std::string::npos) return std::size_t{0};
    return Error{"squeue --jobs=" + job + ": " + Shown(said.text)};
  }
  // Lines of the job's tasks, "JOB_TASK"; between them there may be warnings.
  std::istringstream lines(said.text);
  std::size_t tasks = 0;
  for (std::string line; std::getline(lines, line);) tasks += line == job || line.starts_with(job + "_") ? 1 : 0;
  return tasks;
}

std::string LastWords(const std::string& folder, const std::string& job, std::size_t task) {
  std::ifstream log(folder + "/slurm/" + job + "_" + std::to_string(task) + ".log");
  std::string last;
  for (std::string line; std::getline(log, line);) {
    if (!line.empty()) last = line;
  }
  return Shown(last);
}

}  // namespace gridloom::study
