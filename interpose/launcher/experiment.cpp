// gridloom experiment: figures and tables of papers, from configs/experiments/NAME.yaml.
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "rewriter/support/terminal.h"
#include "sim/device/device_files.h"
#include "sim/study/experiment/workload_traces.h"
#include "sim/study/kernelet/exhibits.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;
using study::Exhibit;
using study::Settings;

/// A bar's worth of words on a terminal, a line now and then elsewhere.
study::StudyProgress ShowProgress() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return [terminal](std::size_t done, std::size_t all, const std::string& what) {
    const std::size_t step = std::max<std::size_t>(all / 20, 1);
    if (terminal) std::fprintf(stderr, "\r\033[K%zu of %zu measured (%s)%s", done, all, what.c_str(), done == all ? "\r\033[K" : "");
    else if (done % step == 0 || done == all) std::fprintf(stderr, "gridloom: %zu of %zu measured (%s)\n", done, all, what.c_str());
  };
}

Status WriteText(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  return out ? Status() : Status(Error{"cannot write " + path.string()});
}

class ExperimentCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("name", name_, "an experiment of --list, or a YAML file")->type_name("");
    app.add_flag("--list", list_, "list the experiments");
    app.add_option("--set", set_, "change a value of the experiment's file, for example arrivals.seed=2")->type_name("KEY=VALUE");
    app.add_option("--layouts", layouts_, "layouts of the programs' pages in device memory to measure; as --set layouts.count=N")
        ->type_name("N");
    app.add_option("--programs", programs_, "folder of the workloads' programs (default: workloads/ beside this tool)")->type_name("DIR");
    app.add_option("--work", work_, "folder that keeps traces and measurements (default: experiments/ in the cache)")->type_name("DIR");
    app.add_option("--jobs,-j", jobs_, "measurements at the same time (default: one per core)")->type_name("N");
    app.add_option("--report", report_, "write a page, NAME.html, NAME.json and a CSV file for each exhibit into this folder")
        ->type_name("DIR");
    app.add_flag("--json", json_, "print JSON");
  }

  int Run() override {
    if (list_) return List();
    if (name_.empty()) return Fail("no experiment named; `gridloom experiment --list` lists them");
    const auto exhibits = Show();
    if (!exhibits.ok()) return Fail(exhibits.error().message);
    if (json_) Print(ToJson(*exhibits).dump(2) + "\n");
    if (report_.empty()) return kExitOk;
    const Status written = Write(*exhibits);
    return written ? kExitOk : Fail(written.error().message);
  }

 private:
  int List() const {
    for (const std::string& name : study::ExperimentNames()) Print(name + "\n");
    return kExitOk;
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
    GL_TRY(study, settings_.Text("study"));
    if (study != "kernelet") return Error{"study '" + study + "' is not known; there is kernelet"};
    GL_TRY(show, settings_.List("show"));
    GL_TRY_STATUS(FindFolders());
    GL_TRY(cache, study::RateCache::Open((fs::path(work_) / "measurements.jsonl").string()));
    GL_TRY(studies, Studies(*cache));
    std::vector<Exhibit> exhibits;
    for (const std::string& name : show) {
      GL_TRY(exhibit, study::ShowKernelet(name, settings_, studies));
      if (!json_) Print(study::TextOf(exhibit));
      std::fflush(stdout);
      exhibits.push_back(std::move(exhibit));
    }
    return exhibits;
  }

  Status FindFolders() {
    if (programs_.empty()) programs_ = (ToolDirectory() / "workloads").string();
    if (work_.empty()) {
      if (CacheDirectory().empty()) return Error{"there is no cache folder (GRIDLOOM_CACHE_DIR); give one with --work"};
      work_ = (CacheDirectory() / "experiments").string();
    }
    std::error_code error;
    fs::create_directories(work_, error);
    if (error) return Error{"cannot create " + work_ + ": " + error.message()};
    return {};
  }

  Result<study::Studies> Studies(study::RateCache& cache) {
    GL_TRY(devices, settings_.List("devices"));
    GL_TRY(kernels, Kernels());
    GL_TRY(layouts, settings_.Number("layouts.count"));
    GL_TRY(first, settings_.Number("layouts.first"));
    if (layouts < 1 || first < 1) return Error{"layouts.count and layouts.first must be at least 1"};
    const unsigned threads = jobs_ != 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency());
    study::Studies studies;
    for (const std::string& name : devices) {
      GL_TRY(device, sim::LoadDevice(name));
      study::LayoutStudies& of_device = studies.emplace_back();
      for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(layouts); ++i) {
        const std::uint64_t layout = static_cast<std::uint64_t>(first) + i;
        GL_TRY(study, study::KernelStudy::Create(settings_, device, kernels, layout, cache, threads, ShowProgress()));
        of_device.push_back(std::move(study));
      }
    }
    return studies;
  }

  Result<std::vector<study::StudyKernel>> Kernels() {
    GL_TRY(experiments, study::ExperimentDirectory());
    const fs::path kept = experiments / "traces";
    std::vector<study::StudyKernel> kernels;
    for (const std::string& name : settings_.Below("kernels")) {
      const std::string key = "kernels." + name + ".";
      GL_TRY(kernel, settings_.Text(key + "kernel"));
      GL_TRY(paper_ctas, settings_.Number(key + "paper_ctas"));
      GL_TRY(scale, settings_.Number(key + "scale"));
      const std::string file = "kernelet-" + name + ".gltrace";
      GL_TRY(trace, study::EnsureTrace(fs::path(programs_) / "kernelet" / name, kernel, fs::path(work_) / file, kept / file));
      const auto process = static_cast<std::uint32_t>(kernels.size() + 1);  // each program's memory is its own
      GL_TRY(traced, study::LoadTracedKernel(trace.string(), kernel, name, process));
      kernels.push_back({.traced = std::move(traced), .paper_ctas = paper_ctas, .scale = scale});
    }
    return kernels;
  }

  nlohmann::ordered_json ToJson(const std::vector<Exhibit>& exhibits) const {
    nlohmann::ordered_json json{{"experiment", settings_.name()}, {"exhibits", nlohmann::ordered_json::array()}};
    for (const Exhibit& exhibit : exhibits) json["exhibits"].push_back(study::JsonOf(exhibit));
    return json;
  }

  Status Write(const std::vector<Exhibit>& exhibits) const {
    std::error_code error;
    fs::create_directories(report_, error);
    if (error) return Error{"cannot create " + report_ + ": " + error.message()};
    GL_TRY_STATUS(WriteText(fs::path(report_) / (settings_.name() + ".json"), ToJson(exhibits).dump(2) + "\n"));
    GL_TRY_STATUS(WriteText(fs::path(report_) / (settings_.name() + ".html"), study::PageOf(settings_.name(), exhibits, Command())));
    for (const Exhibit& exhibit : exhibits)
      GL_TRY_STATUS(WriteText(fs::path(report_) / (settings_.name() + "-" + exhibit.name + ".csv"), study::CsvOf(exhibit)));
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
