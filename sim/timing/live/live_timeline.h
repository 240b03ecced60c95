// What programs give a device to do, simulated while they run: kernels, copies and events in streams, and the time that
// passes for the hosts in between. One device, one or several hosts (programs).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/engine.h"
#include "sim/timing/kernel_table.h"
#include "sim/timing/live/host_ends.h"
#include "sim/timing/live/profiling_policy.h"

namespace gridloom::timing {

using HostId = std::uint32_t;
/// A work that a host gave: host << 32, plus the number of the work, from 1 in the order of the host's calls. 0: none.
using NodeId = std::uint64_t;
constexpr NodeId NodeOf(HostId host, std::uint64_t number) { return NodeId{host} << 32 | number; }

/// As HostReuse.
struct NodeReuse {
  NodeId earlier = 0;
  std::int64_t begin = 0;
};

/// Where a work stands. It begins when the work before it in its stream and all of `after` have ended. Streams of one
/// host are its own: two hosts may use the same numbers.
struct Place {
  HostId host = 0;
  std::uint64_t stream = 0;
  std::vector<NodeId> after;
  NodeId group = 0;        ///< it belongs to that group, or to that kernel opened as one; its stream means nothing then
  std::uint64_t rank = 0;  ///< in a group: works of lower rank come first, whatever the order of the calls
  std::uint64_t number = 0;   ///< of a kernel that a kernel launches: as trace::EventKind::kDeviceLaunch has it; 0: it
                              ///< begins with its group
  std::uint64_t profile = 0;  ///< of a kernel: KernelWork::profile
  KernelOwner owner{};        ///< of a kernel
  MemoryUse use{};            ///< MemoryUse::partner is `partner`
  NodeId partner = 0;         ///< a work with `is_partner`
  bool is_partner = false;    ///< later works may name it as their partner
  std::vector<NodeReuse> reuses{};  ///< MemoryUse::reuses
  static constexpr std::uint64_t kLastRank =
      ~std::uint64_t{0};  ///< begins when all works of the group before it have ended
};

/// Time. Each host has a clock. A call costs host.call_ns of it, an answer from the device arrives host.sync_ns after
/// the device's end (device files); what the host computes costs nothing unless Advance says so. Works are submitted at
/// their host's time. The device is simulated up to the time before which no host can submit any more: the earliest
/// clock of those that neither wait nor are away. So simulated times follow from the order of each host's calls alone,
/// whatever really happens when, as long as each host makes its calls from one thread.
///
/// The simulation has a thread of its own, which asks a kernel's source for its CTAs and may have to wait there for the
/// program that is still running them. All functions may be called from any thread. After a failure (problem()) all
/// waits return at once.
class LiveTimeline {
 public:
  struct Options {
    EngineOptions engine;  ///< a timeline does not need EngineOptions::keep_ended
    /// A host stops waiting when for so long no CTA came of a kernel of its own: the kernel may itself wait for the
    /// host.
    unsigned patience_ms = 3000;
    /// Likewise when for so long the simulation has stood before a kernel of its own that is not decided.
    unsigned decision_patience_ms = 30000;
    /// Told of each work of a host that has ended, groups' works included; by the simulation's thread, and must not
    /// call back.
    std::function<void(HostId host, const WorkResult& work, const Counters& during)> on_ended = {};
    Profiler profiler = {};  ///< of all kernels; called by the simulation's thread, in the order of simulated time
    /// For Kernels(). A service that runs for ever keeps none: programs name as many kernels as they like.
    bool keep_table = true;
    /// Told when all that is known of a host that was dropped is let go; as on_ended.
    std::function<void(HostId host)> on_forgotten = {};
    /// Told of each work as the host gave it, once it has ended, and of those that were dropped with their host; on any
    /// thread, with the timeline's lock held, and must not call back.
    std::function<void(NodeId node, Cycle end)> on_node_ended = {};
    int niceness = 0;  ///< of the simulation's thread: how far others go before it
  };
  static Result<std::unique_ptr<LiveTimeline>> Create(const sim::DeviceSpec& device,
                                                      std::unique_ptr<policy::Policy> policy, Options options);
  /// Sources that have not given all CTAs must have been abandoned.
  ~LiveTimeline();
  LiveTimeline(const LiveTimeline&) = delete;
  LiveTimeline& operator=(const LiveTimeline&) = delete;

