#include "scheduler/daemon/operator_desk.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "rewriter/support/suggest.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

using Json = nlohmann::ordered_json;

namespace {

std::string TextOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

void OperatorDesk::Request(Session& session, const protocol::Request& request) {
  // The socket's permissions say who may be a tenant; operating the broker takes its own user, or root.
  const bool allowed = session.peer.user_known && (session.peer.uid == geteuid() || session.peer.uid == 0);
  session.answer = {};
  session.answer.since = protocol::NowNs();
  session.answer.pending = true;
  if (allowed && request.verb == protocol::Verb::kPs) return MakeState(session);
  const auto answer =
      allowed ? Answer(session, request) : Result<Json>(Error{"only the broker's user and root may do that"});
  session.answer.text = answer.ok() ? TextOf(*answer) : answer.error().message;
  session.answer.code = answer.ok() ? 0u : 1u;
  SendAnswer(session);
  if (!allowed && session.answer.pending) sessions_.Drop(session, "disconnect", "");  // nobody else is waited for
}

/// The text is made by another thread; until it is there nothing is heard of the operator but its going.
void OperatorDesk::MakeState(Session& session) {
  session.answer.being_made = true;
  sessions_.WatchSocket(session, 0);
  reporter_.Do([this, id = session.id, view = std::make_shared<const StateView>(View())] {
    const auto text = std::make_shared<std::string>(TextOf(ToJson(*view)));
    core_.mailbox.Post([this, id, text] {
      const auto at = core_.sessions.find(id);
      if (at == core_.sessions.end() || at->second->doomed) return;
      at->second->answer.text = std::move(*text);
      at->second->answer.being_made = false;
      SendAnswer(*at->second);
    });
  });
}

/// Sends as much of an operator's answer as the socket takes now. While something is left the broker hears of the
/// socket when it takes more, and reads no further question from it: one answer is all that waits for an operator, and
/// for hello_timeout_s at most.
void OperatorDesk::SendAnswer(Session& session) {
  Session::AnswerState& answer = session.answer;
  if (answer.being_made) return;
  while (answer.pending) {
    const bool more = answer.at + protocol::kMaxText < answer.text.size();
    const protocol::Text part{protocol::MessageType::kReply, answer.code, more,
                              answer.text.substr(answer.at, protocol::kMaxText)};
    if (!protocol::Send(session.socket(), Format(part), false)) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) return sessions_.Drop(session, "disconnect", "");
      break;
    }
    answer.at += protocol::kMaxText;
    answer.pending = more;
  }
  if (!answer.pending) answer = {};
  // Hanging up one way is no news while something is to be said the other way.
  sessions_.WatchSocket(session, answer.pending ? EPOLLOUT : EPOLLIN | EPOLLRDHUP);
}

Result<Json> OperatorDesk::Answer(const Session& session, const protocol::Request& request) {
  switch (request.verb) {
    case protocol::Verb::kPs: break;  // Request has seen to it
    case protocol::Verb::kLimits: return AnswerLimits(session, request);
    case protocol::Verb::kKill: return AnswerKill(session, request);
    case protocol::Verb::kPolicy: return AnswerPolicy(session, request);
    case protocol::Verb::kShutdown:
      core_.writer->Note("shutdown", {{"by_uid", session.peer.uid}});
      core_.stop = true;
      return Json{{"stopping", true}};
  }
  return Error{"an unknown request"};
}

