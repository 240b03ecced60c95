#include "interpose/launcher/replay/options.h"

#include <filesystem>
#include <set>
#include <sstream>

#include "sim/device/device_files.h"

namespace gridloom::launcher {

void ReplayOptions::Describe(CLI::App& app) {
  app.add_option("--device,-d", devices, "devices, or YAML files, separated by commas (default: h200)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--policy,-p", policies, "scheduling policies, separated by commas (default: leftover)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--set", sets_, "a key of the device file and the values that it takes; again for another key, in every combination")
      ->type_name("KEY=VALUE,...")
      ->allow_extra_args(false);
  app.add_option("--report,-r", report, "folder for a report: HTML, JSON, CSV, trace events; what is finished in it is not done again")
      ->type_name("DIR");
  app.add_flag("--fresh", fresh, "do everything again, also what is finished in the report's folder");
  app.add_option("--baseline", baseline, "device, policy or both (with a comma) that speed-ups refer to (default: the first)")
      ->type_name("NAME");
  app.add_option("--profiles", profiles, "profiles of kernels on the device, for the policy kernelet (default: it makes them)")
      ->type_name("FILE");
  app.add_flag("--kernels-only", kernels_only, "launches alone, all there from the beginning: no copies, no time of the programs'");
  app.add_option("--jobs,-j", jobs, "replays at the same time (default: one per core)")->type_name("N");
  app.add_option("--threads", threads, "host threads of each replay; the results are the same (default: 1)")->type_name("N");
}

Status ReplayOptions::Complete() {
  if (devices.empty()) devices.emplace_back(sim::kDefaultDevice);
  if (policies.empty()) policies = {"leftover"};
  if (!profiles.empty() && devices.size() != 1) return Error{"profiles are of one device: name one with --device"};
  for (const std::string& text : sets_) {
    GL_TRY(parameter, ParseParameter(text));
    parameters.push_back(std::move(parameter));
  }
  sets_.clear();
  return {};
}

std::vector<Workload> WorkloadsOf(const std::vector<std::string>& traces, bool mix) {
  std::vector<Workload> workloads;
  for (const std::string& trace : traces) {
    const std::string name = std::filesystem::path(trace).stem().string();
    if (mix && !workloads.empty()) {
      workloads[0].name += "+" + name;
      workloads[0].traces.push_back(trace);
    } else {
      workloads.push_back({name, {trace}});
    }
  }
  std::set<std::string> taken;
  for (Workload& workload : workloads) {
    const std::string name = workload.name;
    for (int number = 2; !taken.insert(workload.name).second; ++number) workload.name = name + "-" + std::to_string(number);
  }
  return workloads;
}

Result<ParameterValues> ParseParameter(const std::string& text) {
  const std::size_t equals = text.find('=');
  ParameterValues parameter{text.substr(0, equals), {}};
  if (equals != std::string::npos) {
    std::istringstream values(text.substr(equals + 1));
    for (std::string value; std::getline(values, value, ',');) {
      if (!value.empty()) parameter.values.push_back(value);
    }
  }
  if (parameter.key.empty() || parameter.values.empty()) {
    return Error{"--set " + text + ": expected a key of the device file and values, such as timing.l1.mshrs=16,32"};
  }
  return parameter;
}

}  // namespace gridloom::launcher
