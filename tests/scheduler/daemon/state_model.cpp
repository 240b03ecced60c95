#include "tests/scheduler/daemon/state_model.h"

#include <algorithm>
#include <cmath>

namespace gridloom::broker {
namespace {

std::string NameOf(LaunchKey key) {
  return "launch " + std::to_string(key.second) + " of session " + std::to_string(key.first);
}

void Hold(bool holds, const std::string& sentence) {
  if (!holds) throw Breach(sentence);
}

}  // namespace

void StateModel::Tenant(std::uint32_t id, std::uint32_t in_flight, double cap, std::uint64_t memory) {
  TenantState& tenant = tenants_[id];
  tenant.limit = in_flight;
  tenant.memory_limit = memory;
  if (cap == tenant.cap) return;
  tenant.cap = cap;
  tenant.cap_since = now_;
  tenant.time_at_cap = tenant.seen ? tenant.seen->device_time : 0;
}

void StateModel::Join(std::uint32_t session, std::uint32_t tenant) {
  sessions_[session] = tenant;
  memory_[session] = 0;
}

void StateModel::Leave(std::uint32_t session) {
  for (auto at = launches_.lower_bound({session, 0}); at != launches_.end() && at->first.first == session;)
    Forget((at++)->first, false);
  sessions_.erase(session);
  memory_.erase(session);
}

void StateModel::Announce(LaunchKey key, const ModelLaunch& launch) { launches_[key] = launch; }

void StateModel::Progress(LaunchKey key, std::uint64_t done) {
  ModelLaunch& launch = launches_.at(key);
  SeenTenant& counted = tenants_.at(launch.tenant).counted;
  if (done == launch.done) return;
  counted.ctas += done - launch.done;
  ++counted.slices;
  launch.done = done;
}

void StateModel::End(LaunchKey key, std::uint64_t done, bool faulted) {
  if (done != 0) Progress(key, done);
  Forget(key, faulted);
}

void StateModel::Forget(LaunchKey key, bool faulted) {
  SeenTenant& counted = tenants_.at(launches_.at(key).tenant).counted;
  ++counted.launches;
  if (faulted) ++counted.faults;
  launches_.erase(key);
}

std::uint64_t StateModel::Memory(std::uint32_t session, std::uint64_t bytes) {
  std::uint64_t others = 0;
  for (const auto& [id, of] : memory_) {
    if (id != session && sessions_.at(id) == sessions_.at(session)) others += of;
  }
  if (bytes <= memory_[session] || others + bytes <= tenants_.at(sessions_.at(session)).memory_limit)
    memory_[session] = bytes;
  return memory_[session];
}

void StateModel::Pass(std::uint64_t time) {
  now_ += time;
  if (std::ranges::any_of(launches_, [](const auto& entry) { return entry.second.runs(); })) busy_ += time;
}

/// Its turn in its stream has come.
bool StateModel::Eligible(LaunchKey key) const {
  const std::uint64_t stream = launches_.at(key).stream;
  if (stream == 0) return true;
  for (auto at = launches_.lower_bound({key.first, 0}); at->first != key; ++at) {
    if (at->second.stream == stream) return false;
  }
  return true;
}

void StateModel::SeeGrant(LaunchKey key, std::uint64_t granted) {
  ModelLaunch& launch = launches_.at(key);
  Hold(granted >= launch.granted, NameOf(key) + ": a grant was taken back");
  Hold(granted <= launch.ctas,
       NameOf(key) + ": " + std::to_string(granted) + " CTAs granted of " + std::to_string(launch.ctas));
  if (granted == launch.granted) return;
  Hold(Eligible(key), NameOf(key) + " may run before the one in front of it in its stream has ended");
  Hold(launch.divisible || granted == launch.ctas, NameOf(key) + " is granted in parts, which it cannot run in");
  launch.granted = granted;
  tenants_.at(launch.tenant).new_grant = true;
}

void StateModel::SeeTenant(std::uint32_t id, const SeenTenant& seen) {
  TenantState& tenant = tenants_.at(id);
  const std::string name = "tenant " + std::to_string(id);
  std::uint64_t eligible = 0, granted = 0, memory = 0;
  for (const auto& [key, launch] : launches_) {
    if (launch.tenant != id) continue;
    eligible += Eligible(key) ? 1 : 0;
    granted += launch.granted != 0 ? 1 : 0;
  }
  for (const auto& [session, bytes] : memory_) memory += sessions_.at(session) == id ? bytes : 0;
  const auto equal = [&](std::uint64_t is, std::uint64_t should, const char* what) {
    Hold(is == should, name + ": " + what + " " + std::to_string(is) + ", should be " + std::to_string(should));
  };
  equal(seen.in_flight + seen.waiting, eligible, "launches whose turn has come");
  const std::uint32_t before = tenant.seen ? tenant.seen->in_flight : 0;
  Hold(seen.in_flight <= std::max(tenant.limit, before), name + " has more launches in flight than it may");
  Hold(seen.waiting == 0 || seen.in_flight >= tenant.limit, name + " waits although fewer are in flight than may be");
  Hold(granted <= seen.in_flight, name + " was granted launches that do not take part");
  equal(seen.launches, tenant.counted.launches, "launches that have ended");
  equal(seen.faults, tenant.counted.faults, "faults");
  equal(seen.slices, tenant.counted.slices, "slices");
  equal(seen.ctas, tenant.counted.ctas, "CTAs that have run");
  equal(seen.memory, memory, "bytes of memory");
  Hold(!tenant.seen || seen.device_time >= tenant.seen->device_time, name + ": its device time fell");
  tenant.seen = seen;
}

void StateModel::SeeAll(bool timed) {
  std::uint64_t running = 0, held_ctas = 0, held_warps = 0;
  bool wanted = false;
  std::map<std::uint32_t, std::uint64_t> granted;     // launches by tenant
  std::map<std::uint64_t, std::uint64_t> running_of;  // by session
  for (const auto& [key, launch] : launches_) {
    const std::uint64_t held = !launch.runs() ? 0 : launch.divisible ? launch.granted - launch.done : 1;
    running += launch.runs() ? 1 : 0;
    running_of[key.first] += launch.runs() ? 1 : 0;
    held_ctas += held;
    held_warps += held * launch.warps;
    if (launch.granted == 0) continue;  // it may have to wait for others of its tenant
    ++granted[launch.tenant];
    wanted |= launch.granted < launch.ctas && tenants_.at(launch.tenant).cap >= 1;
  }
  for (const auto& [session, count] : running_of)
    Hold(count <= device_.resident_kernels,
         std::to_string(count) + " launches of session " + std::to_string(session) + " run at a time");
  Hold(device_.slices || held_ctas <= std::uint64_t{device_.sms} * device_.ctas_per_sm,
       "more CTAs run than the device has room for");
  Hold(device_.slices || held_warps <= std::uint64_t{device_.sms} * device_.warps_per_sm,
       "more warps run than the device has room for");
  double device_time = 0;
  for (auto& [id, tenant] : tenants_) {
    device_time += tenant.seen ? tenant.seen->device_time : 0;
    wanted |= tenant.cap >= 1 && tenant.seen && tenant.seen->in_flight > granted[id];
    if (timed && tenant.new_grant && tenant.cap < 1) {  // whoever owes something starts nothing
      const double had = tenant.seen->device_time - tenant.time_at_cap;
      const double may = tenant.cap * (static_cast<double>(now_ - tenant.cap_since) + device_.burst);
      Hold(had <= may + 1, "tenant " + std::to_string(id) + " is granted more although it is over its cap");
    }
    tenant.new_grant = false;
  }
  Hold(!wanted || running != 0, "the device is idle although a launch waits for it");
  if (timed)
    Hold(std::abs(device_time - static_cast<double>(busy_)) <= 1 + 1e-6 * static_cast<double>(busy_),
         "the tenants' times do not add up");
}

}  // namespace gridloom::broker