  // ---- hosts
  /// A host that begins now, at the time up to which the device is simulated.
  HostId AddHost();
  /// It submits no more; what it submitted goes on. Its waits return.
  void RemoveHost(HostId host);
  /// As RemoveHost, of a program that is gone: what the device has not got yet of what it submitted is dropped, and
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
  /// Ends when all before it has: an event that is recorded, or with `after`, one that is waited for.
  NodeId AddMarker(Place place);
  /// As AddMarker, but the works of the group run where the marker stands. They become known later, and nothing behind
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
  /// The host waits for the end of works; its clock goes on when it has them all. False when it had to give up
  /// (patience_ms, problem()): the clock stays. Costs a call.
  bool WaitFor(HostId host, std::span<const NodeId> nodes);
  bool WaitFor(HostId host, NodeId node) { return WaitFor(host, std::span(&node, 1)); }
  enum class Answer : std::uint8_t { kYes, kNo, kUnknown };
  /// Takes the answer to a question, once: while the question is asked or later, on any thread, with the timeline's
  /// lock held. It must not wait, nor call back.
  using AnswerFunction = std::function<void(Answer)>;
  /// As WaitFor without waiting for it: kYes when all have ended, kUnknown when the host had to give up.
  void AskForEnd(HostId host, std::vector<NodeId> nodes, AnswerFunction answer);
  /// The same for all that the host has given.
  void AskForEndOfAll(HostId host, AnswerFunction answer);
  /// As Poll.
  void AskWhether(HostId host, std::vector<NodeId> nodes, AnswerFunction answer);
  /// Gives up the host's questions that have waited in vain for patience_ms. Whoever asks without waiting calls it now
  /// and then.
  void GiveUpStalled(HostId host);
  /// Whether the works have ended at the host's time: the host asks and goes on. Costs a call. Unknown when it had to
  /// give up.
  Answer Poll(HostId host, std::span<const NodeId> nodes);
  Answer Poll(HostId host, NodeId node) { return Poll(host, std::span(&node, 1)); }
  /// When the work ended, if that has been simulated. Of markers for as long as their host is there; of other works it
  /// is let go some thousands of works after the host could see it.
  std::optional<Cycle> EndOf(NodeId node) const;
  /// When the last of the host's works that have ended did; 0 when none has.
  Cycle LastEnd(HostId host) const;
  /// Simulates all that was submitted to its end, as if every host waited for it. Only works that were closed and
  /// sources that give all their CTAs come to an end.
  Status Finish();

  double Nanoseconds(Cycle cycles) const;
  /// Everything so far, by kernel. Complete after Finish.
  KernelTable Kernels() const;
  /// Of the whole device. After Finish.
  Counters counters() const;
  /// Does not wait for anybody.
  Cycle now() const { return now_.load(std::memory_order_relaxed); }
  /// When the last work and the last host had ended.
  Cycle end() const;
  /// Empty, or why nothing is simulated any more. Does not wait for anybody.
  std::string problem() const { return failed_.load(std::memory_order_acquire) ? problem_ : std::string(); }
  const Parameters& parameters() const { return engine_->parameters(); }
  /// The device. After Finish.
  const Engine& engine() const { return *engine_; }
  /// How much was remembered when the device last stopped, so that it can be told whether it grows with what has ended.
  struct Kept {
    std::size_t works = 0;    ///< the device's
    std::size_t ends = 0;     ///< times of works
    std::size_t streams = 0;  ///< those that works of groups have to themselves included
    std::size_t hosts = 0;
  };
  Kept kept() const;
  /// What the host has given that has not ended: works, and works that they wait for.
  struct Open {
    std::uint64_t works = 0, waits = 0;
  };
  Open OpenOf(HostId host) const;

