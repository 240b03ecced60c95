// What hosts of a live timeline wait for, and want to know.
#include <algorithm>
#include <utility>

#include "sim/timing/live/live_timeline.h"

namespace gridloom::timing {

// ---- asking

/// With the lock held. The question is answered at once where that can be.
void LiveTimeline::Ask(Question question) {
  Host* const host = Find(question.host);
  if (host == nullptr) return question.answer(Answer::kUnknown);
  host->clock += call_;
  question.asked = host->clock;
  question.version = ++version_;
  question.progress = progress_;
  question.since = Clock::now();
  work_.notify_one();
  const QuestionId id = next_question_++;
  std::erase(question.nodes, NodeId{0});
  for (const NodeId node : question.nodes) {
    if (!Done(node)) {
      waiters_.emplace(node, id);
      asked_for_.push_back(node);
      ++question.left;
    } else if (question.waits) {
      host->clock = std::max(host->clock, End(node) + answer_);
    }
  }
  const bool open = question.all ? host->running != 0 : question.left != 0;
  host->questions.insert(id);
  if (question.waits) ++host->waiting;
  else asking_.insert(id);
  if (question.all) for_all_.insert(id);
  const Question& asked = questions_.emplace(id, std::move(question)).first->second;
  if (!open || !problem_.empty() || host->gone) Answered(id, Now(asked));
}

void LiveTimeline::AskForEnd(HostId host, std::vector<NodeId> nodes, AnswerFunction answer) {
  const std::lock_guard lock(mutex_);
  Ask({.host = host, .waits = true, .nodes = std::move(nodes), .answer = std::move(answer)});
}

void LiveTimeline::AskForEndOfAll(HostId host, AnswerFunction answer) {
  const std::lock_guard lock(mutex_);
  Ask({.host = host, .waits = true, .all = true, .nodes = {}, .answer = std::move(answer)});
}

void LiveTimeline::AskWhether(HostId host, std::vector<NodeId> nodes, AnswerFunction answer) {
  const std::lock_guard lock(mutex_);
  Ask({.host = host, .waits = false, .nodes = std::move(nodes), .answer = std::move(answer)});
}

/// Asks, and waits for the answer.
LiveTimeline::Answer LiveTimeline::AskAndWait(Question question) {
  Lock lock(mutex_);
  const HostId host = question.host;
  std::optional<Answer> got;
  question.answer = [&](Answer answer) { got = answer; };
  Ask(std::move(question));
  while (!got) {
    if (changed_.wait_for(lock, std::chrono::milliseconds(options_.patience_ms)) == std::cv_status::timeout && !got)
      GiveUp(host);
  }
  return *got;
}

bool LiveTimeline::WaitFor(HostId host, std::span<const NodeId> nodes) {
  return AskAndWait({.host = host, .waits = true, .nodes = {nodes.begin(), nodes.end()}, .answer = {}}) == Answer::kYes;
}

LiveTimeline::Answer LiveTimeline::Poll(HostId host, std::span<const NodeId> nodes) {
  return AskAndWait({.host = host, .waits = false, .nodes = {nodes.begin(), nodes.end()}, .answer = {}});
}

// ---- answering, with the lock held

/// What there is to say when nothing more comes of waiting.
LiveTimeline::Answer LiveTimeline::Now(const Question& question) const {
  if (question.waits) {
    const bool all = question.all ? Find(question.host)->running == 0 : question.left == 0;
    return all ? Answer::kYes : Answer::kUnknown;
  }
  if (!problem_.empty()) return Answer::kUnknown;
  const bool ended =
      std::ranges::all_of(question.nodes, [&](NodeId node) { return Done(node) && End(node) <= question.asked; });
  return ended ? Answer::kYes : Answer::kNo;
}

void LiveTimeline::Answered(QuestionId id, Answer answer) {
  const auto found = questions_.extract(id);
  const Question& question = found.mapped();
  for (std::size_t n = 0; n < question.nodes.size() && question.left != 0; ++n) {
    const auto [first, last] = waiters_.equal_range(question.nodes[n]);
    const auto mine = std::find_if(first, last, [&](const auto& waiter) { return waiter.second == id; });
    if (mine != last) waiters_.erase(mine);
  }
  Host& host = hosts_.at(question.host);
  host.questions.erase(id);
  for_all_.erase(id);
  if (!question.waits) {
    asking_.erase(id);
  } else if (--host.waiting == 0) {
    look_ = true;  // it may submit something again
  }
  question.answer(answer);
}

/// The work has ended. Whether a host waited for it.
bool LiveTimeline::TellWaiters(NodeId node, Cycle end) {
  bool awaited = false;
  for (auto waiter = waiters_.find(node); waiter != waiters_.end(); waiter = waiters_.find(node)) {
    const QuestionId id = waiter->second;
    waiters_.erase(waiter);
    Question& question = questions_.at(id);
    if (question.waits) {
      Host& host = hosts_.at(question.host);
      host.clock = std::max(host.clock, end + answer_);
      awaited = true;
    }
    if (--question.left == 0) Answered(id, Now(question));
  }
  const HostId owner = HostOf(node);
  const Host& host = hosts_.at(owner);
  if (host.running != 0 || host.questions.empty()) return awaited;
  for (const QuestionId id : std::vector<QuestionId>(host.questions.begin(), host.questions.end())) {
    if (!questions_.at(id).all) continue;
    Answered(id, Answer::kYes);
    awaited = true;
  }
  return awaited;
}

void LiveTimeline::AnswerAllOf(HostId host) {
  const std::set<QuestionId> open = hosts_.at(host).questions;
  for (const QuestionId id : open) Answered(id, Now(questions_.at(id)));
}

/// The device has been simulated as far as hosts allow, which is before `horizon`, with all that they had said up to
/// `version`.
void LiveTimeline::AnswerReached(std::uint64_t version, Cycle horizon) {
  for (auto next = asking_.begin(); next != asking_.end();) {
    const QuestionId id = *next++;
    const Question& question = questions_.at(id);
    if (question.version <= version && question.asked <= horizon) Answered(id, Now(question));
  }
}

void LiveTimeline::GiveUpStalled(HostId host) {
  const std::lock_guard lock(mutex_);
  GiveUp(host);
}

/// Questions of a host for whose program the simulation has waited since they were asked, for longer than is to be.
void LiveTimeline::GiveUp(HostId id) {
  const Host* const host = Find(id);
  if (host == nullptr) return;
  const Clock::time_point now = Clock::now();
  const bool loads = loading_.load() == static_cast<std::int64_t>(id), stalled = loads || undecided_ == id;
  const std::chrono::milliseconds patience(loads ? options_.patience_ms : options_.decision_patience_ms);
  const std::uint64_t progress = progress_;
  for (const QuestionId one : std::set<QuestionId>(host->questions)) {
    Question& question = questions_.at(one);
    if (!stalled || question.progress != progress) {
      question.progress = progress;
      question.since = now;
    } else if (now - question.since >= patience) {
      Answered(one, Answer::kUnknown);
    }
  }
  changed_.notify_all();
}

}  // namespace gridloom::timing
