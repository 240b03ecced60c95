#include "scheduler/core/scheduler.h"

#include <algorithm>

#include "rewriter/support/check.h"

namespace gridloom::sched {
Scheduler::Scheduler(const Options& options, Engine& engine, std::unique_ptr<policy::Policy> policy)
    : options_(options), engine_(engine), policy_(std::move(policy)), room_(options.sms, options.empty_sm) {
  GL_CHECK(options.sms > 0, "a device without multiprocessors");
  charged_ = engine_.now();
}

void Scheduler::SetTenant(std::uint32_t id, const TenantLimits& limits) {
  Charge();
  const auto [at, added] = tenants_.try_emplace(id);
  Tenant& tenant = at->second;
  if (added || limits.cap != tenant.limits.cap)
    tenant.credit = policy::CapCredit(limits.cap, static_cast<double>(options_.burst));
  tenant.limits = limits;
  for (policy::KernelView& kernel : kernels_) {
    if (kernel.tenant != id) continue;
    kernel.weight = limits.weight;
    kernel.priority = limits.priority * 256 + launches_.at(kernel.id).info.priority;
  }
  while (!tenant.waiting.empty() && tenant.in_flight < tenant.limits.in_flight) {
    const LaunchId next = tenant.waiting.front();
    tenant.waiting.pop_front();
    Show(next, tenant);
  }
}

LaunchId Scheduler::Submit(LaunchInfo info) {
  const LaunchId id = next_id_++;
  const StreamKey key{info.owner, info.stream};
  const bool alone = info.stream == 0;
  launches_[id].info = std::move(info);
  if (!alone) {
    std::deque<LaunchId>& stream = streams_[key];
    stream.push_back(id);
    if (stream.size() > 1) return id;
  }
  Enter(id);
  return id;
}

/// The launch's turn in its stream has come.
void Scheduler::Enter(LaunchId id) {
  Tenant& tenant = tenants_.at(launches_.at(id).info.tenant);
  if (tenant.in_flight < tenant.limits.in_flight) Show(id, tenant);
  else tenant.waiting.push_back(id);
}

void Scheduler::Show(LaunchId id, Tenant& tenant) {
  Launch& launch = launches_.at(id);
  launch.visible = true;
  launch.resident.assign(options_.sms, 0);
  ++tenant.in_flight;
  kernels_.push_back({.id = id,
                      .stream = static_cast<std::uint32_t>(launch.info.stream),
                      .ctas = launch.info.ctas,
                      .needs = launch.info.needs,
                      .tenant = launch.info.tenant,
                      .weight = tenant.limits.weight,
                      .priority = tenant.limits.priority * 256 + launch.info.priority,
                      .profile = launch.info.profile,
                      .code = launch.info.kernel,
                      .resident = launch.resident,
                      .divisible = launch.info.divisible});
}

policy::KernelView* Scheduler::ViewOf(LaunchId id) {
  const auto view = std::ranges::find(kernels_, id, &policy::KernelView::id);
  return view != kernels_.end() ? &*view : nullptr;
}

/// Slices that run at the same time have equal parts of what runs them.
void Scheduler::Charge() {
  const std::uint64_t now = engine_.now();
  const double passed = now > charged_ ? static_cast<double>(now - charged_) : 0;
  charged_ = std::max(charged_, now);
  if (passed == 0) return;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.credit.limits()) tenant.credit.Earn(passed);
  }
  if (running_ == 0) {  // what is kept free for a tenant is taken from its cap as if it ran
    const auto kept_for = policy_->KeptFor();
    for (const std::uint32_t id : kept_for) {
      Tenant& tenant = tenants_.at(id);
      if (tenant.credit.limits()) tenant.credit.Pay(passed / static_cast<double>(kept_for.size()));
    }
    return;
  }
  const double part = passed / running_;
  busy_time_ += passed;
  for (auto& [id, owner] : owners_) *owner.device_time += part * owner.running;
  for (const policy::KernelView& kernel : kernels_) {
    if (kernel.started == kernel.finished) continue;
    Tenant& tenant = tenants_.at(kernel.tenant);
    tenant.usage.device_time += part;
    if (tenant.credit.limits()) tenant.credit.Pay(part);
  }
}

