// One session's end of the channel to the timing model: reads what the tenant says, checks it, gives it to the model,
// and answers. One thread for each session, however many questions wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "scheduler/core/simulation.h"
#include "scheduler/protocol/frames.h"
#include "sim/tenants/alone_device.h"
#include "sim/tenants/longest_launch.h"
#include "sim/tenants/tenant_account.h"
#include "sim/tenants/tenant_source.h"
#include "sim/timing/live/live_timeline.h"
#include "sim/trace/trace_file.h"

namespace gridloom::tenants {

class TimingService;

class TenantChannel {
 public:
  TenantChannel(TimingService& service, sched::SimulatedSession session, std::shared_ptr<TenantAccount> account,
                protocol::Fd socket, protocol::Fd bell);
  /// Ends the session's thread, if it still runs.
  ~TenantChannel();

  const sched::SimulatedSession& session() const { return session_; }
  /// Fails when there is no thread for it.
  Status Start();
  /// From any thread: the tenant is not listened to any more.
  void End();
  const std::shared_ptr<TenantAccount>& account() const { return account_; }
  /// For its works: whoever holds it pays. The model may let go of them later than the session ends.
  const std::shared_ptr<Charge>& work_charge() const { return work_charge_; }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  // ---- for the service, holding its lock
  bool has_host = false, begins = false, left = false;  ///< has one in the model; gets one now; is gone
  timing::HostId host = 0;
  timing::Cycle begin = 0;                             ///< of the host
  std::shared_ptr<AloneProgram> alone{};               ///< of the host, where its tenant is simulated alone, too
  std::chrono::steady_clock::time_point idle_since{};  ///< of the session, while the model waits for it

  /// The model may wait for CTAs of launches or works of groups that have not all come.
  bool owes() const { return owes_.load(std::memory_order_relaxed) != 0; }

  // ---- for the service's thread, without its lock
  /// Sets a host away that has said nothing for so long, is not waiting and has no launch on its way.
  void SetAwayAfter(std::chrono::steady_clock::time_point now, std::chrono::milliseconds patience);
  /// Reports a launch that has run for longer than `most`, one of those that run or `ended`. 0: as long as it likes.
  void CheckRunningTime(timing::Cycle now, timing::Cycle most, const LongestLaunch& ended);

 private:
  static Error Bad(const std::string& what) { return Error{"to the timing model: " + what}; }
  static Error Damaged() { return Bad("a frame that is damaged"); }
  void Main();
  Status Serve();
  Status Read(bool* gone);
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
  /// Pays for a further work that waits for so many.
  Status PayWork(std::size_t waits);
  Result<timing::NodeId> NodeOf(std::uint64_t work) const;
  /// Where the CTAs of a launch go: to the model, and to that of its tenant alone, if there is one.
  struct Launch {
    std::shared_ptr<TenantSource> source, alone;
  };
  Result<Launch> LaunchOf(std::uint64_t work);
  void Give(const std::shared_ptr<TenantSource>& source);
  void Close();
  void Touch();
  Error NoMemory(const std::string& what) const;

  /// An answer of the model's to a question that was asked.
  struct Reply {
    std::uint64_t question = 0;
    protocol::FrameKind kind = protocol::FrameKind::kWait;
    std::size_t nodes = 0;
    std::vector<timing::NodeId> waited{};  ///< those nodes, where its tenant is simulated alone, too
    timing::Answer answer = timing::Answer::kUnknown;
  };
  timing::AnswerFunction Replies(Reply reply);
  void Finish(timing::AnswerFunction replies);
  void TakeReplies();
  void Answer(std::uint64_t question, protocol::FrameAnswer answer, double ns);
  void AnswerFinish(const Reply& reply);
  void Put(const trace::ByteWriter& content);
  /// Sends what the tenant takes now; false when it is gone.
  bool SendOut();

  TimingService& service_;
  const sched::SimulatedSession session_;
  const std::shared_ptr<TenantAccount> account_;
  const protocol::Fd socket_, bell_;  ///< the bell rings when there are replies
  std::thread thread_;
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> owes_{0};

  // Only the session's thread touches what follows.
  std::vector<std::shared_ptr<const trace::KernelCode>> codes_;
  Charge code_charge_;
  const std::shared_ptr<Charge> work_charge_;
  std::uint64_t works_ = 0;                             ///< given so far; the model numbers them alike
  std::unordered_map<std::uint64_t, Launch> launches_;  ///< whose CTAs have not all come
  std::unordered_map<std::uint64_t, unsigned> groups_;  ///< those that are open, and how many groups each is in
  std::size_t asked_nodes_ = 0;                         ///< of questions that are not answered
  std::optional<timing::Cycle> finish_asked_;           ///< the host's time then
  std::vector<std::uint8_t> out_;
  std::size_t sent_ = 0;  ///< of it

  std::mutex given_mutex_;  ///< guards what follows
  static constexpr std::size_t kGivenAtFirst = 64;
  std::vector<std::weak_ptr<TenantSource>> given_;  ///< all that the model may still have
  std::size_t most_given_ = kGivenAtFirst;          ///< more are looked through for those that it has not

  std::mutex replies_mutex_;  ///< guards what follows; taken with the timeline's lock held
  std::vector<Reply> replies_;

  std::mutex away_mutex_;  ///< guards what follows
  std::chrono::steady_clock::time_point last_said_{};
  bool away_ = false;
  std::atomic<unsigned> waiting_{0};  ///< questions that are not answered
};

}  // namespace gridloom::tenants
