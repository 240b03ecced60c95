#include "scheduler/daemon/config.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <unordered_map>

#include "rewriter/support/quantity.h"
#include "rewriter/support/suggest.h"
#include "rewriter/support/whole_file.h"
#include "scheduler/policy/builtin.h"
#include "scheduler/protocol/record.h"
#include "scheduler/protocol/secret.h"
#include "sim/device/yaml_map.h"

namespace gridloom::broker {
namespace {

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
bool Set(std::string_view text, T* field) {
  const auto value = ParseNumber<T>(text);
  if (value) *field = *value;
  return value.has_value();
}

bool SetFrom(const std::optional<double>& value, double* field) {
  if (value) *field = *value;
  return value.has_value();
}

/// A key, what its value has to be, and where it goes.
template <typename T>
struct Key {
  std::string_view name;
  std::string_view expected;
  bool (*set)(T& target, std::string_view text);
  std::string (*why)(std::string_view text) = nullptr;  ///< more about a value that is not taken
};

constexpr Key<Limits> kLimitKeys[] = {
    {"weight", "a number above 0", [](Limits& l, std::string_view t) { return Set(t, &l.scheduling.weight); }},
    {"cap", "a part of the device such as 25%",
     [](Limits& l, std::string_view t) { return SetFrom(ParsePart(t), &l.scheduling.cap); }},
    {"priority", "a number from -100 to 100",
     [](Limits& l, std::string_view t) { return Set(t, &l.scheduling.priority); }},
    {"in_flight", "a number of launches",
     [](Limits& l, std::string_view t) { return Set(t, &l.scheduling.in_flight); }},
    {"memory", "bytes such as 4G",
     [](Limits& l, std::string_view t) {
       const auto bytes = ParseBytes(t);
       if (bytes) l.memory_bytes = *bytes;
       return bytes.has_value();
     }},
};

constexpr Key<DaemonConfig> kKeys[] = {
    {"socket", "a path", [](DaemonConfig& c, std::string_view t) { return !(c.socket = t).empty(); }},
    {"socket_mode", "permissions such as 0600",
     [](DaemonConfig& c, std::string_view t) {
       unsigned mode = 0;
       const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), mode, 8);
       c.socket_mode = mode;
       return error == std::errc() && end == t.data() + t.size() && mode <= 0777;
     }},
    {"device", "a device that `gridloom devices` lists, or a file",
     [](DaemonConfig& c, std::string_view t) { return !(c.device = t).empty(); }},
    {"policy", "a policy", [](DaemonConfig& c, std::string_view t) { return policy::FindPolicy(c.policy = t).ok(); },
     [](std::string_view t) { return policy::FindPolicy(t).error().message; }},
    {"profiles", "a file", [](DaemonConfig& c, std::string_view t) { return !(c.profiles = t).empty(); }},
    {"quantum_us", "microseconds", [](DaemonConfig& c, std::string_view t) { return Set(t, &c.quantum_us); }},
    {"stall_ms", "milliseconds", [](DaemonConfig& c, std::string_view t) { return Set(t, &c.stall_ms); }},
    {"fair_wait_us", "microseconds", [](DaemonConfig& c, std::string_view t) { return Set(t, &c.fair_wait_us); }},
    {"spin_us", "microseconds", [](DaemonConfig& c, std::string_view t) { return Set(t, &c.spin_us); }},
    {"slice_timeout_s", "seconds", [](DaemonConfig& c, std::string_view t) { return Set(t, &c.slice_timeout_s); }},
    {"grant_timeout_s", "seconds",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.grant_timeout_s.emplace()); }},
    {"hello_timeout_s", "seconds",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.hello_timeout_s) && c.hello_timeout_s > 0; }},
    {"most_sessions", "a number of processes",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.most_sessions); }},
    {"most_sessions_per_user", "a number of processes",
     [](DaemonConfig& c, std::string_view t) {
       return Set(t, &c.most_sessions_per_user) && c.most_sessions_per_user > 0;
     }},
    {"audit_file", "bytes such as 16M, at least 64K",
     [](DaemonConfig& c, std::string_view t) {
       const auto bytes = ParseBytes(t);
       if (bytes) c.audit.file_bytes = *bytes;
       return bytes.has_value() && *bytes >= 64 << 10;
     }},
    {"audit_files", "a number of files from 1 to 100",
     [](DaemonConfig& c, std::string_view t) {
       return Set(t, &c.audit.files) && c.audit.files >= 1 && c.audit.files <= 100;
     }},
    {"audit_lines_per_minute", "a number of lines",
     [](DaemonConfig& c, std::string_view t) {
       return Set(t, &c.audit.lines_per_minute) && c.audit.lines_per_minute > 0;
     }},
    {"timing", "true or false",
     [](DaemonConfig& c, std::string_view t) {
       c.timing = t == "true";
       return t == "true" || t == "false";
     }},
    {"hardware", "names of proposed parts, or none",
     [](DaemonConfig& c, std::string_view t) { return !(c.hardware = t).empty(); }},
    {"timing_threads", "a number of threads",
     [](DaemonConfig& c, std::string_view t) {
       return Set(t, &c.timing_threads) && c.timing_threads > 0 && c.timing_threads <= 256;
     }},
    {"timing_wait_for", "a number of programs",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.timing_wait_for); }},
    {"timing_patience_ms", "milliseconds",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.timing_patience_ms); }},
    {"timing_memory", "bytes such as 2G, at least 16M",
     [](DaemonConfig& c, std::string_view t) {
       const auto bytes = ParseBytes(t);
       if (bytes) c.timing_memory = *bytes;
       return bytes.has_value() && *bytes >= 16 << 20;
     }},
    {"timing_disk", "bytes such as 16G",
     [](DaemonConfig& c, std::string_view t) {
       const auto bytes = ParseBytes(t);
       if (bytes) c.timing_disk = *bytes;
       return bytes.has_value();
     }},
    {"timing_alone", "a number of tenants up to 64",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.timing_alone) && c.timing_alone <= 64; }},
    {"timing_launch_s", "simulated seconds",
     [](DaemonConfig& c, std::string_view t) {
       return Set(t, &c.timing_launch_s) && c.timing_launch_s >= 0 && c.timing_launch_s <= 1e6;
     }},
    {"state", "a folder", [](DaemonConfig& c, std::string_view t) { return !(c.state = t).empty(); }},
    {"http_port", "a port",
     [](DaemonConfig& c, std::string_view t) { return Set(t, &c.http_port) && c.http_port < 65536; }},
};

