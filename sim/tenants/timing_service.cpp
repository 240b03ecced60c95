#include "sim/tenants/timing_service.h"

#include <malloc.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "scheduler/policy/builtin.h"
#include "sim/hardware/catalog.h"
#include "sim/study/measure/timed_device.h"
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

/// The broker has a queue for each stream of each tenant and gives the device what is ready: how many queues the device
/// has itself decides nothing any more (Fermi's single one would put tenants' streams in one order).
constexpr std::uint32_t kQueues = std::numeric_limits<std::uint32_t>::max();
constexpr milliseconds kAttendEvery{200};
/// The least part of the device that counts; a tenant with less of it is given no more time.
constexpr double kLeastPart = 1e-6;
constexpr double kLongest = 1e18;  ///< cycles
/// What a tenant must have had at most for its memory to be looked for when the model has let go of a session of it.
constexpr std::uint64_t kLargeBytes = 64u << 20;
/// Simulated time whose part a tenant with a cap may save up: some kernels.
constexpr std::uint64_t kBurstUs = 1000;

/// Ranges of CTAs do not come here: kernels that are undone would have to be run besides those that tenants' shares are
/// for.
Status CheckPolicy(const std::string& name) {
  GL_TRY(policy, policy::FindPolicy(name));
  if (!policy->needs.Has(policy::Need::kRanges)) return {};
  return Error{"policy " + name +
               " needs the ranges of CTAs, which are not captured of a broker's programs: run the program alone, with "
               "`gridloom run --timing --policy " +
               name + "`"};
}

}  // namespace

TimingService::TimingService(Options options) : options_(std::move(options)), begun_(options_.wait_for == 0) {}

/// The limits of an account, for a service that simulates tenants alone or not (options.alone).
TenantAccount::Limits TimingService::AccountLimits() const {
  TenantAccount::Limits limits = options_.tenant;
  limits.alone = alone_ != nullptr;
  return limits;
}

Result<std::unique_ptr<TimingService>> TimingService::Create(sim::DeviceSpec device, Options options) {
  std::unique_ptr<TimingService> service(new TimingService(std::move(options)));
  GL_TRY(supply,
         study::PolicySupply::Create(device, {.profiles = service->options_.profiles, .tell = service->options_.tell}));
  service->supply_ = std::move(supply);
  GL_TRY_STATUS(CheckPolicy(service->options_.policy));
  if (study::RangesOf(device))
    return Error{
        "the part crcs goes by the ranges of CTAs, which are not captured of a broker's programs: leave it out of "
        "--hardware"};
  if (hardware::Has(device, "hazards"))
    return Error{
        "the part hazards keeps what every program has touched, for which no tenant pays: leave it out of --hardware, "
        "and check "
        "programs by `gridloom replay` of their traces"};
  GL_TRY(policy, service->supply_->Make(service->options_.policy));
  auto switchable =
      std::make_unique<SwitchablePolicy>(std::move(policy), kBurstUs * device.timing.clock.sm_mhz,
                                         [raw = service.get()](std::uint32_t tenant) { return raw->LimitsOf(tenant); });
  service->policy_ = switchable.get();
  device.timing.launch.queues = kQueues;
  timing::LiveTimeline::Options timeline;
  timeline.engine.threads = service->options_.threads;
  timeline.engine.keep_ended = false;
  timeline.keep_table = false;
  GL_TRY(parts, hardware::Build(device));
  timeline.engine.parts = std::move(parts);
  service->parts_ = hardware::PartsText(device);
  service->part_values_ = hardware::ValuesText(device);
  timeline.profiler = [supply = service->supply_](std::uint32_t tenant, std::shared_ptr<trace::CtaSource>& source) {
    return supply->Profile(tenant, source);
  };
  timeline.on_ended = [raw = service.get()](timing::HostId host, const timing::WorkResult& work,
                                            const timing::Counters& during) { raw->Ended(host, work, during); };
  if (service->options_.alone != 0) {
    timeline.on_node_ended = [raw = service.get()](timing::NodeId node, timing::Cycle end) {
      raw->NodeEnded(node, end);
    };
    service->alone_ = std::make_unique<AloneDevices>(
        device, AloneDevices::Options{
                    .most = service->options_.alone, .tell = service->options_.tell, .changed = [raw = service.get()] {
                      const std::lock_guard lock(raw->channels_mutex_);
                      raw->alone_changed_ = true;
                      raw->changed_.notify_all();
                    }});
  }
  timeline.on_forgotten = [raw = service.get()](timing::HostId host) { raw->Forget(host); };
  service->most_copy_bytes_ = device.memory.size_bytes;
  GL_TRY(made, timing::LiveTimeline::Create(device, std::move(switchable), std::move(timeline)));
  service->timeline_ = std::move(made);
  service->attends_ = std::thread([raw = service.get()] { raw->AttendHosts(); });
  return service;
}

