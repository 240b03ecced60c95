// What programs give a device to do, simulated while they run: kernels, copies and events in streams, and the time that
// passes for the hosts in between. One device, one or several hosts (programs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/live/live_answers.h"
#include "sim/timing/live/live_simulation.h"

namespace gridloom::timing {

/// Time. Each host has a clock. A call costs host.call_ns of it, an answer from the device arrives host.sync_ns after
/// the device's end (device files); what the host computes costs nothing unless Advance says so. Works are submitted at
/// their host's time. The device is simulated up to the time before which no host can submit any more: the earliest
/// clock of those that neither wait nor are away. So simulated times follow from the order of each host's calls alone,
/// whatever really happens when, as long as each host makes its calls from one thread.
///
/// The simulation has a thread of its own, which asks a kernel's source for its CTAs and may have to wait there for the
/// program that is still running them. All functions may be called from any thread. After a failure (problem()) all
/// waits return at once. When it is destroyed, sources that have not given all CTAs must have been abandoned.
///
/// The timeline takes the lock, and hands on to the classes that it consists of: hosts (live_hosts.h), what they ask
/// (live_questions.h), and the simulation (live_simulation.h) with works on their way to the device.
class LiveTimeline {
 public:
  using Options = LiveOptions;
  static Result<std::unique_ptr<LiveTimeline>> Create(const sim::DeviceSpec& device,
                                                      std::unique_ptr<policy::Policy> policy, Options options);
  LiveTimeline(const LiveTimeline&) = delete;
  LiveTimeline& operator=(const LiveTimeline&) = delete;

  // ---- hosts
  /// A host that begins now, at the time up to which the device is simulated.
  HostId AddHost();
  /// The host submits no more; what it submitted goes on. Its waits return.
  void RemoveHost(HostId host);
  /// RemoveHost for a program that is gone: what the device has not got yet of what it submitted is dropped, and
  /// what runs on the device ends with the instructions that its warps are at. Its sources must have been abandoned.
  /// When the last of its works has ended all that is known of them and of the host is let go: EndOf knows no times of
  /// them any more, and whoever waits for them waits no time.
  void DropHost(HostId host);
  /// An away host holds nobody back. When it is back its clock is not earlier than what has been simulated.
  void SetAway(HostId host, bool away);
  Cycle HostTime(HostId host) const;
  /// The host computes.
  void Advance(HostId host, Cycle cycles);

  // ---- works
  /// Fails when a CTA does not fit on the device.
  Result<NodeId> AddKernel(Place place, std::shared_ptr<trace::CtaSource> source);
  NodeId AddCopy(Place place, CopyDirection direction, std::uint64_t bytes);
  /// A marker ends when all before it has ended: an event that is recorded, or with `after`, one that is waited for.
  NodeId AddMarker(Place place);
  /// A group is a marker in whose place its works run. They become known later, and nothing behind
  /// the group is simulated until CloseGroup.
  NodeId OpenGroup(Place place);
  /// A kernel that may launch others: they are a group. Those with a Place::number begin when a warp has made the call
  /// of that number, tail launches (Place::kLastRank) when all others have ended, and whatever else is in it when the
  /// kernel has ended.
  Result<NodeId> OpenKernel(Place place, std::shared_ptr<trace::CtaSource> source);
  void CloseGroup(NodeId group);
  /// A kernel of which it is not known yet what runs. Nothing behind it is simulated until Decide.
  NodeId AddUndecided(Place place);
  /// What runs; without a source nothing does. Fails when a CTA does not fit on the device: then nothing does, either.
  Status Decide(NodeId kernel, Tracking tracking, std::shared_ptr<trace::CtaSource> source);

  // ---- answers
  /// What hosts wait for, and want to know.
  LiveAnswers& answers() { return answers_; }
  /// When the work ended, if that has been simulated. Of markers for as long as their host is there; of other works it
  /// is let go some thousands of works after the host could see it.
  std::optional<Cycle> EndOf(NodeId node) const;
  /// What the host has given.
  struct HostWorks {
    std::uint64_t works = 0, waits = 0;  ///< that have not ended: works, and works that they wait for
    Cycle last_end = 0;                  ///< of those that have ended; 0 when none has
  };
  HostWorks WorksOf(HostId host) const;
  /// Simulates all that was submitted to its end, as if every host waited for it. Only works that were closed and
  /// sources that give all their CTAs come to an end.
  Status Finish();

  /// Everything so far, by kernel. Complete after Finish.
  KernelTable Kernels() const;
  /// Does not wait for anybody.
  Cycle now() const { return signals_.now(); }
  /// When the last work and the last host had ended.
  Cycle end() const;
  /// Empty, or why nothing is simulated any more. Does not wait for anybody.
  std::string problem() const { return signals_.problem(); }
  const Parameters& parameters() const { return engine().parameters(); }
  double Nanoseconds(Cycle cycles) const;
  /// The device. After Finish.
  const Engine& engine() const { return simulation_.engine(); }
  /// How much was remembered when the device last stopped, so that it can be told whether it grows with what has ended.
  struct Kept {
    std::size_t works = 0;    ///< the device's
    std::size_t ends = 0;     ///< times of works
    std::size_t streams = 0;  ///< those that works of groups have to themselves included
    std::size_t hosts = 0;
  };
  Kept kept() const;

 private:
  explicit LiveTimeline(Options options) : options_(std::move(options)) {}
  NodeId Append(Place place, PendingNode node);

  const Options options_;
  mutable std::mutex mutex_;
  SimulationSignals signals_;
  LiveHosts hosts_{options_};
  LiveQuestions questions_{options_, hosts_, signals_};
  LiveAnswers answers_{mutex_, options_, questions_, signals_};
  LiveSimulation simulation_{mutex_, options_, signals_, hosts_, questions_};
};

}  // namespace gridloom::timing