 private:
  using QuestionId = std::uint64_t;
  using Clock = std::chrono::steady_clock;
  /// What a host waits for, or wants to know.
  struct Question {
    HostId host = 0;
    bool waits = false;  ///< the host's clock goes on with what it waits for; else it asks whether works have ended
    bool all = false;    ///< for all that the host has given
    std::vector<NodeId> nodes;  ///< each of them once in waiters_ until it has ended
    std::size_t left = 0;       ///< of them
    Cycle asked = 0;            ///< the host's clock
    std::uint64_t version = 0;  ///< of the timeline
    // For GiveUpStalled.
    std::uint64_t progress = 0;
    Clock::time_point since{};
    AnswerFunction answer;
  };
  struct Host {
    Cycle clock = 0;
    std::set<QuestionId> questions;  ///< that are open
    std::size_t waiting = 0;         ///< of them, those in which it waits; not 0: it submits nothing
    bool away = false, gone = false, dropped = false;
    std::deque<NodeId> calls;              ///< works that the engine has not got, in the order of submission
    HostEnds ends;                         ///< of its works
    std::uint64_t running = 0, waits = 0;  ///< works that have not ended, and what they wait for
    std::deque<std::uint32_t>
        idle_streams;  ///< the device's numbers of streams in which nothing was left to do when they were put here
    bool active() const { return !gone && !away && waiting == 0; }
    bool forgotten() const { return dropped && running == 0; }
  };
  struct Stream {
    HostId host = 0;
    bool of_one = false;      ///< for one work of a group
    std::uint64_t name = 0;   ///< the host's
    std::uint64_t works = 0;  ///< that the device has and that have not ended
    bool listed = false;      ///< in Host::idle_streams
  };
  /// A work until the device has it.
  struct Node {
    Place place;
    Cycle submitted = 0;
    WorkKind kind = WorkKind::kMarker;
    std::shared_ptr<trace::CtaSource> source;  ///< null: of a kernel of which nothing runs
    std::uint64_t bytes = 0;
    bool is_group = false, closed = true;
    /// What of it may still come: itself while it is not closed or decided, and each of its members of which something
    /// may.
    std::uint64_t open = 0;
    std::vector<NodeId> members;
  };
  /// A work that the device has, until it has ended.
  struct Given {
    WorkId begin = 0, work = 0;  ///< with the second it has ended; they differ where it is a group with members
    std::size_t waits = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  LiveTimeline(std::unique_ptr<policy::Policy> policy, Options options);
  NodeId Append(Place place, Node node);
  void DropNode(NodeId id);
  Status CheckKernel(const trace::CtaSource& source) const;
  Result<NodeId> AppendKernel(Place place, std::shared_ptr<trace::CtaSource> source, bool opens);
  std::shared_ptr<trace::CtaSource> Watched(std::shared_ptr<trace::CtaSource> source, HostId host);
  void AddOpen(Node& node);
  void TakeOpen(Node& node);
  void Close(Node& node);
  static HostId HostOf(NodeId node) { return static_cast<HostId>(node >> 32); }
  static std::size_t IndexOf(NodeId node) { return (node & 0xffffffffu) - 1; }  ///< in Host::ends
  Host* Find(HostId host);
  const Host* Find(HostId host) const;
  /// kNever: it has not ended. 0 when it is not known any more, which moves nobody's clock.
  Cycle End(NodeId node) const;
  bool Done(NodeId node) const { return End(node) != kNever; }
  void SetEnd(NodeId node, Cycle end, std::size_t waits);
  void Forget(HostId id);
  /// The simulation looks anew at what hosts may still submit.
  void Look();

  // ---- questions (live_questions.cpp)
  void Ask(Question question);
  Answer AskAndWait(Question question);
  bool TellWaiters(NodeId node, Cycle end);
  void Answered(QuestionId id, Answer answer);
  Answer Now(const Question& question) const;
  void AnswerAllOf(HostId host);
  void AnswerReached(std::uint64_t version, Cycle horizon);
  void GiveUp(HostId host);

