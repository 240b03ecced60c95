// The `gridloom` tool: finds the command, lets it parse its options, runs it.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gridloom_commit.h"
#include "interpose/api/cuda_types.h"
#include "interpose/launcher/command.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/suggest.h"

namespace gridloom::launcher {
namespace {

std::string Overview() {
  std::string text =
      "Gridloom runs unmodified CUDA programs on machines without a GPU.\n\n"
      "usage: gridloom COMMAND [OPTIONS] [ARGUMENTS]\n\ncommands:\n";
  for (const CommandRow& row : Commands()) {
    text += "  " + std::string(row.name) + std::string(12 - row.name.size(), ' ') + std::string(row.summary) + "\n";
  }
  text +=
      "\nexamples:\n"
      "  gridloom doctor                       is this machine fit?\n"
      "  gridloom inspect ./app                which kernels are in it?\n"
      "  gridloom run --summary -- ./app       run it, and show which kernels ran\n"
      "\n`gridloom COMMAND --help` shows a command's options. Exit codes: the program's own, or 125 to 127 for "
      "Gridloom's.\n";
  return text;
}

/// What this build is, for reports of faults.
std::string Version() {
  const auto number = [](unsigned whole, unsigned part) { return std::to_string(whole) + "." + std::to_string(part); };
  const std::string commit = GRIDLOOM_COMMIT;
  return "gridloom " GRIDLOOM_VERSION + (commit.empty() ? "" : " (commit " + commit + ")") +
         "\nLLVM " GRIDLOOM_LLVM_VERSION "\nCUDA driver interface " +
         number(cuda::kDriverVersion / 1000, cuda::kDriverVersion % 1000 / 10) + "\nPTX up to " +
         number(ptx::kLastPtx / 10, ptx::kLastPtx % 10) + "\nlicence Apache-2.0\n";
}

/// CLI11's help with a usage line of our own.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(const CommandRow& row) : row_(row) { column_width(28); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "usage: gridloom " + std::string(row_.name) + " " + std::string(row_.usage) + "\n";
  }

 private:
  const CommandRow& row_;
};

const CommandRow* FindCommand(std::string_view name) {
  for (const CommandRow& row : Commands()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : Commands()) names.push_back(row.name);
  const std::string_view nearest = NearestName(name, names);
  std::string message = "unknown command '" + name + "'";
  message += nearest.empty() ? "; `gridloom --help` lists them" : "; did you mean '" + std::string(nearest) + "'?";
  return Fail(message);
}

/// Where CLI11 only says that an option is unexpected: the nearest one there is.
std::string Suggestion(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || std::find(views.begin(), views.end(), name) != views.end()) continue;
    const std::string_view nearest = NearestName(name, views);
    return "unknown option '" + name + "'" + (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?");
  }
  return "";
}

int RunCommand(const CommandRow& row, std::vector<std::string> arguments) {
  const std::unique_ptr<Command> command = row.make();
  CLI::App app{std::string(row.summary), "gridloom " + std::string(row.name)};
  app.footer("examples:\n" + std::string(row.examples));
  app.formatter(std::make_shared<HelpFormatter>(row));
  command->Describe(app);
  try {
    std::vector<std::string> own = command->Split(std::move(arguments));
    const std::vector<std::string> given = own;
    std::reverse(own.begin(), own.end());  // the order CLI11 takes a vector in
    try {
      app.parse(own);
    } catch (const CLI::CallForHelp&) {
      std::fputs(app.help().c_str(), stdout);
      return kExitOk;
    } catch (const CLI::ParseError& error) {
      const std::string suggestion = Suggestion(app, given);
      return Fail((suggestion.empty() ? std::string(error.what()) : suggestion) + "\n  `gridloom " +
                  std::string(row.name) + " --help` shows how to use it");
    }
    return command->Run();
  } catch (const std::exception& error) {
    return Fail(std::string("internal error: ") + error.what());
  }
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(Overview().c_str(), stderr);
    return kExitFailed;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    std::fputs(Overview().c_str(), stdout);
    return kExitOk;
  }
  if (arguments[0] == "--version") {
    std::fputs(Version().c_str(), stdout);
    return kExitOk;
  }
  const CommandRow* row = FindCommand(arguments[0]);
  if (row == nullptr) return UnknownCommand(arguments[0]);
  return RunCommand(*row, {arguments.begin() + 1, arguments.end()});
}

}  // namespace
}  // namespace gridloom::launcher

int main(int argc, char** argv) { return gridloom::launcher::Main({argv + 1, argv + argc}); }
