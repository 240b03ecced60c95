#include "sim/timing/live/live_hosts.h"

#include <algorithm>

#include "sim/timing/live/live_streams.h"

namespace gridloom::timing {
namespace {

Cycle CyclesOf(std::uint64_t ns, std::uint32_t mhz) { return (ns * mhz + 999) / 1000; }

}  // namespace

HostCosts CostsOf(const Parameters& parameters) {
  const auto& host = parameters.timing().host;
  const std::uint32_t mhz = parameters.timing().clock.sm_mhz;
  HostCosts costs;
  costs.call = CyclesOf(host.call_ns, mhz);
  costs.copy_call = host.copy_call_ns == 0 ? costs.call : CyclesOf(host.copy_call_ns, mhz);
  // The device is simulated in windows: an answer takes at least as long as the one in which a work ended.
  costs.answer = std::max(CyclesOf(host.sync_ns, mhz), parameters.window);
  return costs;
}

HostId LiveHosts::Add(Cycle now) {
  const HostId id = next_++;
  hosts_[id].clock = now;
  return id;
}

LiveHost* LiveHosts::Find(HostId host) {
  const auto found = hosts_.find(host);
  return found != hosts_.end() ? &found->second : nullptr;
}

const LiveHost* LiveHosts::Find(HostId host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() ? &found->second : nullptr;
}

void LiveHosts::Forget(HostId id, LiveStreams& streams) {
  const auto host = hosts_.find(id);
  if (host == hosts_.end() || !host->second.forgotten()) return;
  streams.Forget(id);
  NoteEnd(host->second.clock);
  hosts_.erase(host);
  if (options_.on_forgotten) options_.on_forgotten(id);
}

NodeId LiveHosts::AddWork(HostId id, bool asked_for) {
  HostEnds& ends = hosts_.at(id).ends;
  ends.Add(asked_for);
  return NodeOf(id, ends.size());
}

Cycle LiveHosts::End(NodeId node) const {
  const LiveHost* const host = node != 0 ? Find(HostOf(node)) : nullptr;
  return host != nullptr ? host->ends[IndexOf(node)] : 0;
}

std::optional<Cycle> LiveHosts::KnownEnd(NodeId node) const {
  const LiveHost* const host = node != 0 ? Find(HostOf(node)) : nullptr;
  if (host == nullptr || !host->ends.known(IndexOf(node)) || !Done(node)) return std::nullopt;
  return End(node);
}

void LiveHosts::SetEnd(NodeId node, Cycle end, std::size_t waits) {
  LiveHost& host = hosts_.at(HostOf(node));
  host.ends.Set(IndexOf(node), end);
  --host.running;
  host.waits -= waits;
  if (options_.on_node_ended) options_.on_node_ended(node, end);
}

void LiveHosts::LetGoOfEnds() {
  for (auto& [id, host] : hosts_) {
    if (host.ends.has_complete() && host.clock >= costs_.answer) host.ends.LetGo(host.clock - costs_.answer);
  }
}

void LiveHosts::NoteEnd(Cycle end) { last_end_ = std::max(last_end_, end); }

Cycle LiveHosts::end() const {
  Cycle end = last_end_;
  for (const auto& [id, host] : hosts_) end = std::max(end, host.clock);
  return end;
}

Cycle LiveHosts::Horizon() const {
  Cycle horizon = kNever;
  if (finishing_) return horizon;
  for (const auto& [id, host] : hosts_) {
    if (host.active()) horizon = std::min(horizon, host.clock);
  }
  return horizon;
}

bool LiveHosts::Safe(HostId of, Cycle submitted) const {
  if (finishing_) return true;
  return std::ranges::all_of(hosts_, [&](const auto& entry) {
    const auto& [id, host] = entry;
    return id == of || !host.active() || submitted < host.clock || (submitted == host.clock && of < id);
  });
}

}  // namespace gridloom::timing