Result<Json> OperatorDesk::AnswerLimits(const Session& session, const protocol::Request& request) {
  Tenant* const tenant = core_.tenants->Find(request.target);
  if (tenant == nullptr) {
    std::vector<std::string_view> names;
    for (const Tenant& known : core_.tenants->all()) names.push_back(known.config.name);
    const std::string_view nearest = NearestName(request.target, names);
    return Error{"there is no tenant '" + request.target + "'" +
                 (nearest.empty() ? "; `gridloom ps` lists them" : "; did you mean '" + std::string(nearest) + "'?")};
  }
  Limits limits = tenant->config.limits;
  if (request.fields & protocol::kFieldWeight) limits.scheduling.weight = request.weight;
  if (request.fields & protocol::kFieldCap) limits.scheduling.cap = request.cap;
  if (request.fields & protocol::kFieldPriority) limits.scheduling.priority = request.priority;
  if (request.fields & protocol::kFieldInFlight) limits.scheduling.in_flight = request.in_flight;
  if (request.fields & protocol::kFieldMemory) limits.memory_bytes = request.memory_bytes;
  GL_TRY_STATUS(CheckLimits(limits));
  if (request.fields != 0) {
    core_.tenants->SetLimits(*tenant, limits);
    core_.writer->SaveLimits(core_.tenants->changes());
    tenant_desk_.Schedule(*tenant);
    if (core_.simulation != nullptr) core_.simulation->SetLimits(tenant->id, limits.scheduling);
    tenant_desk_.PublishMemory(*tenant);
    core_.dirty = true;
    Json note = ToJson(ViewOf(*tenant))["limits"];
    core_.writer->Note("limits",
                       {{"by_uid", session.peer.uid}, {"tenant", tenant->config.name}, {"limits", std::move(note)}});
  }
  return ToJson(ViewOf(*tenant));
}

Result<Json> OperatorDesk::AnswerKill(const Session& session, const protocol::Request& request) {
  pid_t pid = 0;
  const char* const end = request.target.data() + request.target.size();
  const bool is_pid = std::from_chars(request.target.data(), end, pid).ptr == end && !request.target.empty();
  const Tenant* const tenant = core_.tenants->Find(request.target);
  const bool process_too = request.fields != 0;
  Json killed = Json::array(), unsure = Json::array();
  for (Session* const other : core_.admitted) {
    if (other->doomed || (is_pid ? other->peer.pid != pid : tenant == nullptr || other->tenant != tenant->id)) continue;
    killed.push_back(other->peer.pid);
    // The signal goes first: a process that reads the goodbye before it ends by itself. A number that is not certain
    // may be another process's by now, who would be killed in its place.
    if (process_too && !other->process.certain) unsure.push_back(other->peer.pid);
    else if (process_too) syscall(SYS_pidfd_send_signal, other->process.pidfd.get(), SIGKILL, nullptr, 0);
    sessions_.Terminate(*other, "an operator ended this session");
  }
  if (killed.empty())
    return Error{"no process of the broker's is or belongs to '" + request.target + "'; `gridloom ps` lists them"};
  core_.writer->Note(
      "killed",
      {{"by_uid", session.peer.uid}, {"pids", killed}, {"process_too", process_too}, {"not_signalled", unsure}});
  Json answer{{"killed", std::move(killed)}};
  if (!unsure.empty()) answer["not_signalled"] = std::move(unsure);
  return answer;
}

Result<Json> OperatorDesk::AnswerPolicy(const Session& session, const protocol::Request& request) {
  if (!request.target.empty()) {
    GL_TRY(policy, core_.RealPolicy(request.target));
    if (core_.simulation != nullptr) GL_TRY_STATUS(core_.simulation->SetPolicy(request.target));
    core_.scheduler->SetPolicy(std::move(policy));
    core_.policy = request.target;
    core_.dirty = true;
    core_.writer->Note("policy", {{"by_uid", session.peer.uid}, {"policy", request.target}});
  }
  return Json{{"policy", core_.policy}};
}

