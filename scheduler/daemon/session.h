// One process of a tenant, as the broker sees it: a connection, its shared memory, the launches it has announced. What
// it says is checked against what it may say now; the first thing that is wrong ends the session, and nobody else's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/daemon/peer_process.h"
#include "scheduler/protocol/segment.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

/// What the broker knows of a launch beyond what the tenant says.
struct LaunchFacts {
  policy::CtaNeeds needs;     ///< what a CTA takes of the device
  std::uint64_t profile = 0;  ///< policy::KernelView::profile
};
/// An error when no multiprocessor can hold a CTA of the launch.
using FactsFunction = std::function<Result<LaunchFacts>(const protocol::LaunchRecord&)>;

class Session;

/// Who is told what a session's records ask for, beyond the scheduler.
class SessionHost {
 public:
  virtual void OnMemory(Session& session, std::uint64_t bytes) = 0;
  /// A new launch, and the slot of the session's that it has until it ends.
  virtual void OnSubmit(sched::LaunchId launch, Session& session, std::uint32_t slot) = 0;
  virtual void OnEnd(sched::LaunchId launch) = 0;

 protected:
  ~SessionHost() = default;
};

class Session {
 public:
  Session(std::uint64_t id, protocol::Fd socket, const protocol::Peer& peer, std::uint64_t now)
      : id(id), peer(peer), since(now), socket_(std::move(socket)) {}

  const std::uint64_t id;
  const protocol::Peer peer;
  const std::uint64_t since;  ///< when it connected
  PeerProcess process;
  std::string program;
  std::uint32_t tenant = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t copied_bytes = 0;  ///< that are on no account yet
  std::uint64_t launches = 0;      ///< announced so far
  bool doomed = false;             ///< ends with the current turn of the loop
  bool ending = false;             ///< starts nothing any more, and ends when what runs of it has ended (Withdraw)

  /// What an operator is told and has not read yet.
  struct AnswerState {
    std::string text;
    std::size_t at = 0;  ///< so much of it is sent
    std::uint32_t code = 0;
    std::uint64_t since = 0;  ///< when it was asked for
    bool pending = false;
    bool being_made = false;  ///< its text is not there yet
  };
  AnswerState answer;

  int socket() const { return socket_.get(); }
  bool admitted() const { return segment_.has_value(); }
  /// Makes ring and doorbell. After it the session may launch.
  Status Admit(std::uint32_t tenant_id);
  protocol::Segment& segment() { return *segment_; }
  int doorbell() const { return doorbell_.get(); }
  bool has_records() const { return reader_ && !reader_->empty(); }

  /// Takes up to `most` records; answers how many. An error: the session has broken the protocol.
  Result<std::uint32_t> Take(std::uint32_t most, sched::Scheduler& scheduler, const FactsFunction& facts,
                             SessionHost& host);

  /// Tells the tenant that the CTAs before `end` of the launch in this slot may run.
  void Grant(std::uint32_t slot, std::uint64_t end, std::uint64_t now);
  /// From now on nothing of it starts. What was granted stays until the tenant says that it has ended, or Abandon.
  void Withdraw(sched::Scheduler& scheduler, SessionHost& host);
  /// Something was granted and has not run to its end, as far as the tenant has said.
  bool runs() const;
  /// Takes all its launches from the scheduler.
  void Abandon(sched::Scheduler& scheduler, SessionHost& host);
  /// How long, in ns, the broker waits for what it has granted; 0: for ever.
  struct Patience {
    std::uint64_t slice = 0;  ///< without a CTA that finishes
    std::uint64_t grant = 0;  ///< until a grant has run to its end, whatever is reported of it
  };
  /// Why what runs of this session is waited for no longer; empty: it is.
  std::string Overdue(std::uint64_t now, const Patience& patience) const;
  std::uint32_t announced() const { return announced_; }
  /// A kernel that runs, for listings; without a name when none does.
  struct Running {
    std::string name;
    std::uint64_t ctas = 0;  ///< of its grid
    std::uint64_t done = 0;  ///< of these, that have run as far as the tenant has said
  };
  Running RunningKernel() const;

 private:
  struct Slot {
    std::uint64_t launch = 0;  ///< the tenant's number; 0: free
    sched::LaunchId id = 0;    ///< 0: it is not the scheduler's, as it was withdrawn before anything of it ran
    std::uint64_t ctas = 0, granted = 0, done = 0;
    std::uint64_t since = 0;  ///< when the slice that runs began, or a CTA of it was the last one to finish
    /// What was granted when everything granted before had run, and since when it could run. What is granted meanwhile
    /// is the next turn: so grants that are made larger as they run age none the less, and how many there were has not
    /// to be kept.
    std::uint64_t turn_end = 0, turn_since = 0;
    std::string name;
  };

  Status Handle(const protocol::Record& record, sched::Scheduler& scheduler, const FactsFunction& facts,
                SessionHost& host);
  Status Launch(const protocol::Record& record, const protocol::LaunchRecord& launch, sched::Scheduler& scheduler,
                const FactsFunction& facts, SessionHost& host);
  Result<Slot*> SlotOf(const protocol::Record& record);
  Status Progress(Slot& slot, std::uint64_t done, sched::Scheduler& scheduler);

  const protocol::Fd socket_;
  protocol::Fd doorbell_;
  std::optional<protocol::Segment> segment_;
  std::optional<protocol::RingReader> reader_;
  std::array<Slot, protocol::kSlots> slots_;
  std::uint32_t announced_ = 0;
};

}  // namespace gridloom::broker