  // ---- the simulation (live_simulation.cpp)
  void Main();
  /// Before that time no host submits anything.
  Cycle Horizon() const;
  bool Safe(HostId id, Cycle submitted) const;
  /// Gives the engine what is sure to come next; the time of a group that it cannot give yet, or kNever.
  Result<Cycle> Feed();
  /// A node that the engine is being given, with all that is in it.
  struct Feeding {
    NodeId id = 0;
    Node node;
    std::uint32_t stream = 0;
    WorkId begin = 0;
    WorkOrder end{};       ///< of the whole, where there are members
    std::size_t next = 0;  ///< of them
  };
  Status FeedNode(NodeId id, std::uint32_t stream);
  Result<Feeding> BeginNode(NodeId id, std::uint32_t stream, const std::vector<WorkId>& after, LaunchedBy by);
  Result<Feeding> BeginMember(Feeding& group);
  Result<WorkId> EndNode(Feeding& feeding);
  Result<WorkId> FeedBegin(WorkOrder order, Node& node, LaunchedBy by);
  Result<WorkId> FeedKernel(WorkOrder order, Node& node, LaunchedBy by);
  MemoryUse UseOf(const Place& place, bool kernel);
  std::shared_ptr<const std::vector<HostReuse>> ReusesOf(const Place& place) const;
  std::vector<WorkId> WorksBefore(const Node& node) const;
  std::uint32_t StreamOf(const Place& place);
  std::optional<std::uint32_t> IdleStream(Host& host);
  std::uint32_t NewStream(Stream stream);
  void CancelDropped();
  void Prepare();
  void OnFinished(WorkId id, const WorkResult& work, const Counters& during);
  /// Takes over what has ended; whether somebody waited for some of it.
  bool Collect();
  void CollectStream(std::uint32_t stream);
  void Fail(const std::string& why);

  const std::unique_ptr<policy::Policy> policy_;
  ProfilingPolicy* profiling_ = nullptr;  ///< it, where there is a profiler
  const Options options_;
  std::unique_ptr<Engine> engine_;
  Cycle call_ = 0, copy_call_ = 0, answer_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable work_;     ///< for the simulation
  std::condition_variable changed_;  ///< for those who wait
  std::map<HostId, Host> hosts_;     ///< that are there, or of which works are
  HostId next_host_ = 0;
  std::unordered_map<NodeId, Node> nodes_;     ///< that the engine has not got
  std::unordered_map<NodeId, Given> work_of_;  ///< of those that the engine has got and that have not ended
  std::unordered_map<WorkId, NodeId>
      node_of_;  ///< of the same works, the other way round; changed by the simulation's thread alone
  std::unordered_map<NodeId, WorkId> partners_;  ///< of works with Place::is_partner; of the simulation's thread
  std::map<std::pair<HostId, std::uint64_t>, std::uint32_t> streams_;
  std::unordered_map<std::uint32_t, Stream> stream_of_;  ///< by the engine's number
  std::uint32_t streams_given_ = 0;
  std::map<QuestionId, Question> questions_;
  std::unordered_multimap<NodeId, QuestionId> waiters_;
  std::set<QuestionId> asking_, for_all_;  ///< those in which hosts do not wait; Question::all
  std::vector<NodeId> asked_for_;          ///< in questions that the simulation's thread has not seen
  QuestionId next_question_ = 1;
  std::vector<HostId> dropped_;      ///< whose works still run on the device
  std::optional<HostId> undecided_;  ///< whose kernel the simulation stands before
  std::uint64_t version_ = 0;        ///< counts calls
  std::uint64_t reached_ = 0;        ///< the version all of whose consequences are simulated
  bool stop_ = false, finishing_ = false;
  std::string problem_;  ///< does not change once failed_ is set
  KernelTable table_;
  Cycle last_end_ = 0;          ///< of a work, or the clock of a host that is gone
  std::size_t works_kept_ = 0;  ///< that the engine kept when it last stopped

  // Used by the simulation's thread alone while the engine runs.
  std::vector<std::tuple<WorkId, WorkResult, Counters>> finished_;
  // When the engine has to stop before it has come as far as it may:
  std::unordered_set<WorkId> awaited_;              ///< when one of these ends,
  std::unordered_map<HostId, std::uint64_t> left_;  ///< or so many works of a host have
  bool stops_ = false;
  std::atomic<Cycle> now_{0};               ///< of the engine
  std::atomic<std::int64_t> loading_{-1};   ///< the host for a CTA of which it waits; -1: none
  std::atomic<std::uint64_t> progress_{0};  ///< CTAs and works so far
  std::atomic<bool> interrupt_{false}, look_{false}, failed_{false};
  std::thread thread_;
};

}  // namespace gridloom::timing
