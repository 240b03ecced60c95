// What hosts of a live timeline wait for, and want to know. With the timeline's lock held.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "sim/timing/live/live_hosts.h"
#include "sim/timing/live/simulation_signals.h"

namespace gridloom::timing {

enum class Answer : std::uint8_t { kYes, kNo, kUnknown };
/// Takes the answer to a question, once: while the question is asked or later, on any thread, with the timeline's lock
/// held. It must not wait, nor call back.
using AnswerFunction = std::function<void(Answer)>;

struct LiveQuestion {
  HostId host = 0;
  bool waits = false;  ///< the host's clock goes on with what it waits for; else it asks whether works have ended
  bool all = false;    ///< for all that the host has given
  std::vector<NodeId> nodes;  ///< each of them once in LiveQuestions::waiters_ until it has ended
  AnswerFunction answer;
  std::size_t left = 0;       ///< of the nodes
  Cycle asked = 0;            ///< the host's clock
  std::uint64_t version = 0;  ///< SimulationSignals::Changed
  // For GiveUp.
  std::uint64_t progress = 0;
  std::chrono::steady_clock::time_point since{};
};

class LiveQuestions {
 public:
  LiveQuestions(const LiveOptions& options, LiveHosts& hosts, SimulationSignals& signals)
      : options_(options), hosts_(hosts), signals_(signals) {}

  /// The question is answered at once where that can be.
  void Ask(LiveQuestion question);
  /// Answers with what there is to say now, as nothing more comes of waiting.
  void AnswerAllOf(HostId host);
  /// Questions of a host for whose program the simulation has waited since they were asked, for longer than is to be.
  void GiveUp(HostId host);

  // ---- from the simulation
  /// The work has ended. Whether a host waited for it.
  bool TellWaiters(NodeId node, Cycle end);
  /// The device has been simulated as far as hosts allow, which is before `horizon`, with all that they had said up to
  /// `version`.
  void AnswerReached(std::uint64_t version, Cycle horizon);
  bool Awaits(NodeId node) const { return waiters_.contains(node); }
  /// Nodes in questions that the simulation has not seen.
  std::vector<NodeId> TakeAskedFor();
  /// The hosts that ask for the end of all that they have given.
  std::set<HostId> HostsThatAskForAll() const;

 private:
  void Answered(QuestionId id, Answer answer);
  Answer Now(const LiveQuestion& question) const;

  const LiveOptions& options_;
  LiveHosts& hosts_;
  SimulationSignals& signals_;
  std::map<QuestionId, LiveQuestion> questions_;
  std::unordered_multimap<NodeId, QuestionId> waiters_;
  std::set<QuestionId> asking_, for_all_;  ///< those in which hosts do not wait; LiveQuestion::all
  std::vector<NodeId> asked_for_;          ///< TakeAskedFor
  QuestionId next_ = 1;
};

}  // namespace gridloom::timing