TimingService::~TimingService() {
  std::map<std::uint64_t, std::shared_ptr<TenantChannel>> channels;
  Channels leaving;
  {
    const std::lock_guard lock(channels_mutex_);
    stop_ = true;
    channels.swap(channels_);
    leaving.swap(leaving_);
    changed_.notify_all();
  }
  if (attends_.joinable()) attends_.join();
  channels.clear();
  leaving.clear();
  alone_.reset();
}

void TimingService::OnViolation(Violation violation) {
  const std::lock_guard lock(mutex_);
  violation_ = std::move(violation);
}

void TimingService::Report(std::uint64_t session, const std::string& why) {
  const std::lock_guard lock(mutex_);  // while it is held nobody takes the listener away
  if (violation_) violation_(session, why);
}

// ---- sessions

Result<protocol::Fd> TimingService::Join(const sched::SimulatedSession& session) {
  GL_TRY(ends, protocol::MakeChannel());
  protocol::Fd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return Error{"no descriptors are left"};
  SetLimits(session.tenant, session.limits);
  const auto channel = std::make_shared<TenantChannel>(*this, session, AccountOf(session.tenant), std::move(ends.first),
                                                       std::move(bell));
  GL_TRY_STATUS(channel->Start());
  const std::lock_guard lock(channels_mutex_);
  channels_[session.session] = channel;
  came_ = true;
  changed_.notify_all();
  return std::move(ends.second);
}

std::shared_ptr<TenantAccount> TimingService::AccountOf(std::uint32_t tenant) {
  const std::lock_guard lock(mutex_);
  auto account = accounts_[tenant].lock();
  if (account == nullptr) accounts_[tenant] = account = std::make_shared<TenantAccount>(AccountLimits());
  return account;
}

std::uint64_t TimingService::bytes(std::uint32_t tenant) const {
  const std::lock_guard lock(mutex_);
  const auto known = accounts_.find(tenant);
  const auto account = known != accounts_.end() ? known->second.lock() : nullptr;
  return account != nullptr ? account->bytes() : 0;
}

/// Sessions whose turn to begin has come. Holding channels_mutex_.
TimingService::Channels TimingService::TakeBeginning() {
  if (!begun_ && channels_.size() < options_.wait_for) return {};
  Channels beginning;
  for (const auto& [number, channel] : channels_) {
    if (!std::exchange(channel->begins, true)) beginning.push_back(channel);
  }
  if (!begun_) {
    // All at the same time, in an order that does not depend on who came first.
    std::ranges::sort(beginning, {}, [](const auto& one) {
      return std::tie(one->session().tenant_name, one->session().program, one->session().session);
    });
  }
  begun_ = true;
  return beginning;
}

void TimingService::AddHosts(const Channels& channels) {
  std::set<std::uint32_t> others;  // tenants that have programs there
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [host, record] : hosts_) others.insert(record->tenant);
  }
  for (const auto& channel : channels) AddHost(*channel, others.contains(channel->session().tenant));
  const std::lock_guard lock(channels_mutex_);
  for (const auto& channel : channels) channel->has_host = true;
  changed_.notify_all();
}

/// `others`: its tenant has programs that began before.
void TimingService::AddHost(TenantChannel& channel, bool others) {
  channel.host = timeline_->AddHost();
  channel.begin = timeline_->HostTime(channel.host);
  const sched::SimulatedSession& session = channel.session();
  if (alone_ != nullptr)
    channel.alone = alone_->Join(session.tenant, session.tenant_name, channel.account(), channel.begin, others);
  const auto record = std::make_shared<HostRecord>();
  record->tenant = session.tenant;
  record->account = channel.account();
  record->works = channel.work_charge();
  if (channel.alone != nullptr) record->sharing = channel.alone->record();
  const std::lock_guard lock(mutex_);
  hosts_[channel.host] = record;
}

