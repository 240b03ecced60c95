#include "sim/timing/live/live_answers.h"

#include <optional>
#include <utility>

namespace gridloom::timing {

void LiveAnswers::AskForEnd(HostId host, std::vector<NodeId> nodes, AnswerFunction answer) {
  const std::lock_guard lock(mutex_);
  questions_.Ask({.host = host, .waits = true, .nodes = std::move(nodes), .answer = std::move(answer)});
}

void LiveAnswers::AskForEndOfAll(HostId host, AnswerFunction answer) {
  const std::lock_guard lock(mutex_);
  questions_.Ask({.host = host, .waits = true, .all = true, .nodes = {}, .answer = std::move(answer)});
}

void LiveAnswers::AskWhether(HostId host, std::vector<NodeId> nodes, AnswerFunction answer) {
  const std::lock_guard lock(mutex_);
  questions_.Ask({.host = host, .waits = false, .nodes = std::move(nodes), .answer = std::move(answer)});
}

Answer LiveAnswers::AskAndWait(LiveQuestion question) {
  SimulationSignals::Lock lock(mutex_);
  const HostId host = question.host;
  std::optional<Answer> got;
  question.answer = [&](Answer answer) { got = answer; };
  questions_.Ask(std::move(question));
  while (!got) {
    if (!signals_.Wait(lock, std::chrono::milliseconds(options_.patience_ms)) && !got) questions_.GiveUp(host);
  }
  return *got;
}

bool LiveAnswers::WaitFor(HostId host, std::span<const NodeId> nodes) {
  return AskAndWait({.host = host, .waits = true, .nodes = {nodes.begin(), nodes.end()}, .answer = {}}) == Answer::kYes;
}

Answer LiveAnswers::Poll(HostId host, std::span<const NodeId> nodes) {
  return AskAndWait({.host = host, .waits = false, .nodes = {nodes.begin(), nodes.end()}, .answer = {}});
}

void LiveAnswers::GiveUpStalled(HostId host) {
  const std::lock_guard lock(mutex_);
  questions_.GiveUp(host);
}

}  // namespace gridloom::timing
