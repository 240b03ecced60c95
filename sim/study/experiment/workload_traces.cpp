#include "sim/study/experiment/workload_traces.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/trace/trace_file.h"

extern char** environ;

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

/// The exit code of a command whose standard output is thrown away.
Result<int> RunQuietly(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error{"cannot start " + arguments[0] + ": " + std::strerror(error)};
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{std::string("waitpid: ") + std::strerror(errno)};
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string WorkloadRun::FileName() const {
  std::string file = study + "-" + name;
  if (!options.empty() || !arguments.empty()) {
    std::string words;
    for (const std::string& word : options) words += word + '\0';
    words += "--";
    for (const std::string& word : arguments) words += '\0' + word;
    char digest[12];
    std::snprintf(digest, sizeof digest, "-%08x", static_cast<unsigned>(XXH3_64bits(words.data(), words.size())));
    file += digest;
  }
  return file + ".gltrace";
}

Result<fs::path> TraceOf(const WorkloadRun& run, const Environment& environment) {
  const std::string file = run.FileName();
  const fs::path program = environment.programs / run.study / (run.program.empty() ? run.name : run.program);
  const fs::path trace = environment.work / file, kept = environment.kept / file;
  std::error_code error;
  const bool program_there = fs::exists(program, error);
  // One that an earlier version left, in a format that is no longer read, or a damaged one is as good as none.
  if (fs::exists(trace, error) && trace::TraceFile::Open(trace.string()).ok()) {
    if (!program_there || fs::last_write_time(trace, error) >= fs::last_write_time(program, error)) return trace;
  }
  if (!program_there) {
    if (fs::exists(kept, error)) return kept;
    return Error{
        "there is no program " + program.string() +
        "; it is built with Gridloom's tests where nvcc is found (scripts/build), or give its folder with --programs"};
  }
  const fs::path unfinished = trace.string() + ".unfinished";
  std::vector<std::string> command = {environment.tool.string(), "run", "--trace", unfinished.string()};
  if (!run.kernel.empty()) command.insert(command.end(), {"--trace-kernels", run.kernel});
  command.insert(command.end(), run.options.begin(), run.options.end());
  command.insert(command.end(), {"--", program.string()});
  command.insert(command.end(), run.arguments.begin(), run.arguments.end());
  GL_TRY(code, RunQuietly(std::move(command)));
  if (code != 0) return Error{program.string() + " ended with exit code " + std::to_string(code)};
  fs::rename(unfinished, trace, error);
  if (error) return Error{"cannot write " + trace.string() + ": " + error.message()};
  return trace;
}

}  // namespace gridloom::study