bool TimingService::Begin(TenantChannel& channel) {
  std::unique_lock lock(channels_mutex_);
  changed_.wait(lock, [&] { return channel.has_host || (channel.left && !channel.begins) || stop_; });
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

/// How long a launch of the session may run: options_.launch_seconds of the part of the device that is its tenant's by
/// weight and cap. 0: as long as it likes, where somebody of higher priority may keep it waiting, whatever it does.
timing::Cycle TimingService::MostRunningTime(const TenantChannel& channel, const Channels& there) const {
  const std::lock_guard lock(mutex_);
  const auto limits_of = [&](const TenantChannel& one) {
    const auto limits = limits_.find(one.session().tenant);
    return limits != limits_.end() ? limits->second : sched::TenantLimits{};
  };
  const sched::TenantLimits own = limits_of(channel);
  double weights = 0;
  for (const auto& other : there) {
    const sched::TenantLimits limits = limits_of(*other);
    if (limits.priority > own.priority) return 0;
    weights += limits.weight;
  }
  const double part = std::min(own.weight / std::max(weights, own.weight), own.cap);
  const double cycles =
      options_.launch_seconds * 1e6 * timeline_->parameters().timing().clock.sm_mhz / std::max(part, kLeastPart);
  return static_cast<timing::Cycle>(std::min(cycles, kLongest));
}

/// Of the host's launches that have ended since the last call. A long one may be simulated between two looks, where its
/// turns are alike.
LongestLaunch TimingService::TakeLongest(timing::HostId host) const {
  std::shared_ptr<HostRecord> record;
  {
    const std::lock_guard lock(mutex_);
    const auto known = hosts_.find(host);
    if (known == hosts_.end()) return {};
    record = known->second;
  }
  const std::lock_guard lock(record->mutex);
  return std::exchange(record->longest, {});
}

/// Lets sessions begin; looks now and then who has gone quiet, and whose launches run for too long; buries who has
/// gone.
void TimingService::AttendHosts() {
  std::unique_lock lock(channels_mutex_);
  while (!stop_) {
    came_ = false;
    const bool tidies = std::exchange(tidy_, false);
    alone_changed_ = false;
    Channels gone, there;
    std::erase_if(leaving_, [&](auto& channel) {
      if (!channel->ended()) return false;
      gone.push_back(std::move(channel));
      return true;
    });
    const Channels beginning = TakeBeginning();
    for (const auto& [session, channel] : channels_) {
      if (channel->has_host && !channel->ended()) there.push_back(channel);
    }
    lock.unlock();
    AddHosts(beginning);
    const auto now = steady_clock::now();
    for (const auto& channel : there) {
      channel->SetAwayAfter(now, milliseconds(options_.patience_ms));
      channel->CheckRunningTime(timeline_->now(), MostRunningTime(*channel, there), TakeLongest(channel->host));
    }
    gone.clear();
    there.clear();
    if (alone_ != nullptr) alone_->Attend();
    if (tidies) malloc_trim(0);  // what lies free between what others have goes back to the host, too
    lock.lock();
    // Without sessions nothing wakes.
    if (channels_.empty() && leaving_.empty())
      changed_.wait(lock, [&] { return stop_ || came_ || tidy_ || alone_changed_ || !leaving_.empty(); });
    else changed_.wait_for(lock, kAttendEvery, [&] { return stop_ || came_; });
  }
}

// ---- what there is to see

void TimingService::Ended(timing::HostId host, const timing::WorkResult& work, const timing::Counters& during) {
  const double mhz = timeline_->parameters().timing().clock.sm_mhz;
  std::shared_ptr<HostRecord> record;
  {
    const std::lock_guard lock(mutex_);
    end_cycles_ = std::max(end_cycles_, static_cast<double>(work.ended));
    const auto known = hosts_.find(host);
    if (known == hosts_.end()) return;
    record = known->second;
    if (work.kind == timing::WorkKind::kKernel) {
      sched::SimulatedUsage& usage = usage_[record->tenant];
      ++usage.kernels;
      usage.seconds += static_cast<double>(work.ended - work.started) / (mhz * 1e6);
    }
  }
  const std::lock_guard lock(record->mutex);
  record->table.Add(work, during);
  if (work.kind != timing::WorkKind::kKernel || work.ended - work.started <= record->longest.cycles) return;
  record->longest = {work.name, work.ended - work.started};
}

void TimingService::NodeEnded(timing::NodeId node, timing::Cycle end) {
  std::shared_ptr<SharingRecord> sharing;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = hosts_.find(static_cast<timing::HostId>(node >> 32)); known != hosts_.end())
      sharing = known->second->sharing;
  }
  if (sharing != nullptr) sharing->SharedEnded(node & 0xffffffffu, end);
}

timing::KernelTable TimingService::TableOf(timing::HostId host) {
  std::shared_ptr<HostRecord> record;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = hosts_.find(host); known != hosts_.end()) record = known->second;
  }
  if (record == nullptr) return {};
  const std::lock_guard lock(record->mutex);
  return record->table;
}

void TimingService::Forget(timing::HostId host) {
  std::shared_ptr<HostRecord> record;
  {
    const std::lock_guard lock(mutex_);
    if (auto known = hosts_.extract(host)) record = std::move(known.mapped());
  }
  if (record == nullptr || record->account->peak() < kLargeBytes) return;
  const std::lock_guard lock(channels_mutex_);
  tidy_ = true;
  changed_.notify_all();
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
  GL_TRY_STATUS(CheckPolicy(std::string(name)));
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
  sched::SimulatedUsage usage;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = usage_.find(tenant); found != usage_.end()) usage = found->second;
  }
  if (alone_ == nullptr) return usage;
  const SharingTotals::Cycles times = alone_->TimesOf(tenant);
  usage.turnaround_seconds = timeline_->Nanoseconds(times.shared) / 1e9;
  usage.alone_seconds = timeline_->Nanoseconds(times.alone) / 1e9;
  return usage;
}

sched::SimulatedProfiling TimingService::profiling() const {
  const study::PolicySupply::Cost cost = supply_->cost();
  return {.kernels = cost.kernels, .warp_instructions = cost.warp_instructions};
}

}  // namespace gridloom::tenants
