// gridloom doctor: what is wrong with this machine, and what mends it.
#include <nlohmann/json.hpp>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/doctor/checks.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"

namespace gridloom::launcher {
namespace {

struct VerdictText {
  std::string_view json, shown;
  Colour colour;
};
constexpr VerdictText kVerdicts[] = {
    {"good", "ok", Colour::kGreen}, {"note", "note", Colour::kYellow}, {"problem", "PROBLEM", Colour::kRed}};

class Doctor final : public Command {
 public:
  void Describe(CLI::App& app) override { app.add_flag("--json", json_, "print JSON"); }

  int Run() override {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    int problems = 0;
    for (const Check& check : Checks()) {
      const Finding finding = check.look();
      const VerdictText& verdict = kVerdicts[static_cast<std::size_t>(finding.verdict)];
      problems += finding.verdict == Verdict::kProblem ? 1 : 0;
      all.push_back({{"check", check.name}, {"verdict", verdict.json}, {"text", finding.text}, {"mend", finding.mend}});
      if (!json_) Show(check, finding, verdict);
    }
    if (json_) Print(JsonText(all, 2) + "\n");
    else Print(Conclusion(problems));
    return problems == 0 ? kExitOk : kExitFound;
  }

 private:
  static void Show(const Check& check, const Finding& finding, const VerdictText& verdict) {
    constexpr std::size_t kVerdictWidth = 9, kNameWidth = 11;
    Print(Coloured(verdict.colour, verdict.shown) + std::string(kVerdictWidth - verdict.shown.size(), ' ') +
          std::string(check.name) + std::string(kNameWidth - check.name.size(), ' ') + finding.text + "\n");
    if (!finding.mend.empty())
      Print(std::string(kVerdictWidth + kNameWidth, ' ') + "to mend it: " + Coloured(Colour::kBold, finding.mend) +
            "\n");
  }

  static std::string Conclusion(int problems) {
    if (problems == 0) return "\nThis machine is fit to run CUDA programs: gridloom run -- ./app\n";
    return "\n" + std::to_string(problems) + (problems == 1 ? " problem" : " problems") + " to mend.\n";
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<Doctor>(); }

}  // namespace gridloom::launcher
