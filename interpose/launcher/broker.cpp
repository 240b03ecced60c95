// gridloom daemon, ps, top, kill, limits: the broker and its operator's view. The broker itself is a program of its
// own.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/Formatter.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "scheduler/cli/ask.h"
#include "scheduler/cli/listing.h"

namespace gridloom::launcher {
namespace {

using protocol::Request;
using protocol::Verb;

/// What all commands but `daemon` share: which broker, and how it answers.
class BrokerCommand : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("--socket,-s", socket_, "the broker's socket (default: the usual one)")->type_name("PATH");
    app.add_flag("--json", json_, "the broker's answer as JSON");
  }

 protected:
  /// Prints the answer, as text where `text` makes one of it.
  template <typename Text>
  int Show(const Request& request, const Text& text) {
    const auto answer = broker::Ask(socket_, request);
    if (!answer.ok()) return Fail(answer.error().message);
    return ShowAnswer(*answer, text);
  }

  /// The answer is another program's: it may have any shape.
  template <typename Text>
  int ShowAnswer(const nlohmann::ordered_json& answer, const Text& text, int indent = 2) const {
    try {
      Print(json_ ? JsonText(answer, indent) + "\n" : text(answer));
    } catch (const nlohmann::ordered_json::exception& wrong) {
      return Fail(std::string("the broker answers something else: ") + wrong.what());
    }
    return kExitOk;
  }

  std::string socket_;
  bool json_ = false;
};

class Daemon final : public Command {
 public:
  void Describe(CLI::App&) override {}
  /// Options are the daemon's own: it parses them, and shows its help.
  std::vector<std::string> Split(std::vector<std::string> arguments) override {
    arguments_ = std::move(arguments);
    return {};
  }
  int Run() override {
    const std::string program = (ToolDirectory() / "gridloom-daemon").string();
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (std::string& argument : arguments_) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    return Fail("cannot start " + program + ": " + std::strerror(errno) +
                "; build it with scripts/build or install Gridloom again");
  }

 private:
  std::vector<std::string> arguments_;
};

class Ps final : public BrokerCommand {
 public:
  int Run() override { return Show(Request{}, broker::Listing); }
};

class Top final : public BrokerCommand {
 public:
  void Describe(CLI::App& app) override {
    BrokerCommand::Describe(app);
    app.add_option("--interval,-i", seconds_, "seconds between two pictures (default: 1)")
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("S");
    app.add_option("--count,-n", count_, "so many pictures, then end (default: until Ctrl-C)")->type_name("N");
  }

  int Run() override {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    auto before = broker::Ask(socket_, Request{});
    if (!before.ok()) return Fail(before.error().message);
    for (unsigned shown = 0; count_ == 0 || shown < count_; ++shown) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
      auto now = broker::Ask(socket_, Request{});
      if (!now.ok()) return Fail(now.error().message);
      winsize size{};
      if (terminal) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
      if (terminal && !json_) std::fputs("\033[H\033[2J", stdout);
      const auto picture = [&](const nlohmann::ordered_json& state) {
        return broker::Picture(*before, state, size.ws_col, size.ws_row);
      };
      if (const int done = ShowAnswer(*now, picture, -1); done != kExitOk) return done;
      before = std::move(now);
    }
    return kExitOk;
  }

 private:
  double seconds_ = 1;
  unsigned count_ = 0;
};

class Kill final : public BrokerCommand {
 public:
  void Describe(CLI::App& app) override {
    BrokerCommand::Describe(app);
    app.add_option("WHO", who_, "number of a process, or name of a tenant: all its processes")->required();
    app.add_flag("--process", process_, "end the processes too (SIGKILL), not only their place at the broker");
  }
  int Run() override {
    return Show(
        {.verb = Verb::kKill, .target = who_, .fields = process_ ? 1u : 0u}, [](const nlohmann::ordered_json& answer) {
          std::string text = "ended:";
          for (const auto& pid : answer.at("killed")) text += " " + std::to_string(pid.get<int>());
          text += "\n";
          if (!answer.contains("not_signalled")) return text;
          text +=
              "not signalled, as this kernel (before Linux 6.5) does not tell for certain which processes they are:";
          for (const auto& pid : answer.at("not_signalled")) text += " " + std::to_string(pid.get<int>());
          return text + "\n";
        });
  }

