// What a tenant asks the timing model, and its answers.
#include <unistd.h>

#include <algorithm>

#include "sim/tenants/tenant_channel.h"
#include "sim/tenants/timing_service.h"

namespace gridloom::tenants {

using protocol::FrameAnswer;
using protocol::FrameKind;
using timing::LiveTimeline;
using timing::NodeId;

namespace {

constexpr std::size_t kMostQuestions = 256, kMostAsked = 1u << 14;

}  // namespace

Status TenantChannel::HandleQuestion(FrameKind kind, trace::ByteReader in) {
  const std::uint64_t number = in.Varint();
  std::vector<NodeId> nodes;
  const std::uint64_t count = kind == FrameKind::kFinish ? 0 : kind == FrameKind::kEnd ? 1 : in.Count();
  if (count > kMostAsked - asked_nodes_) return Bad("questions about too many works at a time");
  for (std::uint64_t i = 0; i < count; ++i) {
    GL_TRY(node, NodeOf(in.Varint()));
    nodes.push_back(node);
  }
  if (in.failed()) return Damaged();
  LiveTimeline& timeline = *service_.timeline_;
  if (kind == FrameKind::kEnd) {
    const auto end = timeline.EndOf(nodes.front());
    Answer(number, end ? FrameAnswer::kYes : FrameAnswer::kUnknown, end ? timeline.Nanoseconds(*end) : 0);
    return {};
  }
  if (waiting_ >= kMostQuestions) return Bad("too many questions at a time");
  ++waiting_;
  asked_nodes_ += nodes.size();
  Reply reply{.question = number, .kind = kind, .nodes = nodes.size()};
  if (alone != nullptr) reply.waited = nodes;
  auto replies = Replies(std::move(reply));
  if (kind == FrameKind::kWait) timeline.answers().AskForEnd(host, std::move(nodes), std::move(replies));
  else if (kind == FrameKind::kAsk) timeline.answers().AskWhether(host, std::move(nodes), std::move(replies));
  else Finish(std::move(replies));
  return {};
}

/// Asking for the end is no part of the program: the time before it counts.
void TenantChannel::Finish(timing::AnswerFunction replies) {
  // What a program leaves running does not come to an end on a GPU either.
  for (const auto& [work, launch] : launches_) {
    launch.source->Close();
    if (launch.alone != nullptr) launch.alone->Close();
  }
  if (!finish_asked_) finish_asked_ = service_.timeline_->HostTime(host);
  service_.timeline_->answers().AskForEndOfAll(host, std::move(replies));
}

/// What the model calls with its answer: the channel's thread sends it.
timing::AnswerFunction TenantChannel::Replies(Reply reply) {
  return [this, reply = std::move(reply)](timing::Answer answer) mutable {
    reply.answer = answer;
    {
      const std::lock_guard lock(replies_mutex_);
      replies_.push_back(std::move(reply));
    }
    const std::uint64_t one = 1;
    static_cast<void>(!write(bell_.get(), &one, sizeof one));
  };
}

void TenantChannel::TakeReplies() {
  std::uint64_t count = 0;
  static_cast<void>(!read(bell_.get(), &count, sizeof count));
  std::vector<Reply> replies;
  {
    const std::lock_guard lock(replies_mutex_);
    replies.swap(replies_);
  }
  for (const Reply& reply : replies) {
    --waiting_;
    asked_nodes_ -= reply.nodes;
    if (reply.kind == FrameKind::kFinish) {
      AnswerFinish(reply);
      continue;
    }
    // Where it is alone it waits now, before it makes its next call. One that asks until the answer is yes has waited,
    // too.
    if (alone != nullptr && reply.answer == timing::Answer::kYes) alone->Waited(reply.waited);
    constexpr FrameAnswer kAnswers[] = {FrameAnswer::kYes, FrameAnswer::kNo, FrameAnswer::kUnknown};
    Answer(reply.question, kAnswers[static_cast<std::size_t>(reply.answer)], 0);
  }
}

void TenantChannel::Answer(std::uint64_t question, FrameAnswer answer, double ns) {
  trace::ByteWriter out;
  out.Varint(question);
  out.Fixed(answer);
  out.Fixed(ns);
  Put(out);
}

void TenantChannel::AnswerFinish(const Reply& reply) {
  LiveTimeline& timeline = *service_.timeline_;
  const timing::Cycle end = std::max(*finish_asked_, timeline.WorksOf(host).last_end);
  trace::ByteWriter out;
  out.Varint(reply.question);
  out.Fixed(reply.answer == timing::Answer::kYes ? FrameAnswer::kYes : FrameAnswer::kUnknown);
  out.Fixed(timeline.Nanoseconds(end - std::min(end, begin)));
  service_.TableOf(host).Put(out);
  // What the counters of proposed parts are called the tenant knows when it knows the parts.
  out.Text(service_.parts_);
  out.Text(service_.part_values_);
  Put(out);
  if (alone != nullptr && reply.answer == timing::Answer::kYes) alone->Finish();
  timeline.RemoveHost(host);  // the program's end: it holds nobody back while it does what is left
}

}  // namespace gridloom::tenants
