#include "scheduler/cli/listing.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "rewriter/support/printable.h"

namespace gridloom::broker {

using Json = nlohmann::ordered_json;

namespace {

using Row = std::vector<std::string>;

template <typename... Values>
std::string Print(const char* format, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Bytes(std::uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return Print(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

std::string Count(std::uint64_t count) {
  if (count < 100'000) return std::to_string(count);
  const char* const units[] = {"", "k", "M", "G", "T"};
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return Print("%.1f%s", value, units[unit]);
}

/// Tenants and their programs choose them.
std::string Name(const Json& of, const char* key) { return Printable(of.at(key).get<std::string>()); }

/// Numbers to the right, texts (the columns in `left`) to the left.
std::string Table(const std::vector<Row>& rows, const std::vector<std::size_t>& left) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      const bool is_left = std::ranges::find(left, i) != left.end();
      line += (i == 0 ? "" : "  ") + (is_left ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

const Json* TenantOf(const Json& state, const std::string& name) {
  for (const Json& tenant : state.at("tenants")) {
    if (tenant.at("name") == name) return &tenant;
  }
  return nullptr;
}

/// Seconds of the device that the tenant has had since `before`.
double DeviceSince(const Json& tenant, const Json& before) {
  const Json* const old = TenantOf(before, tenant.at("name"));
  return tenant.at("device_seconds").get<double>() - (old != nullptr ? old->at("device_seconds").get<double>() : 0);
}

/// Sum of the weights of tenants that have had something of the device since `before`.
double WeightsAtWork(const Json& state, const Json& before) {
  double weights = 0;
  for (const Json& tenant : state.at("tenants")) {
    if (DeviceSince(tenant, before) > 0) weights += tenant.at("limits").at("weight").get<double>();
  }
  return weights;
}

/// `seconds` > 0: the last columns are, since `before`, the tenant's part of the device, the part that its weight gives
/// it among those that have used the device, and its launches a second.
std::string TenantTable(const Json& state, const Json* before, double seconds) {
  std::vector<Row> rows{
      {"TENANT", "PROCS", "WEIGHT", "CAP", "PRIO", "MEMORY", "LIMIT", "LAUNCHES", "CTAS", "DEVICE s"}};
  const bool simulated = state.contains("simulated");
  if (simulated) rows[0].insert(rows[0].end(), {"SIMULATED ms", "SLOWDOWN"});
  if (before != nullptr) rows[0].insert(rows[0].end(), {"DEVICE %", "DUE %", "LAUNCHES/s"});
  const double weights = before != nullptr ? WeightsAtWork(state, *before) : 0;
  for (const Json& tenant : state.at("tenants")) {
    const Json& limits = tenant.at("limits");
    Row row{Name(tenant, "name"),
            std::to_string(tenant.at("sessions").get<unsigned>()),
            Print("%g", limits.at("weight").get<double>()),
            Print("%.0f%%", limits.at("cap").get<double>() * 100),
            std::to_string(limits.at("priority").get<int>()),
            Bytes(tenant.at("memory_bytes")),
            Bytes(limits.at("memory_bytes")),
            Count(tenant.at("launches")),
            Count(tenant.at("ctas")),
            Print("%.2f", tenant.at("device_seconds").get<double>())};
    if (simulated) {
      row.push_back(Print("%.3f", tenant.at("simulated_seconds").get<double>() * 1e3));
      row.push_back(tenant.contains("slowdown") ? Print("%.2f", tenant.at("slowdown").get<double>()) : "-");
    }
    if (before != nullptr) {
      const Json* const old = TenantOf(*before, tenant.at("name"));
      const double device = DeviceSince(tenant, *before);
      const auto launches =
          tenant.at("launches").get<double>() - (old != nullptr ? old->at("launches").get<double>() : 0);
      row.push_back(Print("%.1f", seconds > 0 ? device / seconds * 100 : 0));
      row.push_back(device > 0 ? Print("%.1f", limits.at("weight").get<double>() / weights * 100) : "-");
      row.push_back(Print("%.0f", seconds > 0 ? launches / seconds : 0));
    }
    rows.push_back(std::move(row));
  }
  return rows.size() > 1 ? Table(rows, {0}) : "no tenants yet\n";
}

/// How much of the kernel that runs has run, where something is known of it.
std::string Progress(const Json& session) {
  const auto done = session.at("kernel_done").get<double>(), ctas = session.at("kernel_ctas").get<double>();
  return done > 0 ? Print(" %.0f%%", done / ctas * 100) : std::string();
}

std::string SessionTable(const Json& state) {
  std::vector<Row> rows{{"PID", "UID", "TENANT", "PROGRAM", "MEMORY", "LAUNCHES", "IN FLIGHT", "KERNEL"}};
  for (const Json& session : state.at("sessions")) {
    rows.push_back({std::to_string(session.at("pid").get<int>()), std::to_string(session.at("uid").get<unsigned>()),
                    Name(session, "tenant"), Name(session, "program"), Bytes(session.at("memory_bytes")),
                    Count(session.at("launches")), std::to_string(session.at("in_flight").get<unsigned>()),
                    Name(session, "kernel") + Progress(session) + (session.at("ending").get<bool>() ? " (ends)" : "")});
  }
  return rows.size() > 1 ? Table(rows, {2, 3, 7}) : "no programs are connected\n";
}

std::string SimulatedHeading(const Json& state) {
  if (!state.contains("simulated")) return {};
  const Json& simulated = state.at("simulated");
  if (simulated.at("problem").is_string())
    return "\nthe simulation of time has ended: " + simulated.at("problem").get<std::string>();
  const std::string until = ", simulated until " + Print("%.3f ms", simulated.at("now_seconds").get<double>() * 1e3);
  if (!simulated.contains("stp")) return until + "\nSTP -, ANTT -, fairness -";
  return until + Print("\nSTP %.3f, ANTT %.3f, fairness %.3f", simulated.at("stp").get<double>(),
                       simulated.at("antt").get<double>(), simulated.at("fairness").get<double>());
}

std::string Heading(const Json& state) {
  return "device " + state.at("device").get<std::string>() + ", policy " + state.at("policy").get<std::string>() +
         ", broker's process " + std::to_string(state.at("pid").get<int>()) + ", up " +
         Print("%.0f", state.at("uptime_seconds").get<double>()) + " s" + SimulatedHeading(state) + "\n";
}

}  // namespace

std::string Listing(const Json& state) {
  return Heading(state) + "\n" + TenantTable(state, nullptr, 0) + "\n" + SessionTable(state);
}

std::string Picture(const Json& before, const Json& now, unsigned columns, unsigned lines) {
  const double seconds = now.at("uptime_seconds").get<double>() - before.at("uptime_seconds").get<double>();
  const double pumps = now.at("pumps").get<double>() - before.at("pumps").get<double>();
  const double spent = now.at("pump_seconds").get<double>() - before.at("pump_seconds").get<double>();
  const std::string whole = Heading(now) +
                            Print("decisions %.0f/s, %.1f us each\n\n", seconds > 0 ? pumps / seconds : 0,
                                  pumps > 0 ? spent / pumps * 1e6 : 0) +
                            TenantTable(now, &before, seconds) + "\n" + SessionTable(now);
  std::string cut;
  unsigned line = 0;
  for (std::size_t at = 0; at < whole.size() && (lines == 0 || line + 1 < lines); ++line) {
    const std::size_t end = whole.find('\n', at);
    cut += whole.substr(at, columns == 0 ? end - at : std::min<std::size_t>(end - at, columns)) + "\n";
    at = end + 1;
  }
  return cut;
}

}  // namespace gridloom::broker
