#include "scheduler/daemon/limits_file.h"

#include "rewriter/support/json.h"
#include "scheduler/daemon/state_file.h"

namespace gridloom::broker {
namespace {

constexpr const char* kLimitsFile = "limits.json";

/// The names in the file.
template <typename Limits, typename Visit>
void ForEachLimit(Limits& limits, const Visit& visit) {
  visit("weight", limits.scheduling.weight);
  visit("cap", limits.scheduling.cap);
  visit("priority", limits.scheduling.priority);
  visit("in_flight", limits.scheduling.in_flight);
  visit("memory_bytes", limits.memory_bytes);
}

nlohmann::json ToJson(const Limits& limits) {
  nlohmann::json json = nlohmann::json::object();
  ForEachLimit(limits, [&](const char* key, const auto& value) { json[key] = value; });
  return json;
}

/// False: it is not what ToJson makes.
bool FromJson(const nlohmann::json& json, Limits* limits) {
  bool good = json.is_object();
  ForEachLimit(*limits, [&](const char* key, auto& value) {
    good = good && json.contains(key) && TakeNumber(json[key], &value);
  });
  return good && CheckLimits(*limits).ok();
}

}  // namespace

Result<LimitChanges> ParseLimits(std::string_view text, const std::string& path) {
  GL_TRY(tenants, ParseTenants(text, path, "file of limits"));
  LimitChanges changes;
  for (const auto& [name, entry] : tenants.items()) {
    ChangedLimits& change = changes[name];
    const bool whole = entry.is_object() && entry.contains("configured") && entry.contains("now");
    if (!whole || !FromJson(entry["configured"], &change.configured) || !FromJson(entry["now"], &change.now)) {
      return Error{path + ": the limits of " + name + " are damaged"};
    }
  }
  return changes;
}

std::string LimitsText(const LimitChanges& changes) {
  TenantsText text;
  for (const auto& [name, change] : changes) {
    text.Add(name, JsonText(nlohmann::json{{"configured", ToJson(change.configured)}, {"now", ToJson(change.now)}}));
  }
  return text.Finish();
}

Result<LimitChanges> ReadLimits(StateFolder& folder) {
  GL_TRY(text, folder.Read(kLimitsFile));
  return text ? ParseLimits(*text, folder.path() + "/" + kLimitsFile) : LimitChanges{};
}

Status WriteLimits(StateFolder& folder, const LimitChanges& changes) {
  return folder.Replace(kLimitsFile, LimitsText(changes));
}

}  // namespace gridloom::broker