template <typename T, std::size_t N>
Status Apply(const Key<T> (&keys)[N], T& target, std::string_view key, const sim::YamlEntry& entry,
             std::string_view file) {
  const std::string where = std::string(file) + ":" + std::to_string(entry.line) + ": ";
  for (const Key<T>& known : keys) {
    if (known.name != key) continue;
    if (known.set(target, entry.value)) return {};
    return Error{where + entry.key + " is '" + entry.value + "'; expected " + std::string(known.expected) +
                 (known.why == nullptr ? "" : ": " + known.why(entry.value))};
  }
  std::vector<std::string_view> names;
  for (const Key<T>& known : keys) names.push_back(known.name);
  if constexpr (std::is_same_v<T, DaemonConfig>) names.insert(names.end(), {"tenants", "default", "http_token_file"});
  else names.insert(names.end(), {"uid", "token_file"});
  const std::string_view nearest = NearestName(key, names);
  return Error{where + "unknown key '" + entry.key + "'" +
               (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?")};
}

Status ApplyTenant(TenantConfig& tenant, std::string_view key, const sim::YamlEntry& entry, std::string_view file) {
  if (key == "uid") {
    const auto uid = ParseNumber<uid_t>(entry.value);
    if (!uid)
      return Error{std::string(file) + ":" + std::to_string(entry.line) + ": uid is '" + entry.value +
                   "'; expected a user's number"};
    tenant.uid = *uid;
    return {};
  }
  if (key == "token_file") {
    GL_TRY(token, protocol::ReadSecret(entry.value, true));
    tenant.token = std::move(token);
    return {};
  }
  return Apply(kLimitKeys, tenant.limits, key, entry, file);
}

/// Names go into logs, tables and fixed fields of messages, where other characters become question marks: nobody could
/// be that tenant.
bool IsTenantName(std::string_view name) {
  return !name.empty() && name.size() <= 60 && std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::optional<double> ParsePart(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto number = ParseNumber<double>(text);
  if (!number) return std::nullopt;
  const double part = percent ? *number / 100 : *number;
  return part > 0 && part <= 1 ? std::optional(part) : std::nullopt;
}

Status CheckLimits(const Limits& limits) {
  const sched::TenantLimits& s = limits.scheduling;
  if (!(s.weight >= 1e-6 && s.weight <= 1e6)) return Error{"a weight has to be above 0 and at most a million"};
  if (!(s.cap > 0 && s.cap <= 1)) return Error{"a cap has to be above 0 and at most 1 (100%)"};
  if (s.priority < -100 || s.priority > 100) return Error{"a priority has to be from -100 to 100"};
  if (s.in_flight == 0 || s.in_flight > 100'000) return Error{"in_flight has to be from 1 to 100000"};
  return {};
}

Status ApplyConfig(std::string_view text, std::string_view file, DaemonConfig* config) {
  GL_TRY(entries, sim::ReadYamlMap(text, file));
  std::unordered_map<std::string, std::size_t> places;  // of tenants
  for (std::size_t i = 0; i < config->tenants.size(); ++i) places.emplace(config->tenants[i].name, i);
  // Defaults first, whatever the order in the file: a tenant begins with them.
  for (const sim::YamlEntry& entry : entries) {
    if (!entry.key.starts_with("default.")) continue;
    GL_TRY_STATUS(Apply(kLimitKeys, config->defaults, std::string_view(entry.key).substr(8), entry, file));
  }
  for (const sim::YamlEntry& entry : entries) {
    const std::string_view key = entry.key;
    if (key.starts_with("default.")) continue;
    if (key == "http_token_file") {
      GL_TRY(token, protocol::ReadSecret(entry.value, true));
      config->http_token = std::move(token);
    } else if (key.starts_with("tenants.")) {
      const std::size_t dot = key.find('.', 8);
      if (dot == std::string_view::npos)
        return Error{std::string(file) + ":" + std::to_string(entry.line) + ": a tenant is a map of limits"};
      const std::string name(key.substr(8, dot - 8));
      if (!IsTenantName(name)) {
        return Error{std::string(file) + ":" + std::to_string(entry.line) +
                     ": the name of a tenant has to be 1 to 60 printable characters of " + "ASCII; it is '" +
                     protocol::FieldText(name.data(), name.size()) + "'"};
      }
      const auto [at, added] = places.try_emplace(name, config->tenants.size());
      if (added) config->tenants.push_back({.name = name, .uid = {}, .token = {}, .limits = config->defaults});
      GL_TRY_STATUS(ApplyTenant(config->tenants[at->second], key.substr(dot + 1), entry, file));
    } else {
      GL_TRY_STATUS(Apply(kKeys, *config, key, entry, file));
    }
  }
  GL_TRY_STATUS(CheckLimits(config->defaults));
  for (const TenantConfig& tenant : config->tenants) {
    if (const Status status = CheckLimits(tenant.limits); !status.ok())
      return Error{"tenant " + tenant.name + ": " + status.error().message};
  }
  return {};
}

Status LoadConfig(const std::string& path, DaemonConfig* config) {
  GL_TRY(text, ReadWholeFile(path));
  return ApplyConfig(text, path, config);
}

}  // namespace gridloom::broker