Status Scheduler::Progress(LaunchId id, std::uint64_t done) {
  const auto at = launches_.find(id);
  if (at == launches_.end()) return Error{"there is no such launch"};
  Launch& launch = at->second;
  policy::KernelView* const view = ViewOf(id);
  if (view == nullptr) return Error{"launch of " + launch.info.name + " has run although nothing was granted"};
  if (done < view->finished || done > view->started) {
    return Error{"launch of " + launch.info.name + " has run " + std::to_string(done) + " CTAs; " +
                 std::to_string(view->finished) + " were known and " + std::to_string(view->started) + " granted"};
  }
  Charge();
  const std::uint64_t ran = done - view->finished;
  if (ran == 0) return {};
  owners_.at(launch.info.owner).moved = charged_;
  Tenant& tenant = tenants_.at(launch.info.tenant);
  Learn(launch, ran, engine_.now() - launch.slice_began);
  launch.slice_began = engine_.now();
  view->finished = done;
  tenant.usage.ctas += ran;
  ++tenant.usage.slices;
  while (!launch.grants.empty() && launch.grants.front().end <= done) {
    room_.Give(launch.info.needs, launch.grants.front().holding, launch.resident);
    launch.grants.pop_front();
  }
  if (view->finished == view->started) EndRunning(launch.info);
  return {};
}

Status Scheduler::End(LaunchId id, bool faulted) {
  const auto at = launches_.find(id);
  if (at == launches_.end()) return Error{"there is no such launch"};
  Charge();
  Launch& launch = at->second;
  Tenant& tenant = tenants_.at(launch.info.tenant);
  for (const Grant& grant : launch.grants) room_.Give(launch.info.needs, grant.holding, launch.resident);
  if (launch.visible) {
    if (const policy::KernelView* view = ViewOf(id); view->started != view->finished) EndRunning(launch.info);
    std::erase_if(kernels_, [&](const policy::KernelView& kernel) { return kernel.id == id; });
    --tenant.in_flight;
  } else {
    std::erase(tenant.waiting, id);
  }
  ++tenant.usage.launches;
  if (faulted) ++tenant.usage.faults;
  to_announce_.erase(id);
  withdrawn_.erase(id);
  const StreamKey key{launch.info.owner, launch.info.stream};
  launches_.erase(at);
  if (key.second != 0) {
    std::deque<LaunchId>& stream = streams_.at(key);
    const bool was_first = stream.front() == id;
    std::erase(stream, id);
    if (stream.empty()) streams_.erase(key);
    else if (was_first) Enter(stream.front());
  }
  while (!tenant.waiting.empty() && tenant.in_flight < tenant.limits.in_flight) {
    const LaunchId next = tenant.waiting.front();
    tenant.waiting.pop_front();
    Show(next, tenant);
  }
  return {};
}

Status Scheduler::Withdraw(LaunchId id) {
  const auto at = launches_.find(id);
  if (at == launches_.end()) return Error{"there is no such launch"};
  policy::KernelView* const view = ViewOf(id);
  if (view == nullptr || view->started == view->finished) return End(id, false);
  Charge();
  Launch& launch = at->second;
  view->ctas = launch.info.ctas = view->started;
  for (const Grant& grant : launch.grants) room_.Give(launch.info.needs, grant.holding, launch.resident);
  launch.grants.clear();
  withdrawn_.insert(id);
  return {};
}

/// What the policy is shown: no launch that has run or was withdrawn, none of a tenant over its cap that holds nothing,
/// and for one that holds something nothing more to start. The parts of the device are those of slices in real time:
/// they share what runs them, whatever they hold.
std::span<const policy::KernelView> Scheduler::Candidates() {
  candidates_.clear();
  for (const policy::KernelView& kernel : kernels_) {
    if (kernel.finished == kernel.ctas || (!withdrawn_.empty() && withdrawn_.contains(kernel.id))) continue;
    const bool runs = kernel.started != kernel.finished;
    const bool over = tenants_.at(kernel.tenant).credit.over();
    if (over && !runs) continue;
    candidates_.push_back(kernel);
    candidates_.back().occupied = runs ? 1.0 / running_ : 0;
    if (over || (!runs && HasAllThatMayRun(launches_.at(kernel.id).info.owner)))
      candidates_.back().ctas = kernel.started;
  }
  return candidates_;
}

