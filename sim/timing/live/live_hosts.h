// The hosts of a live timeline: their clocks, and what each of them has given that has not ended. With the timeline's
// lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "sim/timing/live/host_ends.h"
#include "sim/timing/live/live_options.h"

namespace gridloom::timing {

class LiveStreams;

using QuestionId = std::uint64_t;

struct LiveHost {
  Cycle clock = 0;
  std::set<QuestionId> questions;  ///< that are open
  std::size_t waiting = 0;         ///< of them, those in which it waits; not 0: it submits nothing
  bool away = false, gone = false, dropped = false;
  std::deque<NodeId> calls;              ///< works that the engine has not got, in the order of submission
  HostEnds ends;                         ///< of its works
  std::uint64_t running = 0, waits = 0;  ///< works that have not ended, and what they wait for
  bool active() const { return !gone && !away && waiting == 0; }
  bool forgotten() const { return dropped && running == 0; }
};

/// What calls cost a host, in cycles.
struct HostCosts {
  Cycle call = 0, copy_call = 0;
  Cycle answer = 0;  ///< from the device's end to the host
};
HostCosts CostsOf(const Parameters& parameters);

class LiveHosts {
 public:
  explicit LiveHosts(const LiveOptions& options) : options_(options) {}

  void SetCosts(const HostCosts& costs) { costs_ = costs; }
  const HostCosts& costs() const { return costs_; }

  HostId Add(Cycle now);
  LiveHost* Find(HostId host);
  const LiveHost* Find(HostId host) const;
  LiveHost& at(HostId host) { return hosts_.at(host); }
  /// That are there, or of which works are.
  std::map<HostId, LiveHost>& all() { return hosts_; }
  const std::map<HostId, LiveHost>& all() const { return hosts_; }
  /// Lets go of a host that was dropped, once nothing of it runs any more.
  void Forget(HostId host, LiveStreams& streams);

  // ---- ends of works
  /// The host gives a work. `asked_for`: as HostEnds::Add.
  NodeId AddWork(HostId host, bool asked_for);
  /// kNever: the work has not ended. 0 when its end is not known any more, which moves nobody's clock.
  Cycle End(NodeId node) const;
  bool Done(NodeId node) const { return End(node) != kNever; }
  /// Nothing: the work has not ended, or its end is not known any more.
  std::optional<Cycle> KnownEnd(NodeId node) const;
  void SetEnd(NodeId node, Cycle end, std::size_t waits);
  /// Lets go of ends that the hosts do not care for any more.
  void LetGoOfEnds();
  /// A work of whomever has ended.
  void NoteEnd(Cycle end);
  /// When the last work and the last host had ended.
  Cycle end() const;

  // ---- what may still come
  /// From now on nobody submits anything.
  void SetFinishing() { finishing_ = true; }
  bool finishing() const { return finishing_; }
  /// Before that time no host submits anything.
  Cycle Horizon() const;
  /// No other host can still submit something that comes before.
  bool Safe(HostId host, Cycle submitted) const;

 private:
  static std::size_t IndexOf(NodeId node) { return (node & 0xffffffffu) - 1; }  ///< in LiveHost::ends

  const LiveOptions& options_;
  HostCosts costs_;
  std::map<HostId, LiveHost> hosts_;
  HostId next_ = 0;
  Cycle last_end_ = 0;  ///< of a work, or the clock of a host that is gone
  bool finishing_ = false;
};

}  // namespace gridloom::timing
