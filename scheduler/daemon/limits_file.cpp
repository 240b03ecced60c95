#include "scheduler/daemon/limits_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "scheduler/daemon/accounts.h"

namespace gridloom::broker {
namespace {

using Json = nlohmann::ordered_json;

/// The names in the file.
template <typename Limits, typename Visit>
void ForEachField(Limits& limits, const Visit& visit) {
  visit("weight", limits.scheduling.weight);
  visit("cap", limits.scheduling.cap);
  visit("priority", limits.scheduling.priority);
  visit("in_flight", limits.scheduling.in_flight);
  visit("memory_bytes", limits.memory_bytes);
}

Json ToJson(const Limits& limits) {
  Json json = Json::object();
  ForEachField(limits, [&](const char* key, const auto& value) { json[key] = value; });
  return json;
}

/// False: it is not what ToJson makes.
bool FromJson(const Json& json, Limits* limits) {
  bool good = json.is_object();
  ForEachField(*limits, [&](const char* key, auto& value) {
    good = good && json.contains(key) && json[key].is_number();
    if (good) value = json[key].template get<std::decay_t<decltype(value)>>();
  });
  return good && CheckLimits(*limits).ok();
}

}  // namespace

Result<LimitChanges> ReadLimits(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT) return LimitChanges{};
    return Error{"cannot read " + path + ": " + std::strerror(errno)};
  }
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("version", 0) != 1 || !json.contains("tenants") || !json["tenants"].is_object()) {
    return Error{path + " is no file of limits"};
  }
  LimitChanges changes;
  for (const auto& [name, entry] : json["tenants"].items()) {
    ChangedLimits& change = changes[name];
    const bool whole = entry.is_object() && entry.contains("configured") && entry.contains("now");
    if (!whole || !FromJson(entry["configured"], &change.configured) || !FromJson(entry["now"], &change.now)) {
      return Error{path + ": the limits of " + name + " are damaged"};
    }
  }
  return changes;
}

Status WriteLimits(const std::string& path, const LimitChanges& changes) {
  Json json{{"version", 1}, {"tenants", Json::object()}};
  for (const auto& [name, change] : changes) {
    json["tenants"][name] = {{"configured", ToJson(change.configured)}, {"now", ToJson(change.now)}};
  }
  return ReplaceFile(path, json.dump(1) + "\n");
}

}  // namespace gridloom::broker