void Scheduler::BeginRunning(const LaunchInfo& info) {
  ++running_;
  Owner& owner = owners_[info.owner];
  if (owner.running++ != 0) return;
  owner.moved = charged_;
  owner.device_time = &device_times_[info.owner];
}

void Scheduler::EndRunning(const LaunchInfo& info) {
  --running_;
  const auto owner = owners_.find(info.owner);
  owner->second.moved = charged_;
  if (--owner->second.running == 0) owners_.erase(owner);
}

double Scheduler::device_time_of(std::uint64_t owner) const {
  const auto found = device_times_.find(owner);
  return found != device_times_.end() ? found->second : 0;
}

void Scheduler::ForgetOwner(std::uint64_t owner) {
  if (!owners_.contains(owner)) device_times_.erase(owner);
}

/// Launches of one owner may wait for each other, and then none ends before all have begun: others' count nothing here.
bool Scheduler::HasAllThatMayRun(std::uint64_t owner) const {
  if (running_ < options_.resident_kernels) return false;
  const auto found = owners_.find(owner);
  return found != owners_.end() && found->second.running >= options_.resident_kernels;
}

/// Starts what waits of owners that have reported nothing for longer than the patience, in turn or not, as far as a
/// device of their own would have room for it.
void Scheduler::HelpStanding() {
  if (options_.patience == 0 || charged_ < help_from_) return;
  help_from_ = charged_ + options_.patience;
  std::vector<std::uint64_t> standing;
  for (const auto& [id, owner] : owners_) {
    if (owner.moved + options_.patience <= charged_) standing.push_back(id);
    else help_from_ = std::min(help_from_, owner.moved + options_.patience);
  }
  for (const std::uint64_t owner : standing) HelpOwner(owner);
}

void Scheduler::HelpOwner(std::uint64_t owner) {
  for (auto& [id, tenant] : tenants_) {
    const auto own = [&](LaunchId launch) { return launches_.at(launch).info.owner == owner; };
    const auto first = std::ranges::stable_partition(tenant.waiting, [&](LaunchId launch) { return !own(launch); });
    const std::vector<LaunchId> waiting(first.begin(), first.end());
    tenant.waiting.erase(first.begin(), first.end());
    for (const LaunchId launch : waiting) Show(launch, tenant);
  }
  for (policy::KernelView& view : kernels_) {
    Launch& launch = launches_.at(view.id);
    if (launch.info.owner != owner || view.all_started() || view.started != view.finished) continue;
    if (HasAllThatMayRun(owner)) return;
    const std::uint64_t left = view.ctas - view.started;
    const std::uint64_t want = view.divisible ? std::min<std::uint64_t>(left, options_.sms) : left;
    const bool fits = FitsBesideItsOwn(launch, want);
    Holding holding;
    const std::uint64_t taken = room_.Take(view.needs, want, 0, launch.resident, &holding);
    if (fits || taken != 0) GrantCtas(view, launch, fits || !view.divisible ? want : taken, std::move(holding));
  }
}

/// Whether a device that runs nothing else than what its owner's launches have now has room for these CTAs.
bool Scheduler::FitsBesideItsOwn(const Launch& launch, std::uint64_t ctas) const {
  DeviceRoom room(options_.sms, options_.empty_sm);
  std::vector<std::uint16_t> resident(options_.sms, 0);
  Holding holding;
  for (const policy::KernelView& view : kernels_) {
    if (view.started == view.finished || launches_.at(view.id).info.owner != launch.info.owner) continue;
    room.Take(view.needs, view.started - view.finished, 0, resident, &holding);
  }
  return room.Take(launch.info.needs, ctas, 0, resident, &holding) == ctas;
}

/// When the next owner's patience ends; nothing where nobody waits.
std::optional<std::uint64_t> Scheduler::NextHelp() const {
  if (options_.patience == 0 || owners_.empty()) return std::nullopt;
  const bool waits =
      std::ranges::any_of(kernels_, [](const policy::KernelView& view) { return !view.all_started(); }) ||
      std::ranges::any_of(tenants_, [](const auto& entry) { return !entry.second.waiting.empty(); });
  return waits ? std::optional(std::max(help_from_, charged_ + 1)) : std::nullopt;
}

