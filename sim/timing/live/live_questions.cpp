#include "sim/timing/live/live_questions.h"

#include <algorithm>
#include <utility>

namespace gridloom::timing {

void LiveQuestions::Ask(LiveQuestion question) {
  LiveHost* const host = hosts_.Find(question.host);
  if (host == nullptr) return question.answer(Answer::kUnknown);
  host->clock += hosts_.costs().call;
  question.asked = host->clock;
  question.version = signals_.Changed();
  question.progress = signals_.progress();
  question.since = std::chrono::steady_clock::now();
  const QuestionId id = next_++;
  std::erase(question.nodes, NodeId{0});
  for (const NodeId node : question.nodes) {
    if (!hosts_.Done(node)) {
      waiters_.emplace(node, id);
      asked_for_.push_back(node);
      ++question.left;
    } else if (question.waits) {
      host->clock = std::max(host->clock, hosts_.End(node) + hosts_.costs().answer);
    }
  }
  const bool open = question.all ? host->running != 0 : question.left != 0;
  host->questions.insert(id);
  if (question.waits) ++host->waiting;
  else asking_.insert(id);
  if (question.all) for_all_.insert(id);
  const LiveQuestion& asked = questions_.emplace(id, std::move(question)).first->second;
  if (!open || signals_.failed() || host->gone) Answered(id, Now(asked));
}

/// What there is to say when nothing more comes of waiting.
Answer LiveQuestions::Now(const LiveQuestion& question) const {
  if (question.waits) {
    const bool all = question.all ? hosts_.at(question.host).running == 0 : question.left == 0;
    return all ? Answer::kYes : Answer::kUnknown;
  }
  if (signals_.failed()) return Answer::kUnknown;
  const bool ended = std::ranges::all_of(
      question.nodes, [&](NodeId node) { return hosts_.Done(node) && hosts_.End(node) <= question.asked; });
  return ended ? Answer::kYes : Answer::kNo;
}

void LiveQuestions::Answered(QuestionId id, Answer answer) {
  const auto found = questions_.extract(id);
  const LiveQuestion& question = found.mapped();
  for (std::size_t n = 0; n < question.nodes.size() && question.left != 0; ++n) {
    const auto [first, last] = waiters_.equal_range(question.nodes[n]);
    const auto mine = std::find_if(first, last, [&](const auto& waiter) { return waiter.second == id; });
    if (mine != last) waiters_.erase(mine);
  }
  LiveHost& host = hosts_.at(question.host);
  host.questions.erase(id);
  for_all_.erase(id);
  if (!question.waits) {
    asking_.erase(id);
  } else if (--host.waiting == 0) {
    signals_.StopToLook();  // the host may submit something again
  }
  question.answer(answer);
}

bool LiveQuestions::TellWaiters(NodeId node, Cycle end) {
  bool awaited = false;
  for (auto waiter = waiters_.find(node); waiter != waiters_.end(); waiter = waiters_.find(node)) {
    const QuestionId id = waiter->second;
    waiters_.erase(waiter);
    LiveQuestion& question = questions_.at(id);
    if (question.waits) {
      LiveHost& host = hosts_.at(question.host);
      host.clock = std::max(host.clock, end + hosts_.costs().answer);
      awaited = true;
    }
    if (--question.left == 0) Answered(id, Now(question));
  }
  const LiveHost& host = hosts_.at(HostOf(node));
  if (host.running != 0 || host.questions.empty()) return awaited;
  for (const QuestionId id : std::vector<QuestionId>(host.questions.begin(), host.questions.end())) {
    if (!questions_.at(id).all) continue;
    Answered(id, Answer::kYes);
    awaited = true;
  }
  return awaited;
}

void LiveQuestions::AnswerAllOf(HostId host) {
  const std::set<QuestionId> open = hosts_.at(host).questions;
  for (const QuestionId id : open) Answered(id, Now(questions_.at(id)));
}

void LiveQuestions::AnswerReached(std::uint64_t version, Cycle horizon) {
  for (auto next = asking_.begin(); next != asking_.end();) {
    const QuestionId id = *next++;
    const LiveQuestion& question = questions_.at(id);
    if (question.version <= version && question.asked <= horizon) Answered(id, Now(question));
  }
}

void LiveQuestions::GiveUp(HostId id) {
  const LiveHost* const host = hosts_.Find(id);
  if (host == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  const bool loads = signals_.LoadsOf(id), stalled = loads || signals_.undecided() == id;
  const std::chrono::milliseconds patience(loads ? options_.patience_ms : options_.decision_patience_ms);
  const std::uint64_t progress = signals_.progress();
  for (const QuestionId one : std::set<QuestionId>(host->questions)) {
    LiveQuestion& question = questions_.at(one);
    if (!stalled || question.progress != progress) {
      question.progress = progress;
      question.since = now;
    } else if (now - question.since >= patience) {
      Answered(one, Answer::kUnknown);
    }
  }
  signals_.TellHosts();
}

std::vector<NodeId> LiveQuestions::TakeAskedFor() { return std::exchange(asked_for_, {}); }

std::set<HostId> LiveQuestions::HostsThatAskForAll() const {
  std::set<HostId> hosts;
  for (const QuestionId id : for_all_) hosts.insert(questions_.at(id).host);
  return hosts;
}

}  // namespace gridloom::timing
