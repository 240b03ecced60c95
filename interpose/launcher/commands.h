// The makers of all commands; each is defined in the command's own file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interpose/launcher/command.h"
#include "rewriter/support/result.h"

namespace gridloom::launcher {

/// `replay`, for commands that make the traces themselves.
class TraceReplay : public Command {
 public:
  /// In place of those that were given as arguments. Before Run.
  virtual void SetTraces(std::vector<std::string> traces) = 0;
  /// Whether devices, parts, keys and policies can be, once the options were parsed.
  virtual Status Check() = 0;
  /// What traces have to tell of ranges (`gridloom run --ranges`); empty: nothing. After Check.
  virtual Result<std::string> Ranges() const = 0;
};
std::unique_ptr<TraceReplay> MakeTraceReplay();

std::unique_ptr<Command> MakeRun();
std::unique_ptr<Command> MakeDemo();
std::unique_ptr<Command> MakeInspect();
std::unique_ptr<Command> MakeRewrite();
std::unique_ptr<Command> MakeDevices();
std::unique_ptr<Command> MakeHardware();
std::unique_ptr<Command> MakeCache();
std::unique_ptr<Command> MakeDoctor();
std::unique_ptr<Command> MakeTrace();
std::unique_ptr<Command> MakeReplay();
std::unique_ptr<Command> MakeCompare();
std::unique_ptr<Command> MakeExperiment();
std::unique_ptr<Command> MakeSweep();
std::unique_ptr<Command> MakeDaemon();
std::unique_ptr<Command> MakePs();
std::unique_ptr<Command> MakeTop();
std::unique_ptr<Command> MakeKill();
std::unique_ptr<Command> MakeLimits();

}  // namespace gridloom::launcher
