// The questions that hosts ask a live timeline. From any thread; after a failure all of them are answered at once.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "sim/timing/live/live_questions.h"

namespace gridloom::timing {

class LiveAnswers {
 public:
  LiveAnswers(std::mutex& mutex, const LiveOptions& options, LiveQuestions& questions, SimulationSignals& signals)
      : mutex_(mutex), options_(options), questions_(questions), signals_(signals) {}

  /// The host waits for the end of works; its clock goes on when it has them all. False when it had to give up
  /// (LiveOptions::patience_ms, LiveTimeline::problem): the clock stays. Costs a call.
  bool WaitFor(HostId host, std::span<const NodeId> nodes);
  bool WaitFor(HostId host, NodeId node) { return WaitFor(host, std::span(&node, 1)); }
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

 private:
  Answer AskAndWait(LiveQuestion question);

  std::mutex& mutex_;
  const LiveOptions& options_;
  LiveQuestions& questions_;
  SimulationSignals& signals_;
};

}  // namespace gridloom::timing