 private:
  std::string who_;
  bool process_ = false;
};

class LimitsCommand final : public BrokerCommand {
 public:
  void Describe(CLI::App& app) override {
    BrokerCommand::Describe(app);
    app.add_option("TENANT", tenant_, "whose limits; with no option they are shown");
    weight_ =
        app.add_option("--weight", request_.weight, "share of the device among tenants that want it")->type_name("W");
    cap_ = app.add_option("--cap", cap_text_, "largest part of the device: 25%, or 100% for none")->type_name("PART");
    priority_ =
        app.add_option("--priority", request_.priority, "-100 to 100; larger goes first under policy `priority`")
            ->type_name("N");
    in_flight_ = app.add_option("--in-flight", request_.in_flight, "launches that take part in decisions at a time")
                     ->type_name("N");
    memory_ = app.add_option("--memory", memory_text_, "device memory of all its processes: 4G")->type_name("SIZE");
    app.add_option("--policy", policy_, "change the broker's policy")->type_name("NAME");
  }

  int Run() override {
    if (!policy_.empty()) {
      const int done = Show({.verb = Verb::kPolicy, .target = policy_}, [](const nlohmann::ordered_json& answer) {
        return "policy " + answer.at("policy").get<std::string>() + "\n";
      });
      if (done != kExitOk || tenant_.empty()) return done;
    }
    if (tenant_.empty()) return Fail("whose limits? `gridloom ps` lists the tenants");
    request_.verb = Verb::kLimits;
    request_.target = tenant_;
    if (const Status parsed = Parse(); !parsed.ok()) return Fail(parsed.error().message);
    return Show(request_, [](const nlohmann::ordered_json& answer) {
      const auto& limits = answer.at("limits");
      return answer.at("name").get<std::string>() + ": weight " + JsonText(limits.at("weight")) + ", cap " +
             JsonText(limits.at("cap")) + ", priority " + JsonText(limits.at("priority")) + ", in flight " +
             JsonText(limits.at("in_flight")) + ", memory " + JsonText(limits.at("memory_bytes")) + " bytes\n";
    });
  }

 private:
  Status Parse() {
    if (weight_->count() != 0) request_.fields |= protocol::kFieldWeight;
    if (priority_->count() != 0) request_.fields |= protocol::kFieldPriority;
    if (in_flight_->count() != 0) request_.fields |= protocol::kFieldInFlight;
    if (cap_->count() != 0) {
      GL_TRY(part, ParseNumber(cap_text_, "%", 0.01, "--cap is '" + cap_text_ + "'; expected a part such as 25%"));
      request_.fields |= protocol::kFieldCap;
      request_.cap = part;
    }
    if (memory_->count() != 0) {
      GL_TRY(bytes, ParseBytes());
      request_.fields |= protocol::kFieldMemory;
      request_.memory_bytes = bytes;
    }
    return {};
  }

  static Result<double> ParseNumber(const std::string& text, std::string_view unit, double factor,
                                    const std::string& message) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (error != std::errc() || (!rest.empty() && rest != unit)) return Error{message};
    return rest.empty() ? value : value * factor;
  }

  Result<std::uint64_t> ParseBytes() const {
    constexpr std::string_view kUnits = "KMGT";
    for (std::size_t i = 0; i < kUnits.size(); ++i) {
      const auto value =
          ParseNumber(memory_text_, kUnits.substr(i, 1), static_cast<double>(std::uint64_t{1} << (10 * (i + 1))), "");
      if (value.ok() && *value >= 0) return static_cast<std::uint64_t>(*value);
    }
    return Error{"--memory is '" + memory_text_ + "'; expected bytes such as 4G"};
  }

  std::string tenant_, cap_text_, memory_text_, policy_;
  Request request_;
  CLI::Option *weight_ = nullptr, *cap_ = nullptr, *priority_ = nullptr, *in_flight_ = nullptr, *memory_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> MakeDaemon() { return std::make_unique<Daemon>(); }
std::unique_ptr<Command> MakePs() { return std::make_unique<Ps>(); }
std::unique_ptr<Command> MakeTop() { return std::make_unique<Top>(); }
std::unique_ptr<Command> MakeKill() { return std::make_unique<Kill>(); }
std::unique_ptr<Command> MakeLimits() { return std::make_unique<LimitsCommand>(); }

}  // namespace gridloom::launcher
