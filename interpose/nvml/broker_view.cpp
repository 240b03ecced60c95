#include "interpose/nvml/broker_view.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "interpose/base/log.h"
#include "interpose/observe/broker_link.h"
#include "scheduler/cli/ask.h"

namespace gridloom::nvml {

using Json = nlohmann::ordered_json;
using State = BrokerView::State;

namespace {

constexpr std::chrono::milliseconds kPatience{200}, kSilence{1000};

double Seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

/// Throws where the answer has another shape.
State StateOf(const Json& json) {
  State state{.broker = json.at("pid"),
              .device = json.at("device_source"),
              .memory_bytes = json.at("device_memory_bytes"),
              .used_bytes = 0,
              .uptime_seconds = json.at("uptime_seconds"),
              .busy_seconds = json.at("device_busy_seconds"),
              .processes = {}};
  for (const Json& tenant : json.at("tenants")) state.used_bytes += tenant.at("memory_bytes").get<std::uint64_t>();
  std::map<pid_t, BrokerView::Process> processes;
  for (const Json& session : json.at("sessions")) {
    const pid_t pid = session.at("pid");
    BrokerView::Process& process = processes[pid];
    process.pid = pid;
    process.memory_bytes += session.at("memory_bytes").get<std::uint64_t>();
    process.device_seconds += session.at("device_seconds").get<double>();
    process.program = session.at("program");
  }
  for (auto& [pid, process] : processes) state.processes.push_back(std::move(process));
  return state;
}

Result<State> AskAt(const std::string& socket) {
  GL_TRY(json, broker::Ask(socket, protocol::Request{}, kPatience));
  try {
    return StateOf(json);
  } catch (const Json::exception& wrong) {
    return Error{std::string("the broker answers something else: ") + wrong.what()};
  }
}

double DeviceSecondsOf(const State& state, pid_t pid) {
  const auto found = std::ranges::find(state.processes, pid, &BrokerView::Process::pid);
  return found != state.processes.end() ? found->device_seconds : 0;
}

/// What was done between two answers.
BrokerView::Work Between(const State& base, const State& now) {
  const double seconds = now.uptime_seconds - base.uptime_seconds;
  const auto share = [&](double from, double to) { return std::clamp((to - from) / seconds, 0.0, 1.0); };
  BrokerView::Work work{.busy = share(base.busy_seconds, now.busy_seconds), .parts = {}};
  for (const BrokerView::Process& process : now.processes) {
    const double part = share(DeviceSecondsOf(base, process.pid), process.device_seconds);
    if (part > 0) work.parts.push_back({process.pid, part});
  }
  return work;
}

}  // namespace

std::optional<State> BrokerView::Ask() {
  const auto socket = session::BrokerLink::Socket();
  if (!socket || Clock::now().time_since_epoch().count() < silent_until_.load()) return std::nullopt;
  auto state = AskAt(*socket);
  if (!state.ok()) {
    silent_until_.store((Clock::now() + kSilence).time_since_epoch().count());
    GL_LOG(kInfo, "NVML tells of this process alone: %s", state.error().message.c_str());
    return std::nullopt;
  }
  Keep(*state);
  return *std::move(state);
}

std::optional<BrokerView::Work> BrokerView::AskForWork() {
  auto now = Ask();
  if (!now) return std::nullopt;
  auto base = BaseFor(*now);
  if (!base) {
    std::this_thread::sleep_for(kShortestPeriod);
    base = std::move(now);
    now = Ask();
    if (!now || now->broker != base->broker || now->uptime_seconds <= base->uptime_seconds) return std::nullopt;
  }
  return Between(*base, *now);
}

std::optional<State> BrokerView::BaseFor(const State& now) {
  const std::lock_guard lock(mutex_);
  const auto age = [&](const State& state) { return now.uptime_seconds - state.uptime_seconds; };
  const auto old =
      std::find_if(kept_.rbegin(), kept_.rend(), [&](const State& state) { return age(state) >= Seconds(kPeriod); });
  if (old != kept_.rend()) return *old;
  if (kept_.empty() || age(kept_.front()) < Seconds(kShortestPeriod)) return std::nullopt;
  return kept_.front();
}

void BrokerView::Keep(const State& state) {
  const std::lock_guard lock(mutex_);
  if (!kept_.empty() && state.broker != kept_.back().broker) kept_.clear();  // another one listens there now
  if (!kept_.empty() && state.uptime_seconds - kept_.back().uptime_seconds < Seconds(kShortestPeriod)) return;
  // One that is older than the period is enough.
  while (kept_.size() > 1 && state.uptime_seconds - kept_[1].uptime_seconds >= Seconds(kPeriod)) kept_.pop_front();
  kept_.push_back(state);
}

}  // namespace gridloom::nvml
