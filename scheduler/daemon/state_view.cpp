#include "scheduler/daemon/state_view.h"

namespace gridloom::broker {

using Json = nlohmann::ordered_json;

Json ToJson(const TenantView& tenant) {
  const sched::TenantLimits& limits = tenant.limits.scheduling;
  const Account& account = tenant.account;
  Json json{{"name", tenant.name},
            {"sessions", tenant.sessions},
            {"limits",
             {{"weight", limits.weight},
              {"cap", limits.cap},
              {"priority", limits.priority},
              {"in_flight", limits.in_flight},
              {"memory_bytes", tenant.limits.memory_bytes}}},
            {"in_flight", tenant.in_flight},
            {"waiting", tenant.waiting},
            {"memory_bytes", tenant.memory_bytes},
            {"peak_memory_bytes", account.peak_memory_bytes},
            {"launches", account.launches},
            {"faults", account.faults},
            {"slices", account.slices},
            {"ctas", account.ctas},
            {"copied_bytes", account.copied_bytes},
            {"device_seconds", account.device_seconds},
            {"simulated_seconds", account.simulated_seconds}};
  if (tenant.time.known()) {
    json["turnaround_seconds"] = tenant.time.shared;
    json["alone_seconds"] = tenant.time.alone;
    json["slowdown"] = tenant.time.slowdown();
  }
  return json;
}

/// Adds how tenants share the device, for those of whom it is known.
void AddSharing(const std::vector<TenantView>& tenants, Json& simulated) {
  std::vector<model::SharedTime> times;
  for (const TenantView& tenant : tenants) {
    if (tenant.time.known()) times.push_back(tenant.time);
  }
  const auto figures = model::FiguresOf(times);
  if (!figures) return;
  simulated["stp"] = figures->stp;
  simulated["antt"] = figures->antt;
  simulated["fairness"] = figures->fairness;
}

Json ToJson(const SessionView& session) {
  return {{"session", session.session},
          {"pid", session.pid},
          {"uid", session.uid},
          {"tenant", session.tenant},
          {"program", session.program},
          {"connected_seconds", session.connected_seconds},
          {"launches", session.launches},
          {"in_flight", session.in_flight},
          {"memory_bytes", session.memory_bytes},
          {"device_seconds", session.device_seconds},
          {"kernel", session.kernel},
          {"kernel_ctas", session.kernel_ctas},
          {"kernel_done", session.kernel_done},
          {"ending", session.ending}};
}

Json ToJson(const StateView& state) {
  Json json = state.broker;
  if (json.contains("simulated")) AddSharing(state.tenants, json["simulated"]);
  Json& tenants = json["tenants"] = Json::array();
  for (const TenantView& tenant : state.tenants) tenants.push_back(ToJson(tenant));
  Json& sessions = json["sessions"] = Json::array();
  for (const SessionView& session : state.sessions) sessions.push_back(ToJson(session));
  return json;
}

}  // namespace gridloom::broker