TenantView OperatorDesk::ViewOf(const Tenant& tenant) const {
  TenantView view{.name = tenant.config.name,
                  .sessions = tenant.sessions,
                  .limits = tenant.config.limits,
                  .memory_bytes = tenant.memory_bytes,
                  .account = tenant_desk_.AccountOf(tenant)};
  view.limits.memory_bytes = tenant_desk_.MemoryLimit(tenant);
  if (core_.simulation != nullptr) {
    const sched::SimulatedUsage usage = core_.simulation->usage(tenant.id);
    view.time = {.alone = usage.alone_seconds, .shared = usage.turnaround_seconds};
  }
  if (core_.scheduler->knows(tenant.id)) {
    view.in_flight = core_.scheduler->in_flight(tenant.id);
    view.waiting = core_.scheduler->waiting(tenant.id);
  }
  return view;
}

SessionView OperatorDesk::ViewOf(const Session& session) const {
  const Session::Running running = session.RunningKernel();
  return {.session = session.id,
          .pid = session.peer.pid,
          .uid = session.peer.uid,
          .tenant = core_.tenants->at(session.tenant).config.name,
          .program = session.program,
          .kernel = running.name,
          .kernel_ctas = running.ctas,
          .kernel_done = running.done,
          .connected_seconds = static_cast<double>(protocol::NowNs() - session.since) / 1e9,
          .launches = session.launches,
          .memory_bytes = session.memory_bytes,
          .device_seconds = core_.scheduler->device_time_of(session.id) / 1e9,
          .in_flight = session.announced(),
          .ending = session.ending};
}

Json OperatorDesk::State() const { return ToJson(View()); }

StateView OperatorDesk::View() const {
  core_.scheduler->Charge();  // what runs has its time, too
  Json state{{"pid", getpid()},
             {"device", core_.device.id},
             {"device_source", core_.device.source},
             {"device_memory_bytes", core_.device.memory_bytes},
             {"device_busy_seconds", core_.scheduler->busy_time() / 1e9},
             {"policy", core_.policy},
             {"uptime_seconds", static_cast<double>(protocol::NowNs() - core_.started) / 1e9},
             {"decisions", core_.scheduler->decisions()},
             {"pumps", core_.counters.pumps},
             {"pump_seconds", static_cast<double>(core_.counters.decisions_ns) / 1e9},
             {"longest_pump_seconds", static_cast<double>(core_.counters.longest_pump_ns) / 1e9},
             {"turn_seconds",
              {{"median", static_cast<double>(core_.counters.turns.Quantile(0.5)) / 1e9},
               {"p99", static_cast<double>(core_.counters.turns.Quantile(0.99)) / 1e9},
               {"most", static_cast<double>(core_.counters.turns.most()) / 1e9}}},
             {"records", core_.counters.records},
             {"sessions_total", core_.counters.sessions},
             {"refused_total", core_.counters.refused},
             {"dropped_total", core_.counters.dropped},
             {"audit_lines_lost", core_.writer->lost()},
             {"wakeups", core_.counters.wakeups},
             {"launches_known", core_.owners.size()},
             {"places", {{"silent", core_.places->silent()}}}};
  if (core_.simulation != nullptr) {
    const std::string problem = core_.simulation->problem();
    state["simulated"] = {{"now_seconds", core_.simulation->now_seconds()},
                          {"end_seconds", core_.simulation->end_seconds()}};
    const sched::SimulatedProfiling profiling = core_.simulation->profiling();
    state["simulated"]["profiled"] = {{"kernels", profiling.kernels},
                                      {"warp_instructions", profiling.warp_instructions}};
    state["simulated"]["problem"] = problem.empty() ? Json() : Json(problem);
  }
  StateView view{.broker = std::move(state), .tenants = {}, .sessions = {}};
  view.tenants.reserve(core_.tenants->all().size());
  for (const Tenant& tenant : core_.tenants->all()) {
    if (core_.scheduler->knows(tenant.id)) view.tenants.push_back(ViewOf(tenant));
  }
  view.sessions.reserve(core_.admitted.size());
  for (const Session* session : core_.admitted) {
    if (!session->doomed) view.sessions.push_back(ViewOf(*session));
  }
  return view;
}

}  // namespace gridloom::broker
