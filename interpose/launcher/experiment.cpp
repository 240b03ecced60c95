// gridloom experiment: figures and tables of papers, from configs/experiments/NAME.yaml.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "sim/study/report/files.h"
#include "sim/study/studies.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using study::Exhibit;
using study::Settings;

/// A bar's worth of words on a terminal, a line now and then elsewhere.
study::MeasurementProgress ShowProgress() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return [terminal](std::size_t done, std::size_t all, const std::string& what) {
    const std::size_t step = std::max<std::size_t>(all / 20, 1);
    if (terminal)
      std::fprintf(stderr, "\r\033[K%zu of %zu measured (%s)%s", done, all, what.c_str(),
                   done == all ? "\r\033[K" : "");
    else if (done % step == 0 || done == all)
      std::fprintf(stderr, "gridloom: %zu of %zu measured (%s)\n", done, all, what.c_str());
  };
}

class ExperimentCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("name", name_, "an experiment of --list, or a YAML file")->type_name("");
    app.add_flag("--list", list_, "list the experiments, with what each shows");
    app.add_option("--set", set_, "change a value of the experiment's file, for example arrivals.seed=2")
        ->type_name("KEY=VALUE");
    app.add_option("--layouts", layouts_,
                   "layouts of the programs' pages in device memory to measure; as --set layouts.count=N")
        ->type_name("N");
    app.add_option("--programs", programs_, "folder of the workloads' programs (default: workloads/ beside this tool)")
        ->type_name("DIR");
    app.add_option("--work", work_, "folder that keeps traces and measurements (default: experiments/ in the cache)")
        ->type_name("DIR");
    app.add_option("--jobs,-j", jobs_, "measurements at the same time (default: one per core)")->type_name("N");
    app.add_option("--report", report_,
                   "write a page, NAME.html, NAME.json and a CSV file for each exhibit into this folder")
        ->type_name("DIR");
    app.add_flag("--json", json_, "print JSON");
  }

  int Run() override {
    if (list_) return List();
    if (name_.empty()) return Fail("no experiment named; `gridloom experiment --list` lists them");
    const auto exhibits = Show();
    if (!exhibits.ok()) return Fail(exhibits.error().message);
    if (json_) Print(JsonText(ToJson(*exhibits), 2) + "\n");
    if (report_.empty()) return kExitOk;
    const Status written = Write(*exhibits);
    return written ? kExitOk : Fail(written.error().message);
  }

 private:
  int List() const {
    Table table({"name", "study", "what it shows"});
    Json all = Json::array();
    int exit_code = kExitOk;
    for (const std::string& name : study::ExperimentNames()) {
      const auto line = study::DescribeExperiment(name);
      if (!line.ok()) {
        exit_code = Fail(line.error().message);
        continue;
      }
      table.Add({name, line->study, line->about});
      all.push_back({{"name", name}, {"study", line->study}, {"about", line->about}, {"show", line->show}});
    }
    Print(json_ ? JsonText(all, 2) + "\n" : table.Text(0));
    return exit_code;
  }

  Result<std::vector<Exhibit>> Show() {
    GL_TRY(settings, Settings::Load(name_));
    for (const std::string& assignment : set_) {
      const auto equals = assignment.find('=');
      if (equals == std::string::npos) return Error{"--set takes KEY=VALUE, not '" + assignment + "'"};
      GL_TRY_STATUS(settings.Set(assignment.substr(0, equals), assignment.substr(equals + 1)));
    }
    if (layouts_ != 0) GL_TRY_STATUS(settings.Set("layouts.count", std::to_string(layouts_)));
    settings_ = std::move(settings);
    GL_TRY(environment, MakeEnvironment());
    GL_TRY(study, study::CreateStudy(settings_, environment));
    GL_TRY(show, study::ExhibitsToShow(settings_, *study));
    std::vector<Exhibit> exhibits;
    for (const std::string& name : show) {
      GL_TRY(exhibit, study->Show(name));
      if (!json_) Print(study::TextOf(exhibit));
      std::fflush(stdout);
      exhibits.push_back(std::move(exhibit));
    }
    return exhibits;
  }

  Result<study::Environment> MakeEnvironment() const {
    GL_TRY(experiments, study::ExperimentDirectory());
    study::Environment environment{.tool = ToolDirectory() / "gridloom",
                                   .programs = programs_.empty() ? ToolDirectory() / "workloads" : fs::path(programs_),
                                   .work = work_,
                                   .kept = experiments / "traces",
                                   .threads = jobs_ != 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency()),
                                   .progress = ShowProgress()};
    if (work_.empty()) {
      if (CacheDirectory().empty()) return Error{"there is no cache folder (GRIDLOOM_CACHE_DIR); give one with --work"};
      environment.work = CacheDirectory() / "experiments";
    }
    std::error_code error;
    fs::create_directories(environment.work, error);
    if (error) return Error{"cannot create " + environment.work.string() + ": " + error.message()};
    return environment;
  }

  Json ToJson(const std::vector<Exhibit>& exhibits) const {
    Json json{{"experiment", settings_.name()}, {"exhibits", Json::array()}};
    for (const Exhibit& exhibit : exhibits) json["exhibits"].push_back(study::JsonOf(exhibit));
    return json;
  }

  Status Write(const std::vector<Exhibit>& exhibits) const {
    std::error_code error;
    fs::create_directories(report_, error);
    if (error) return Error{"cannot create " + report_ + ": " + error.message()};
    GL_TRY_STATUS(report::WriteFile(report_ + "/" + settings_.name() + ".json", JsonText(ToJson(exhibits), 2) + "\n"));
    GL_TRY_STATUS(report::WriteFile(report_ + "/" + settings_.name() + ".html",
                                    study::PageOf(settings_.name(), exhibits, Command())));
    for (const Exhibit& exhibit : exhibits)
      GL_TRY_STATUS(
          report::WriteFile(report_ + "/" + settings_.name() + "-" + exhibit.name + ".csv", study::CsvOf(exhibit)));
    return {};
  }

  std::string Command() const {
    std::string command = "gridloom experiment " + name_;
    for (const std::string& assignment : set_) command += " --set " + assignment;
    if (layouts_ != 0) command += " --layouts " + std::to_string(layouts_);
    return command + " --report DIR";
  }

  std::string name_, programs_, work_, report_;
  std::vector<std::string> set_;
  unsigned jobs_ = 0, layouts_ = 0;
  bool list_ = false, json_ = false;
  Settings settings_;
};

}  // namespace

std::unique_ptr<Command> MakeExperiment() { return std::make_unique<ExperimentCommand>(); }

}  // namespace gridloom::launcher