std::optional<std::uint64_t> Scheduler::Pump() {
  Charge();
  while (true) {  // also when nobody wants anything: a policy may care for when that began
    ++decisions_;
    const auto slice = policy_->Next({.cycle = charged_, .kernels = Candidates(), .sms = room_.sms()});
    if (!slice || Start(*slice) == 0) break;
  }
  HelpStanding();
  for (const LaunchId id : to_announce_) {
    Launch& launch = launches_.at(id);
    launch.announced = ViewOf(id)->started;
    engine_.Grant(id, launch.announced);
  }
  to_announce_.clear();
  std::optional<std::uint64_t> next = NextCredit();
  for (const auto at : {policy_->Again(), NextHelp()}) {
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

/// How many CTAs a slice may have at most, where a CTA takes so long; null: nothing is known of the kernel.
std::uint64_t Scheduler::MostOf(const double* time_per_cta, std::uint64_t wanted) const {
  if (options_.quantum == 0) return wanted;
  if (time_per_cta == nullptr)
    return std::min<std::uint64_t>(wanted, options_.sms);  // a CTA for each multiprocessor tells
  const double ctas = static_cast<double>(options_.quantum) / std::max(*time_per_cta, 1e-3);
  return ctas >= static_cast<double>(wanted) ? wanted : std::max<std::uint64_t>(static_cast<std::uint64_t>(ctas), 1);
}

std::uint64_t Scheduler::Start(const policy::Slice& slice) {
  policy::KernelView* const view = ViewOf(slice.kernel);
  if (view == nullptr) return 0;
  Launch& launch = launches_.at(slice.kernel);
  std::uint64_t want = std::min(slice.ctas, view->ctas - view->started);
  if (want == 0) return 0;
  Holding holding;
  if (!view->divisible) {
    want = view->ctas - view->started;
    if (room_.Take(view->needs, want, slice.max_per_sm, launch.resident, &holding) == 0) return 0;
  } else {
    // What is granted and has not run counts: grants that come while a slice runs make it no longer than it may be.
    const std::uint64_t ahead = view->started - view->finished;
    const double* const time_per_cta = tenants_.at(launch.info.tenant).times.Find(launch.info.kernel);
    const std::uint64_t most = MostOf(time_per_cta, want + ahead);
    if (most <= ahead) return 0;
    want = std::min(want, most - ahead);
    const std::uint64_t taken = room_.Take(view->needs, want, slice.max_per_sm, launch.resident, &holding);
    if (taken == 0) return 0;
    // CTAs that are known to be short need no room of their own: they take that of the slice's first ones, as in a grid
    // that is larger than the device. Without a quantum nothing is known of them.
    if (options_.quantum == 0 || time_per_cta == nullptr) want = taken;
  }
  return GrantCtas(*view, launch, want, std::move(holding));
}

std::uint64_t Scheduler::GrantCtas(policy::KernelView& view, Launch& launch, std::uint64_t ctas, Holding holding) {
  if (view.started == view.finished) {
    BeginRunning(launch.info);
    launch.slice_began = charged_;
  }
  view.started += ctas;
  launch.grants.push_back({.end = view.started, .since = charged_, .holding = std::move(holding)});
  to_announce_.insert(view.id);
  return ctas;
}

void Scheduler::Learn(const Launch& launch, std::uint64_t ctas, std::uint64_t took) {
  if (options_.quantum == 0) return;
  tenants_.at(launch.info.tenant)
      .times.Learn(launch.info.kernel, static_cast<double>(took) / static_cast<double>(ctas));
}

/// When a tenant that waits only for its cap may go on.
std::optional<std::uint64_t> Scheduler::NextCredit() const {
  std::optional<std::uint64_t> next;
  for (const policy::KernelView& kernel : kernels_) {
    const Tenant& tenant = tenants_.at(kernel.tenant);
    if (kernel.all_started() || !tenant.credit.over()) continue;
    const auto wait = tenant.credit.Wait();
    if (wait && (!next || charged_ + *wait < *next)) next = charged_ + *wait;
  }
  return next;
}

}  // namespace gridloom::sched
