#include "sim/tenants/timing_service.h"

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "sim/hardware/catalog.h"
#include "sim/tenants/tenant_channel.h"

namespace gridloom::tenants {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A policy within the tenants' limits that can be changed for another one while the simulation goes on.
class SwitchablePolicy final : public policy::Policy {
 public:
  SwitchablePolicy(std::unique_ptr<policy::Policy> policy, std::uint64_t burst, policy::Limited::LimitsOf limits_of)
      : limited_(std::move(policy), burst, std::move(limits_of)) {}
  std::string_view name() const override { return "switchable"; }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override {
    const std::lock_guard lock(mutex_);
    return limited_.Next(snapshot);
  }
  std::optional<std::uint64_t> Again() const override {
    const std::lock_guard lock(mutex_);
    return limited_.Again();
  }
  void Set(std::unique_ptr<policy::Policy> policy) {
    const std::lock_guard lock(mutex_);
    limited_.Set(std::move(policy));
  }

 private:
  mutable std::mutex mutex_;
  policy::Limited limited_;
};

namespace {

/// The broker has a queue for each stream of each tenant and gives the device what is ready: how many queues the device has itself
/// decides nothing any more (Fermi's single one would put tenants' streams in one order).
constexpr std::uint32_t kQueues = 4096;
constexpr milliseconds kWatchEvery{200};
/// Simulated time whose part a tenant with a cap may save up: some kernels.
constexpr std::uint64_t kBurstUs = 1000;

}  // namespace

TimingService::TimingService(Options options)
    : options_(std::move(options)), store_(std::make_shared<timing::TraceStore>(options_.trace_bytes)), begun_(options_.wait_for == 0) {}

Result<std::unique_ptr<TimingService>> TimingService::Create(sim::DeviceSpec device, Options options) {
  std::unique_ptr<TimingService> service(new TimingService(std::move(options)));
  GL_TRY(supply, study::PolicySupply::Create(device, {.profiles = service->options_.profiles, .tell = service->options_.tell}));
  service->supply_ = std::move(supply);
  GL_TRY(policy, service->supply_->Make(service->options_.policy));
  auto switchable = std::make_unique<SwitchablePolicy>(std::move(policy), kBurstUs * device.timing.clock.sm_mhz,
                                                       [raw = service.get()](std::uint32_t tenant) { return raw->LimitsOf(tenant); });
  service->policy_ = switchable.get();
  device.timing.launch.queues = std::max(device.timing.launch.queues, kQueues);
  timing::LiveTimeline::Options timeline;
  timeline.engine.threads = service->options_.threads;
  timeline.engine.keep_ended = false;
  GL_TRY(parts, hardware::Build(device));
  timeline.engine.parts = std::move(parts);
  service->parts_ = hardware::PartsText(device);
  service->part_values_ = hardware::ValuesText(device);
  timeline.profiler = [supply = service->supply_](std::shared_ptr<trace::CtaSource>& source) { return supply->Profile(source); };
  timeline.on_ended = [raw = service.get()](timing::HostId host, const timing::WorkResult& work, const timing::Counters& during) {
    raw->Ended(host, work, during);
  };
  GL_TRY(made, timing::LiveTimeline::Create(device, std::move(switchable), std::move(timeline)));
  service->timeline_ = std::move(made);
  service->watch_ = std::thread([raw = service.get()] { raw->WatchHosts(); });
  return service;
}

TimingService::~TimingService() {
  std::map<std::uint64_t, std::unique_ptr<TenantChannel>> channels;
  std::vector<std::unique_ptr<TenantChannel>> leaving;
  {
    const std::lock_guard lock(channels_mutex_);
    stop_ = true;
    channels.swap(channels_);
    leaving.swap(leaving_);
    changed_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
  channels.clear();
  leaving.clear();
}

void TimingService::OnViolation(Violation violation) {
  const std::lock_guard lock(mutex_);
  violation_ = std::move(violation);
}

void TimingService::Report(std::uint64_t session, const std::string& why) {
  const std::lock_guard lock(mutex_);  // while it is held nobody takes the listener away
  if (violation_) violation_(session, why);
}

// ---- sessions -----------------------------------------------------------------------------------------------------------

Result<protocol::Fd> TimingService::Join(const sched::SimulatedSession& session) {
  GL_TRY(ends, protocol::MakeChannel());
  SetLimits(session.tenant, session.limits);
  auto channel = std::make_unique<TenantChannel>(*this, session, std::move(ends.first));
  const std::lock_guard lock(channels_mutex_);
  TenantChannel& added = *(channels_[session.session] = std::move(channel));
  if (!begun_ && channels_.size() >= options_.wait_for) {
    // All at the same time, in an order that does not depend on who came first.
    std::vector<TenantChannel*> all;
    for (const auto& [number, waiting] : channels_) all.push_back(waiting.get());
    std::ranges::sort(all, {}, [](const TenantChannel* one) {
      return std::tie(one->session().tenant_name, one->session().program, one->session().session);
    });
    for (TenantChannel* const one : all) AddHost(*one);
    begun_ = true;
  } else if (begun_) {
    AddHost(added);
  }
  added.Start();
  changed_.notify_all();
  return std::move(ends.second);
}

/// Holding channels_mutex_.
void TimingService::AddHost(TenantChannel& channel) {
  channel.host = timeline_->AddHost();
  channel.begin = timeline_->HostTime(channel.host);
  channel.has_host = true;
  const std::lock_guard lock(mutex_);
  hosts_.resize(std::max<std::size_t>(hosts_.size(), channel.host + std::size_t{1}));
  hosts_[channel.host].tenant = channel.session().tenant;
}

bool TimingService::Begin(TenantChannel& channel) {
  std::unique_lock lock(channels_mutex_);
  changed_.wait(lock, [&] { return channel.has_host || channel.left || stop_; });
  return channel.has_host;
}

void TimingService::Leave(std::uint64_t session) {
  const std::lock_guard lock(channels_mutex_);
  const auto found = channels_.find(session);
  if (found == channels_.end()) return;
  found->second->left = true;
  found->second->End();
  leaving_.push_back(std::move(found->second));
  channels_.erase(found);
  changed_.notify_all();
}

void TimingService::Watch(std::uint64_t session, bool active, std::uint32_t timeout_s) {
  bool late = false;
  {
    const std::lock_guard lock(channels_mutex_);
    const auto found = channels_.find(session);
    if (found == channels_.end()) return;
    TenantChannel& channel = *found->second;
    const auto now = steady_clock::now();
    if (active || !channel.owes() || timeout_s == 0) channel.idle_since = {};
    else if (channel.idle_since == steady_clock::time_point{}) channel.idle_since = now;
    else late = now - channel.idle_since > std::chrono::seconds(timeout_s);
  }
  if (late) Report(session, "the timing model waits for what it does not say");
}

/// Looks now and then who has gone quiet, and buries who has gone.
void TimingService::WatchHosts() {
  std::unique_lock lock(channels_mutex_);
  while (!stop_) {
    std::vector<std::unique_ptr<TenantChannel>> gone;
    std::erase_if(leaving_, [&](auto& channel) {
      if (!channel->ended()) return false;
      gone.push_back(std::move(channel));
      return true;
    });
    const auto now = steady_clock::now();
    for (const auto& [session, channel] : channels_) {
      if (channel->has_host && !channel->ended()) channel->SetAwayAfter(now, milliseconds(options_.patience_ms));
    }
    lock.unlock();
    gone.clear();
    lock.lock();
    // Without sessions nothing wakes.
    if (channels_.empty() && leaving_.empty()) changed_.wait(lock, [&] { return stop_ || !channels_.empty() || !leaving_.empty(); });
    else changed_.wait_for(lock, kWatchEvery, [&] { return stop_; });
  }
}

// ---- what there is to see ---------------------------------------------------------------------------------------------

void TimingService::Ended(timing::HostId host, const timing::WorkResult& work, const timing::Counters& during) {
  const double mhz = timeline_->parameters().timing().clock.sm_mhz;
  const std::lock_guard lock(mutex_);
  HostRecord& record = hosts_[host];
  if (!record.gone) record.table.Add(work, during);
  end_cycles_ = std::max(end_cycles_, static_cast<double>(work.ended));
  if (work.kind != timing::WorkKind::kKernel) return;
  sched::SimulatedUsage& usage = usage_[record.tenant];
  ++usage.kernels;
  usage.seconds += static_cast<double>(work.ended - work.started) / (mhz * 1e6);
}

timing::KernelTable TimingService::TableOf(timing::HostId host) {
  const std::lock_guard lock(mutex_);
  return hosts_[host].table;
}

void TimingService::Forget(timing::HostId host) {
  const std::lock_guard lock(mutex_);
  hosts_[host].gone = true;
  hosts_[host].table = {};
}

timing::KernelOwner TimingService::OwnerOf(std::uint32_t tenant) const {
  const std::lock_guard lock(mutex_);
  const auto limits = limits_.find(tenant);
  if (limits == limits_.end()) return {.tenant = tenant};
  return {.tenant = tenant, .weight = limits->second.weight, .priority = limits->second.priority};
}

policy::Limited::Limits TimingService::LimitsOf(std::uint32_t tenant) const {
  const std::lock_guard lock(mutex_);
  const auto limits = limits_.find(tenant);
  if (limits == limits_.end()) return {};
  return {.cap = limits->second.cap, .in_flight = limits->second.in_flight};
}

Status TimingService::SetPolicy(std::string_view name) {
  GL_TRY(policy, supply_->Make(name));
  policy_->Set(std::move(policy));
  return {};
}

void TimingService::SetLimits(std::uint32_t tenant, const sched::TenantLimits& limits) {
  const std::lock_guard lock(mutex_);
  limits_[tenant] = limits;
}

double TimingService::now_seconds() const { return timeline_->Nanoseconds(timeline_->now()) / 1e9; }

double TimingService::end_seconds() const {
  const std::lock_guard lock(mutex_);
  return timeline_->Nanoseconds(static_cast<timing::Cycle>(end_cycles_)) / 1e9;
}

sched::SimulatedUsage TimingService::usage(std::uint32_t tenant) const {
  const std::lock_guard lock(mutex_);
  const auto found = usage_.find(tenant);
  return found != usage_.end() ? found->second : sched::SimulatedUsage{};
}

sched::SimulatedProfiling TimingService::profiling() const {
  const study::PolicySupply::Cost cost = supply_->cost();
  return {.kernels = cost.kernels, .warp_instructions = cost.warp_instructions};
}

}  // namespace gridloom::tenants
