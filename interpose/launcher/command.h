// What a subcommand of the `gridloom` tool is. A command is one .cpp file and one row in commands.cpp.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gridloom::launcher {

/// Exit codes of our own; a program that `run` starts has its own. 126 and 127 mean what they mean in a shell.
enum ExitCode : int {
  kExitOk = 0,
  kExitFound = 1,     ///< the command worked and found what it was asked to look for: a problem
  kExitFailed = 125,  ///< wrong usage, or Gridloom could not do it
  kExitNotExecutable = 126,
  kExitNotFound = 127,
};

class Command {
 public:
  virtual ~Command() = default;
  /// Adds options and positionals, bound to members.
  virtual void Describe(CLI::App& app) = 0;
  /// Takes what follows the command's name before the options are parsed; what it returns is parsed. Only `run`, whose
  /// arguments are mostly someone else's, needs this.
  virtual std::vector<std::string> Split(std::vector<std::string> arguments) { return arguments; }
  /// Does the work after the options were parsed; returns the exit code.
  virtual int Run() = 0;
};

struct CommandRow {
  std::string_view name;
  std::string_view summary;   ///< one line
  std::string_view usage;     ///< after "gridloom NAME"
  std::string_view examples;  ///< shown by --help, one per line
  std::unique_ptr<Command> (*make)();
};

/// All commands, in the order of the help text.
std::span<const CommandRow> Commands();

/// Prints "gridloom: MESSAGE" on stderr; returns kExitFailed.
int Fail(std::string_view message);

}  // namespace gridloom::launcher
