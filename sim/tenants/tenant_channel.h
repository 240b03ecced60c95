// One session's end of the channel to the timing model: reads what the tenant says, checks it, gives it to the model, and answers. A
// thread of its own, and one for each question that has to wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "scheduler/core/simulation.h"
#include "scheduler/protocol/frames.h"
#include "sim/timing/live/live_timeline.h"
#include "sim/trace/trace_file.h"

namespace gridloom::tenants {

class TimingService;
class TenantSource;

class TenantChannel {
 public:
  TenantChannel(TimingService& service, sched::SimulatedSession session, protocol::Fd socket);
  /// Ends it.
  ~TenantChannel();

  const sched::SimulatedSession& session() const { return session_; }
  void Start();
  /// From any thread: the tenant is not listened to any more.
  void End();
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  // ---- for the service, holding its lock
  bool has_host = false, left = false;
  timing::HostId host = 0;
  timing::Cycle begin = 0;                             ///< of the host
  std::chrono::steady_clock::time_point idle_since{};  ///< of the session, while the model waits for it

  /// The model may wait for CTAs of launches or works of groups that have not all come.
  bool owes() const { return owes_.load(std::memory_order_relaxed) != 0; }
  /// Sets a host away that has said nothing for so long, is not waiting and has no launch on its way.
  void SetAwayAfter(std::chrono::steady_clock::time_point now, std::chrono::milliseconds patience);

 private:
  /// A question that is being answered.
  struct Question {
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void Main();
  Status Handle(const protocol::Frame& frame);
  Status HandleCode(trace::ByteReader in);
  Status HandleLaunch(trace::ByteReader in);
  Status HandleAction(trace::ByteReader in);
  Status HandleCloseGroup(trace::ByteReader in);
  Status HandleCtas(trace::ByteReader in);
  Status HandleEndLaunch(trace::ByteReader in);
  Status HandleQuestion(protocol::FrameKind kind, trace::ByteReader in);
  Result<timing::Place> PlaceOf(const trace::HostAction& action);
  Status Append(const trace::HostAction& action, timing::NodeId node, bool group);
  Result<timing::NodeId> NodeOf(std::uint64_t work) const;
  Result<std::shared_ptr<TenantSource>> SourceOf(std::uint64_t work);
  void Answer(std::uint64_t question, protocol::FrameKind kind, std::vector<timing::NodeId> nodes);
  void Send(std::uint64_t question, protocol::FrameAnswer answer, double ns, const timing::KernelTable* table);
  void Give(const std::shared_ptr<TenantSource>& source);
  void Close();
  void Touch();

  TimingService& service_;
  const sched::SimulatedSession session_;
  const protocol::Fd socket_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> owes_{0};

  // Of the thread.
  std::vector<std::shared_ptr<const trace::KernelCode>> codes_;
  std::uint64_t works_ = 0;                                                   ///< given so far; the model numbers them alike
  std::unordered_map<std::uint64_t, std::shared_ptr<TenantSource>> sources_;  ///< whose CTAs have not all come
  static constexpr std::size_t kGivenAtFirst = 64;
  std::vector<std::weak_ptr<TenantSource>> given_;      ///< all that the model may still have
  std::size_t most_given_ = kGivenAtFirst;              ///< more are looked through for those that it has not
  std::unordered_map<std::uint64_t, unsigned> groups_;  ///< those that are open, and how many groups each is in
  std::list<Question> questions_;

  std::mutex send_mutex_;
  std::mutex away_mutex_;  ///< guards what follows
  std::chrono::steady_clock::time_point last_said_{};
  bool away_ = false;
  std::atomic<unsigned> waiting_{0};
};

}  // namespace gridloom::tenants
