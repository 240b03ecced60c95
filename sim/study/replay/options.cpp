#include "sim/study/replay/options.h"

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "rewriter/support/quantity.h"
#include "sim/device/device_files.h"

namespace gridloom::study {

Status ReplayOptions::Complete() {
  if (devices.empty()) devices.emplace_back(sim::kDefaultDevice);
  if (policies.empty()) policies = {"leftover"};
  if (!profiles.empty() && devices.size() != 1) return Error{"profiles are of one device: name one with --device"};
  for (const std::string& text : sets) {
    GL_TRY(parameter, ParseParameter(text));
    parameters.push_back(std::move(parameter));
  }
  sets.clear();
  ParameterValues rates{"timing.host.storage_mb_s", {}};
  for (const std::string& text : storage) {
    const auto rate = ParseRate(text);
    if (!rate) return Error{"--storage is '" + text + "'; expected a rate from 1 MB/s to 1000 GB/s, such as 500MB/s"};
    rates.values.push_back(std::to_string(*rate));
  }
  storage.clear();
  if (!rates.values.empty()) parameters.push_back(std::move(rates));
  if (!lowering.empty()) parameters.push_back({"timing.lowering", std::move(lowering)});
  lowering.clear();
  return CheckKeys();
}

Status ReplayOptions::CheckKeys() const {
  std::set<std::string> seen;
  for (const ParameterValues& parameter : parameters) {
    if (!seen.insert(parameter.key).second)
      return Error{parameter.key + " is set twice; --set " + parameter.key +
                   "=A,B tries both (--lowering and --storage set keys, too)"};
  }
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
  std::map<std::string, int> taken;  // and the last number that was put behind the name
  for (Workload& workload : workloads) {
    const std::string name = workload.name;
    while (!taken.try_emplace(workload.name, 1).second) workload.name = name + "-" + std::to_string(++taken[name]);
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

}  // namespace gridloom::study
