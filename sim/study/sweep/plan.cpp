#include "sim/study/sweep/plan.h"

#include <algorithm>
#include <filesystem>

#include "rewriter/support/whole_file.h"
#include "sim/study/report/files.h"

namespace gridloom::study {
namespace {

using Json = report::Json;

constexpr const char* kFormat = "gridloom-sweep-1";

ReplayOptions OptionsFrom(const Json& json) {
  ReplayOptions options;
  for (const Json& workload : json.at("workloads"))
    options.workloads.push_back(
        {workload.at("name").get<std::string>(), workload.at("traces").get<std::vector<std::string>>()});
  for (const Json& parameter : json.at("parameters"))
    options.parameters.push_back(
        {parameter.at("key").get<std::string>(), parameter.at("values").get<std::vector<std::string>>()});
  options.devices = json.at("devices").get<std::vector<std::string>>();
  options.hardware = json.value("hardware", std::vector<std::string>());
  options.policies = json.at("policies").get<std::vector<std::string>>();
  options.baseline = json.at("baseline").get<std::string>();
  options.title = json.at("title").get<std::string>();
  options.command = json.at("command").get<std::string>();
  options.threads = json.at("threads").get<unsigned>();
  options.jobs = json.at("jobs").get<unsigned>();
  options.alone = json.value("alone", true);
  options.most_instructions = json.value("most_instructions", options.most_instructions);
  return options;
}

}  // namespace

Status SaveSweep(const SweepPlan& plan) {
  const ReplayOptions& options = plan.options;
  Json json{{"format", kFormat}, {"tasks", plan.tasks}};
  for (const Workload& workload : options.workloads)
    json["workloads"].push_back({{"name", workload.name}, {"traces", workload.traces}});
  json["devices"] = options.devices;
  if (!options.hardware.empty()) json["hardware"] = options.hardware;
  json["policies"] = options.policies;
  json["parameters"] = Json::array();
  for (const ParameterValues& parameter : options.parameters)
    json["parameters"].push_back({{"key", parameter.key}, {"values", parameter.values}});
  json["baseline"] = options.baseline;
  json["title"] = options.title;
  json["command"] = options.command;
  json["threads"] = options.threads;
  json["jobs"] = options.jobs;
  if (!options.alone) json["alone"] = false;
  json["most_instructions"] = options.most_instructions;
  json["replays"] = Json::array();
  for (const Cell& cell : plan.replays.cells) json["replays"].push_back(cell.file);
  return report::WriteFile(plan.path(), report::JsonText(json, 1) + "\n");
}

Result<SweepPlan> LoadSweep(const std::string& path) {
  GL_TRY(text, ReadWholeFile(path));
  const Json json = ParseJson<Json>(text);
  SweepPlan plan;
  std::vector<std::string> files;
  try {
    if (json.at("format") != kFormat) return Error{path + " is no plan of a sweep of this version"};
    plan.options = OptionsFrom(json);
    plan.tasks = std::max<std::size_t>(json.at("tasks").get<std::size_t>(), 1);
    files = json.at("replays").get<std::vector<std::string>>();
  } catch (const Json::exception& error) {
    return Error{path + " is no plan of a sweep: " + error.what()};
  }
  plan.options.report = std::filesystem::absolute(path).parent_path().string();
  GL_TRY(replays, PlanReplays(plan.options));
  plan.replays = std::move(replays);
  bool same = plan.replays.cells.size() == files.size();
  for (std::size_t i = 0; same && i < files.size(); ++i) same = plan.replays.cells[i].file == files[i];
  if (!same)
    return Error{
        path +
        ": the sweep was planned by another build of gridloom, or traces or devices have changed since; plan it again"};
  return plan;
}

}  // namespace gridloom::study
